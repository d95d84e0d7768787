//! What a run found: figures, lag, budgets, verdicts, and the one result document that
//! everything else reads.
//!
//! The way through the crate: a testbed fills a [`MessageRecord`] for every
//! message the workload meant to send; [`figures()`] turns the records of a
//! lane into its part of the [`Document`]. Nothing here knows where the
//! numbers come from, and nothing here reads a clock: the same records give
//! the same bytes.

mod agreement;
mod baseline;
mod budget;
mod capacity;
mod difference;
mod document;
mod episodes;
mod exact_agreement;
mod figures;
mod flow;
mod game;
mod head_of_line;
pub mod import_2015;
mod instrument_seeds;
mod lag;
mod leaders;
mod message_agreement;
mod metric;
mod prices;
mod quantiles;
mod record;
mod resample;
mod timeline;
mod verdict;
mod within;
pub mod written;

pub use agreement::{Agreement, ComparedFigure, LaneAgreement, Margin, Margins, agreement};
pub use baseline::{Shift, ShiftFinding, against_baseline};
pub use budget::{BadBudget, Budget, asked, evaluate};
pub use capacity::{Capacity, capacity_verdict};
pub use difference::{
    CONFIDENCE, Difference, Judgement, TWO_RUNS_ERRING, difference, difference_of_runs, interval,
    judge, judge_together, may_compare, mixed, mixed_difference, mixed_interval, noise_ms,
};
pub use document::*;
pub use episodes::{
    Disturbed, FIXED_THRESHOLD, JOINED_WITHIN, LEAST_THRESHOLD, adaptive_threshold, episodes,
};
pub use exact_agreement::{ExactFigures, ExactTolerance, WITHIN};
pub use figures::{LaneFigures, SeedRun, figures, seed_figures};
pub use flow::{FlowMessage, FlowRecords, traffic};
pub use game::{EventRecord, GameRecords, GameTerms, Rollback, StateRecord, game};
pub use instrument_seeds::merge_instrument_seeds;
pub use lag::LAG_ABOVE;
pub use leaders::leaders;
pub use message_agreement::{Disagreement, MessageAgreement, message_agreement};
pub use metric::{Metric, Sampled, Statistic, Unit, UnknownMetric};
pub use prices::{Prices, player_cost};
pub use record::MessageRecord;
pub use resample::{FEWEST_BLOCKS, FEWEST_SEEDS};
pub use timeline::{MOST_BUCKETS, timeline};
pub use verdict::echo::echo_verdict;
pub use verdict::machine::machine_verdict;
pub use verdict::seeds::seeds_verdict;
pub use verdict::speed::speed_verdict;
pub use verdict::sweep::sweep_verdict;
pub use verdict::tune::tune_verdict;
pub use verdict::world::{world_verdict, worlds_verdict};
pub use verdict::{USUAL_LIMIT_MS, ranking_limit_ms, verdict};
