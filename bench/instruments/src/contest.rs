//! One row: ours and the others, in turn, as often as asked.

use crate::command::Bench;

/// Measures once.
pub(crate) type Attempt = Box<dyn Fn(&Bench) -> Result<f64, String>>;

/// One who takes part.
pub(crate) struct Contender {
    /// Who.
    pub(crate) name: String,
    /// Measures it once.
    pub(crate) attempt: Attempt,
}

/// One line of the table.
pub(crate) struct Row {
    /// Its name, by which it is asked for.
    pub(crate) name: String,
    /// What is measured.
    pub(crate) unit: &'static str,
    /// Whether less is better, as with a latency.
    pub(crate) less_is_better: bool,
    /// Ours.
    pub(crate) ours: Contender,
    /// Those it is compared with: the best of them.
    pub(crate) others: Vec<Contender>,
    /// How often as good as the best of them ours must be.
    pub(crate) at_least: f64,
}

/// What one contender reached.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Figures {
    /// All repetitions, ascending.
    Of(Vec<f64>),
    /// It cannot be measured here.
    None(String),
}

impl Figures {
    /// The median.
    pub(crate) fn median(&self) -> Option<f64> {
        match self {
            Self::Of(values) => values.get(values.len() / 2).copied(),
            Self::None(_) => None,
        }
    }
}

/// What a row found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Ours.
    pub(crate) ours: Figures,
    /// The others, in the row's order.
    pub(crate) others: Vec<Figures>,
    /// How often as good as the best of the others ours is.
    pub(crate) ratio: Option<f64>,
    at_least: f64,
}

impl Found {
    /// Whether the row's demand is met. A row in which somebody could not be
    /// measured is not.
    pub(crate) fn is_reached(&self) -> bool {
        self.ratio.is_some_and(|ratio| ratio >= self.at_least)
    }
}

/// Holds one row's contest. Whoever went first goes last in the next round.
pub(crate) fn hold(row: &Row, bench: &Bench, repetitions: u32) -> Found {
    let all: Vec<&Contender> = std::iter::once(&row.ours).chain(&row.others).collect();
    let mut found: Vec<Figures> = all.iter().map(|_| Figures::Of(Vec::new())).collect();
    for round in 0..repetitions as usize {
        for turn in 0..all.len() {
            let who = (turn + round) % all.len();
            let Figures::Of(values) = &mut found[who] else {
                continue;
            };
            match (all[who].attempt)(bench) {
                Ok(value) => values.push(value),
                Err(why) => found[who] = Figures::None(why),
            }
        }
    }
    for figures in &mut found {
        if let Figures::Of(values) = figures {
            values.sort_by(f64::total_cmp);
        }
    }
    let ours = found.remove(0);
    let best = found
        .iter()
        .filter_map(Figures::median)
        .reduce(|one, other| {
            if row.less_is_better {
                one.min(other)
            } else {
                one.max(other)
            }
        });
    let ratio = ours.median().zip(best).map(|(ours, best)| {
        if row.less_is_better {
            best / ours
        } else {
            ours / best
        }
    });
    Found {
        ours,
        others: found,
        ratio,
        at_least: row.at_least,
    }
}
