//! From the arguments of a search to what is searched: the traffic, the networks, the
//! lanes, the goal and its limits, and how much.

use std::time::Duration;

use lagometer_guest::Kernel;
use lagometer_lab::{Experiment, Unmet, Workload, resolve};
use lagometer_results::{Budget, Metric, USUAL_LIMIT_MS};
use lagometer_tune::search::Extent;
use lagometer_tune::{Aim, Ask, HeldOut, Network, TunableLane};
use lagometer_units::{Span, suggest};
use serde_json::{Value, json};

use crate::cli::TuneArguments;
use crate::commands::named::{find_experiment, find_network};
use crate::commands::prices;
use crate::failure::Failure;

/// Fewer candidates of a lane than this are no search.
const FEWEST_CANDIDATES: usize = 4;

/// What is searched.
pub(super) struct Asked {
    /// The experiment's name.
    pub(super) name: String,
    pub(super) networks: Vec<Network>,
    pub(super) aim: Aim,
    lanes: Vec<TunableLane>,
    extent: Extent,
    first_seed: u64,
    held_out: HeldOut,
}

impl Asked {
    pub(super) fn of(arguments: &TuneArguments) -> Result<Self, Failure> {
        let (mut experiment, folder) = find_experiment(&arguments.experiment)?;
        if experiment.shared {
            return Err(Failure::Input(format!(
                "{}: its lanes share one link, where what one sets changes what others find; \
                 leave out `shared`",
                arguments.experiment
            )));
        }
        let prices = prices::named(&arguments.prices)?;
        if !prices.is_empty() {
            experiment.prices = prices;
        }
        let lanes = lanes(arguments, &experiment)?;
        let aim = aim(arguments, &experiment, &lanes)?;
        apply(arguments, &mut experiment, &aim, &lanes)?;
        let asked = weighted(arguments, &experiment)?;
        // A network named on the command line is found from here, one named in an
        // experiment's file from that file's folder.
        let folder = folder.filter(|_| arguments.network.is_empty());
        let mut networks = Vec::new();
        for (name, weight) in asked {
            let profile = find_network(&name, folder.as_deref())?;
            let base_rtt_ms = profile.base_rtt().as_secs_f64() * 1e3;
            aim.check_network(&name, base_rtt_ms)
                .map_err(Failure::input)?;
            let experiment = Experiment {
                network: name.clone(),
                ..experiment.clone()
            };
            let mut resolved = resolve(experiment, name.clone(), profile, arguments.testbed)
                .map_err(Failure::input)?;
            if let Metric::Within(limit_ms) = aim.goal() {
                resolved.limits_ms.push(limit_ms);
            }
            networks.push(Network {
                name,
                weight,
                resolved,
            });
        }
        check_names(&lanes, &networks)?;
        let candidates = arguments.trials as usize / lanes.len();
        if candidates < FEWEST_CANDIDATES {
            return Err(Failure::Input(format!(
                "--trials {} are too few for {} lanes: ask for at least {}, or name fewer lanes",
                arguments.trials,
                lanes.len(),
                FEWEST_CANDIDATES * lanes.len()
            )));
        }
        Ok(Self {
            held_out: held_out(arguments, &networks)?,
            extent: Extent {
                candidates,
                seeds: arguments.seeds as usize,
                seed: experiment.seed,
            },
            first_seed: experiment.seed,
            name: experiment.name,
            networks,
            aim,
            lanes,
        })
    }

    pub(super) fn ask(&self) -> Ask<'_> {
        let seeds = self.extent.seeds as u64;
        let from = |first: u64| (0..seeds).map(move |nth| first.wrapping_add(nth)).collect();
        Ask {
            lanes: &self.lanes,
            extent: self.extent,
            search_seeds: from(self.first_seed),
            held_out_seeds: from(self.first_seed.wrapping_add(seeds)),
            held_out: self.held_out.clone(),
        }
    }

    /// What the networks do at times that no seed of the search, nor of what judges it,
    /// plays.
    pub(super) fn unmet(&self, ask: &Ask<'_>) -> Vec<Unmet> {
        let seeds = [&ask.search_seeds[..], &ask.held_out_seeds].concat();
        let networks = self.networks.iter();
        networks
            .flat_map(|network| network.resolved.unmet(&seeds))
            .collect()
    }

    /// Everything that what is found follows from.
    pub(super) fn described(&self, kernel: Option<&Kernel>) -> Value {
        let networks = self.networks.iter().map(|network| {
            json!({
                "name": network.name,
                "weight": network.weight,
                "profile": network.resolved.profile,
                "experiment": network.resolved.experiment,
            })
        });
        let mut described = json!({
            "networks": networks.collect::<Vec<_>>(),
            "lanes": self.lanes.iter().map(TunableLane::described).collect::<Vec<_>>(),
            "goal": self.aim.goal().to_string(),
            "limits": self.aim.limits(),
            "extent": format!("{:?}", self.extent),
            "held_out": format!("{:?}", self.held_out),
        });
        if let Some(kernel) = kernel {
            described["kernel"] = json!(kernel.name());
        }
        described
    }
}

fn lanes(arguments: &TuneArguments, experiment: &Experiment) -> Result<Vec<TunableLane>, Failure> {
    let usual = || {
        let lanes = TunableLane::usual(arguments.testbed);
        lanes.iter().map(|lane| lane.name().to_owned()).collect()
    };
    let names: Vec<String> = if arguments.lanes.is_empty() {
        usual()
    } else {
        arguments.lanes.clone()
    };
    let mut lanes: Vec<TunableLane> = Vec::new();
    for name in &names {
        if lanes.iter().any(|lane| lane.name() == name) {
            return Err(Failure::Input(format!(
                "--lanes names `{name}` twice; leave one out"
            )));
        }
        let lane = TunableLane::named(name, &experiment.own_lanes, arguments.testbed);
        lanes.push(lane.map_err(Failure::input)?);
    }
    let taken = lanes.iter().flat_map(TunableLane::found_names);
    match taken.into_iter().find(|found| names.contains(found)) {
        None => Ok(lanes),
        Some(name) => Err(Failure::Input(format!(
            "lane `{name}` has the name that another gets when it is tuned; give it another `name`"
        ))),
    }
}

/// Lanes have names of their own when they are tuned, too.
fn check_names(lanes: &[TunableLane], networks: &[Network]) -> Result<(), Failure> {
    let found: Vec<String> = lanes.iter().flat_map(TunableLane::found_names).collect();
    let mut others = networks.iter().flat_map(|network| &network.resolved.cross);
    let taken = others.find(|other| found.iter().any(|name| name == other.name()));
    taken.map_or(Ok(()), |other| {
        Err(Failure::Input(format!(
            "other traffic is called `{}`, as a lane is when it is tuned; give one of them \
             another `name`",
            other.name()
        )))
    })
}

/// The goal, and the limits of the flags and of the experiment's budgets.
fn aim(
    arguments: &TuneArguments,
    experiment: &Experiment,
    lanes: &[TunableLane],
) -> Result<Aim, Failure> {
    let mut limits = Vec::new();
    for written in &arguments.budget {
        limits.push(budget(written)?);
    }
    for budget in &experiment.budgets {
        let is_named = limits.iter().any(|it| it.metric() == budget.metric());
        let concerns_all = lanes.iter().all(|lane| budget.concerns(lane.name()));
        if is_named {
            continue;
        }
        if concerns_all && Aim::is_searchable(budget.metric()) {
            limits.push(Budget::new(budget.metric(), budget.limit()));
            continue;
        }
        let why = if concerns_all {
            "it is none that settings are searched by"
        } else {
            "it is not of all lanes that are tuned"
        };
        note!(
            "lagometer: the budget on {} is no limit of this search: {why}",
            budget.metric()
        );
    }
    let usual = || {
        let within = limits.iter().map(Budget::metric);
        within
            .into_iter()
            .find(|metric| matches!(metric, Metric::Within(_)))
            .unwrap_or(Metric::Within(USUAL_LIMIT_MS))
    };
    let goal = match &arguments.goal {
        Some(written) => written
            .parse()
            .map_err(|why| Failure::Input(format!("--goal: {why}")))?,
        None => usual(),
    };
    Aim::new(goal, limits).map_err(Failure::input)
}

/// A limit, as in `p99=200ms`.
fn budget(written: &str) -> Result<Budget, Failure> {
    let bad = |why: &dyn std::fmt::Display| Failure::Input(format!("--budget `{written}`: {why}"));
    let Some((figure, limit)) = written.split_once('=') else {
        return Err(bad(&"expected a figure and its limit, as in `overhead=2`"));
    };
    let metric: Metric = figure.trim().parse().map_err(|why| bad(&why))?;
    let way = if metric.more_is_better() {
        "at_least"
    } else {
        "at_most"
    };
    let table = json!({ "metric": figure.trim(), way: limit.trim() });
    serde_json::from_value(table).map_err(|why| bad(&why))
}

/// Puts what the flags say in place of what the experiment does.
fn apply(
    arguments: &TuneArguments,
    experiment: &mut Experiment,
    aim: &Aim,
    lanes: &[TunableLane],
) -> Result<(), Failure> {
    match &mut experiment.workload {
        Workload::PacedEcho(echo) => {
            echo.size = arguments.size.unwrap_or(echo.size);
            echo.interval = arguments.every.unwrap_or(echo.interval);
        }
        _ if arguments.size.is_some() || arguments.every.is_some() => {
            return Err(Failure::Input(format!(
                "`--size` and `--every` are for an echo; `{}` plays other messages, whose sizes \
                 and rates are in its file: leave them out",
                experiment.name
            )));
        }
        _ => {}
    }
    if let Some(tick) = arguments.tick {
        experiment.workload.set_tick(tick);
    }
    // Whole microseconds are what an experiment's text keeps, by which workers know it.
    let each = arguments.duration.duration() / arguments.seeds;
    experiment.duration = Span(Duration::from_micros(each.as_micros() as u64));
    if let Some(seed) = arguments.seed {
        experiment.seed = seed;
    }
    let names: Vec<String> = lanes.iter().map(|lane| lane.name().to_owned()).collect();
    experiment.keep_lanes(&names);
    experiment.budgets = aim.limits().to_vec();
    experiment.check().map_err(|(key, message)| {
        let seeds = arguments.seeds;
        let each = if key == "for" {
            format!(" (each of {seeds} seeds plays {})", experiment.duration)
        } else {
            String::new()
        };
        Failure::Input(format!("{key}: {message}{each}"))
    })
}

/// The networks and their weights.
fn weighted(
    arguments: &TuneArguments,
    experiment: &Experiment,
) -> Result<Vec<(String, f64)>, Failure> {
    if arguments.network.is_empty() {
        return Ok(vec![(experiment.network.clone(), 1.0)]);
    }
    let mut networks: Vec<(String, f64)> = Vec::new();
    for written in &arguments.network {
        let (name, weight) = written.rsplit_once('=').unwrap_or((written, "1"));
        let weight = weight.trim().parse::<f64>().ok();
        let Some(weight) = weight.filter(|it| it.is_finite() && *it > 0.0 && *it <= 1e6) else {
            return Err(Failure::Input(format!(
                "--network `{written}`: a weight is a number above 0, as in `{name}=2`"
            )));
        };
        if networks.iter().any(|(known, _)| known == name) {
            return Err(Failure::Input(format!(
                "--network names `{name}` twice; name it once, with a weight if it counts for more"
            )));
        }
        networks.push((name.to_owned(), weight));
    }
    Ok(networks)
}

fn held_out(arguments: &TuneArguments, networks: &[Network]) -> Result<HeldOut, Failure> {
    let asked = &arguments.hold_out;
    if asked.is_empty() {
        return Ok(HeldOut::None);
    }
    if networks.len() < 2 {
        return Err(Failure::Input(
            "--hold-out needs other networks to search on: name several with `--network`"
                .to_owned(),
        ));
    }
    if matches!(asked.as_slice(), [only] if only == "each") {
        return Ok(HeldOut::Each);
    }
    let names: Vec<&str> = networks.iter().map(|it| it.name.as_str()).collect();
    let mut places = Vec::new();
    for name in asked {
        let Some(place) = names.iter().position(|known| known == name) else {
            return Err(Failure::Input(format!(
                "--hold-out: no network of this search is called `{name}`; {}",
                suggest(name, &names)
            )));
        };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    if places.len() == networks.len() {
        return Err(Failure::Input(
            "--hold-out leaves no network to search on: leave one out of it".to_owned(),
        ));
    }
    Ok(HeldOut::Networks(places))
}
