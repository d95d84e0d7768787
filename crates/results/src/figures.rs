//! From the records of one lane to the figures of its part of the document.

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_stats::{Distribution, at_rank, nanos};

use crate::document::{
    CensoredQuantiles, Episode, Flow, Game, HeadOfLine, Lag, Lane, MessageCounts, Milliseconds,
    Population, Quantiles, Resamples, SeedCost, SeedFigures, Timeline, Traffic,
};
use crate::episodes::{Disturbed, FIXED_THRESHOLD, adaptive_threshold, episodes};
use crate::flow::{FlowRecords, traffic};
use crate::game::{GameRecords, game};
use crate::head_of_line::head_of_line;
use crate::lag::{SeedLag, lag_of, pooled};
use crate::metric::Metric;
use crate::record::MessageRecord;
use crate::resample::{Drawn, length_of, resamples, shares_within};
use crate::timeline::timeline;
use crate::within::within;

/// What one lane did under one seed.
#[derive(Clone, Copy, Debug)]
pub struct SeedRun<'a> {
    /// The seed.
    pub seed: u64,
    /// Every message the workload meant to send, in any order.
    pub records: &'a [MessageRecord],
    /// What the link did, in both directions together and in any order; empty
    /// where it is not known.
    pub disturbed: &'a [Disturbed],
    /// Wire overhead, where it is known.
    pub overhead: Option<f64>,
    /// What a player's hour takes and costs, where that is known.
    pub cost: Option<SeedCost>,
    /// What became of the other streams of a game whose inputs the records are.
    pub game: Option<&'a GameRecords>,
    /// What became of each direction's messages, where they were not echoed.
    pub flows: Option<&'a FlowRecords>,
}

impl<'a> SeedRun<'a> {
    /// Of messages alone: what the link did and what was on the wire is not known.
    #[must_use]
    pub const fn of(seed: u64, records: &'a [MessageRecord]) -> Self {
        Self {
            seed,
            records,
            disturbed: &[],
            overhead: None,
            cost: None,
            game: None,
            flows: None,
        }
    }
}

/// Everything in a [`Lane`] that comes from its records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaneFigures {
    /// As [`Lane::messages`].
    pub messages: MessageCounts,
    /// As [`Lane::rtt_ms`].
    pub rtt_ms: CensoredQuantiles,
    /// As [`Lane::rtt_delivered_ms`].
    pub rtt_delivered_ms: Quantiles,
    /// As [`Lane::rtt_raw_ms`].
    pub rtt_raw_ms: Option<Quantiles>,
    /// As [`Lane::up_ms`].
    pub up_ms: Option<CensoredQuantiles>,
    /// As [`Lane::down_ms`].
    pub down_ms: Option<CensoredQuantiles>,
    /// As [`Lane::shares_within`].
    pub shares_within: BTreeMap<String, f64>,
    /// As [`Lane::head_of_line`].
    pub head_of_line: Option<HeadOfLine>,
    /// As [`Lane::within`].
    pub within: BTreeMap<Milliseconds, f64>,
    /// As [`Lane::lag`].
    pub lag: Option<Lag>,
    /// As [`Lane::game`].
    pub game: Option<Game>,
    /// As [`Lane::traffic`].
    pub traffic: Option<Traffic>,
    /// As [`Lane::episodes`].
    pub episodes: Vec<Episode>,
    /// As [`Lane::episodes_500ms`].
    pub episodes_500ms: Vec<Episode>,
    /// As [`Lane::histogram`].
    pub histogram: Distribution,
    /// As [`Lane::timeline`].
    pub timeline: Timeline,
    /// As [`Lane::per_seed`].
    pub per_seed: Vec<SeedFigures>,
    /// As [`Lane::resamples`].
    pub resamples: Option<Resamples>,
}

/// The figures of a lane that played one or more seeds.
///
/// Distributions, shares and counts pool the messages of all seeds. Episodes
/// never reach across seeds: each seed's are found in its own run, against
/// three times its own median, and listed one seed after the other. The
/// timeline is the first seed's. With several seeds every figure is also
/// given [per seed](LaneFigures::per_seed). How far figures could have come out
/// differently is found by [drawing them anew](LaneFigures::resamples).
///
/// `asked` are figures beyond those of every document, as budgets ask for them; see
/// [`asked()`](crate::asked()). `lag_threshold` is the round trip above which
/// [lag](Lane::lag) begins, the same for every lane of a run; without one lag is left out.
#[must_use]
pub fn figures(
    runs: &[SeedRun<'_>],
    asked: &[Metric],
    lag_threshold: Option<Duration>,
) -> LaneFigures {
    let sorted: Vec<Vec<MessageRecord>> = runs.iter().map(|run| in_order(run.records)).collect();
    let mut figures = LaneFigures::default();
    let mut drawn = Vec::with_capacity(runs.len());
    let mut lags = Vec::with_capacity(runs.len());
    for (run, records) in runs.iter().zip(&sorted) {
        let before = (figures.episodes.len(), figures.episodes_500ms.len());
        let (seed_figures, lag) = figures.add_seed(run, records, asked, lag_threshold);
        figures.per_seed.push(seed_figures);
        let own = figures.episodes[before.0..].iter();
        let fixed = figures.episodes_500ms[before.1..].iter();
        drawn.push(Drawn {
            records,
            episodes_s: own.map(|episode| episode.start_s).collect(),
            episodes_500ms_s: fixed.map(|episode| episode.start_s).collect(),
            lag: lag.clone(),
            overhead: run.overhead,
            cost: run.cost,
            game: run.game,
            flows: run.flows,
        });
        lags.extend(lag);
    }
    figures.lag = lag_threshold
        .filter(|_| !runs.is_empty())
        .map(|threshold| pooled(&lags, threshold));
    if runs.len() < 2 {
        figures.forget_seeds();
    }
    figures.resamples = resamples(&drawn, asked);
    figures.shares_within = shares_within(&drawn, asked);
    if let Some(records) = sorted.first() {
        figures.timeline = timeline(records);
    }
    figures.pool(&sorted, asked);
    let games = runs.iter().zip(&sorted);
    let games: Vec<_> = games
        .filter_map(|(run, records)| Some((run.game?, &records[..])))
        .collect();
    figures.game = game(&games, asked);
    let flows: Vec<&FlowRecords> = runs.iter().filter_map(|run| run.flows).collect();
    figures.traffic = traffic(&flows);
    if let Some(traffic) = &figures.traffic {
        let delays = |flow: &Option<Flow>| flow.as_ref().map(|flow| flow.delay_ms.clone());
        figures.up_ms = delays(&traffic.up);
        figures.down_ms = delays(&traffic.down);
    }
    figures
}

/// What [`figures()`] says of one seed, without all that it says of a lane: for a
/// search, which plays many and keeps a few numbers of each.
#[must_use]
pub fn seed_figures(
    run: &SeedRun<'_>,
    asked: &[Metric],
    lag_threshold: Option<Duration>,
) -> SeedFigures {
    let records = in_order(run.records);
    let mut figures = LaneFigures::default();
    let (of_seed, _) = figures.add_seed(run, &records, asked, lag_threshold);
    of_seed
}

impl LaneFigures {
    /// The lane's part of the document, with its name and its transport's.
    /// What records do not hold (settings, library, properties, wire, CPU time,
    /// failure) is left empty for the caller to fill in.
    #[must_use]
    pub fn into_lane(self, lane: &str, transport: &str) -> Lane {
        Lane {
            lane: lane.to_owned(),
            transport: transport.to_owned(),
            family: None,
            presets: Vec::new(),
            settings: serde_json::Value::Object(serde_json::Map::new()),
            library: String::new(),
            properties: None,
            failure: None,
            messages: self.messages,
            rtt_ms: self.rtt_ms,
            rtt_delivered_ms: self.rtt_delivered_ms,
            rtt_raw_ms: self.rtt_raw_ms,
            up_ms: self.up_ms,
            shares_within: self.shares_within,
            down_ms: self.down_ms,
            head_of_line: self.head_of_line,
            within: self.within,
            lag: self.lag,
            game: self.game,
            traffic: self.traffic,
            episodes: self.episodes,
            episodes_500ms: self.episodes_500ms,
            wire: None,
            cost: None,
            cpu_ns_per_message: None,
            kernel_cpu_ns_per_message: None,
            library_cpu_ns_per_message: None,
            system_calls_per_message: None,
            socket_path: None,
            histogram: self.histogram.to_base64(),
            timeline: self.timeline,
            per_seed: self.per_seed,
            resamples: self.resamples,
            imported: None,
            bulk: None,
        }
    }

    /// Adds the episodes of one run and returns its own figures and its lag.
    fn add_seed(
        &mut self,
        run: &SeedRun<'_>,
        records: &[MessageRecord],
        asked: &[Metric],
        lag_threshold: Option<Duration>,
    ) -> (SeedFigures, Option<SeedLag>) {
        let mut seed_figures = self.add_run(run, records, asked);
        let lag = lag_threshold.map(|threshold| lag_of_seed(run, records, threshold));
        seed_figures.lag = lag.as_ref().zip(lag_threshold).map(|(lag, threshold)| Lag {
            freezes: Vec::new(),
            ..pooled(std::slice::from_ref(lag), threshold)
        });
        (seed_figures, lag)
    }

    /// Adds the episodes of one run and returns its own figures.
    fn add_run(
        &mut self,
        run: &SeedRun<'_>,
        records: &[MessageRecord],
        asked: &[Metric],
    ) -> SeedFigures {
        let rtts = sorted_delays([records], MessageRecord::rtt);
        let threshold = adaptive_threshold(Duration::from_nanos(at_rank(&rtts, 500)));
        let mut own = episodes(records, threshold, run.disturbed);
        let mut fixed = episodes(records, FIXED_THRESHOLD, run.disturbed);
        let messages = counts(records);
        let rtt_ms = over_intended(&rtts, messages.lost);
        let seed_figures = SeedFigures {
            seed: run.seed,
            within: within(&rtts, messages.intended, asked),
            messages,
            rtt_ms,
            lag: None,
            game: run
                .game
                .and_then(|of_run| game(&[(of_run, records)], asked)),
            episodes: own.len() as u64,
            worst_episode_ms: longest_ms(&own),
            overhead: run.overhead,
            cost: run.cost,
        };
        for episode in own.iter_mut().chain(&mut fixed) {
            episode.seed = Some(run.seed);
        }
        self.episodes.append(&mut own);
        self.episodes_500ms.append(&mut fixed);
        seed_figures
    }

    /// With one seed, figures by seed would only repeat the pooled ones.
    fn forget_seeds(&mut self) {
        self.per_seed.clear();
        for episode in self.episodes.iter_mut().chain(&mut self.episodes_500ms) {
            episode.seed = None;
        }
        for freeze in self.lag.iter_mut().flat_map(|lag| &mut lag.freezes) {
            freeze.seed = None;
        }
    }

    /// Fills in the figures of all runs' messages together.
    fn pool(&mut self, runs: &[Vec<MessageRecord>], asked: &[Metric]) {
        let slices = || runs.iter().map(Vec::as_slice);
        let rtts = sorted_delays(slices(), MessageRecord::rtt);
        self.rtt_delivered_ms = Quantiles::of_sorted_nanos(&rtts);
        self.rtt_raw_ms = quantiles_if_any(slices(), MessageRecord::rtt_raw);
        self.head_of_line = head_of_line(runs.iter().flatten(), at_rank(&rtts, 500));
        for &rtt in &rtts {
            self.histogram.record(Duration::from_nanos(rtt));
        }
        for run in runs {
            let run = counts(run);
            self.messages.intended += run.intended;
            self.messages.sent += run.sent;
            self.messages.delivered += run.delivered;
            self.messages.lost += run.lost;
            self.messages.refused += run.refused;
        }
        self.rtt_ms = over_intended(&rtts, self.messages.lost);
        (self.up_ms, self.down_ms) = one_way(runs, self.messages.intended);
        self.within = within(&rtts, self.messages.intended, asked);
    }
}

fn lag_of_seed(run: &SeedRun<'_>, records: &[MessageRecord], threshold: Duration) -> SeedLag {
    let played = Duration::from_nanos(length_of(records));
    let mut lag = match run.flows {
        Some(flows) => flows.lag(threshold, run.disturbed),
        None => lag_of(records, played, threshold, run.disturbed),
    };
    for freeze in &mut lag.freezes {
        freeze.seed = Some(run.seed);
    }
    lag
}

/// The longest episode in milliseconds; zero without one.
pub(crate) fn longest_ms(episodes: &[Episode]) -> f64 {
    episodes
        .iter()
        .map(|episode| episode.duration_ms)
        .fold(0.0, f64::max)
}

fn in_order(records: &[MessageRecord]) -> Vec<MessageRecord> {
    let mut records = records.to_vec();
    records.sort_by_key(|record| record.intended);
    records
}

fn counts(records: &[MessageRecord]) -> MessageCounts {
    let count =
        |is: fn(&MessageRecord) -> bool| records.iter().filter(|&record| is(record)).count() as u64;
    MessageCounts {
        intended: records.len() as u64,
        sent: count(|record| record.accepted.is_some()),
        delivered: count(|record| !record.is_lost()),
        lost: count(MessageRecord::is_lost),
        refused: count(|record| record.refused),
    }
}

/// The round trips of all intended messages.
fn over_intended(sorted_rtts: &[u64], lost: u64) -> CensoredQuantiles {
    CensoredQuantiles::of_sorted_nanos(Population::Intended, sorted_rtts, lost)
}

/// The delays to the remote end and back, where its arrivals are known.
fn one_way(
    runs: &[Vec<MessageRecord>],
    intended: u64,
) -> (Option<CensoredQuantiles>, Option<CensoredQuantiles>) {
    let slices = || runs.iter().map(Vec::as_slice);
    let up = sorted_delays(slices(), MessageRecord::up);
    if up.is_empty() {
        return (None, None);
    }
    let down = sorted_delays(slices(), MessageRecord::down);
    let arrived = up.len() as u64;
    let echoes_lost = arrived.saturating_sub(down.len() as u64);
    (
        Some(CensoredQuantiles::of_sorted_nanos(
            Population::Intended,
            &up,
            intended - arrived,
        )),
        Some(CensoredQuantiles::of_sorted_nanos(
            Population::Arrived,
            &down,
            echoes_lost,
        )),
    )
}

fn sorted_delays<'a>(
    runs: impl IntoIterator<Item = &'a [MessageRecord]>,
    delay: fn(&MessageRecord) -> Option<Duration>,
) -> Vec<u64> {
    let mut delays: Vec<u64> = runs
        .into_iter()
        .flatten()
        .filter_map(delay)
        .map(nanos)
        .collect();
    delays.sort_unstable();
    delays
}

fn quantiles_if_any<'a>(
    runs: impl IntoIterator<Item = &'a [MessageRecord]>,
    delay: fn(&MessageRecord) -> Option<Duration>,
) -> Option<Quantiles> {
    let delays = sorted_delays(runs, delay);
    (!delays.is_empty()).then(|| Quantiles::of_sorted_nanos(&delays))
}

#[cfg(test)]
mod tests;
