//! Plays of a search by workers that NATS joins: `tune --nats`.

use lagometer_distributed::Task;
use lagometer_distributed::nats::PlayQueue;
use lagometer_lab::bundle::Recipe;
use lagometer_lab::{LaneRun, SeedRun};
use lagometer_tune::{Network, Runner, Setup, SinglePlay, Stopped};

/// Plays that are put into the queue at once: as many jobs as a run has at most. Once all
/// of them are found the next are put in, so the last are waited for so often.
const AT_ONCE: usize = 1000;

/// Workers wherever they are.
pub(super) struct Workers<'a> {
    pub(super) queue: &'a mut PlayQueue,
}

impl Runner for Workers<'_> {
    fn at_once(&self) -> usize {
        AT_ONCE
    }

    fn play(
        &mut self,
        networks: &[Network],
        setups: &[Setup],
        plays: &[SinglePlay],
        found: &(dyn Fn(usize, LaneRun) + Sync),
    ) -> Result<(), Stopped> {
        let tasks = plays.iter().map(|play| {
            let setup = &setups[play.setup];
            Task {
                recipe: setup.network,
                seed: play.seed,
                lanes: vec![setup.lane.name.clone()],
                instead: vec![setup.written.clone()],
                each: networks[setup.network].resolved.plan.duration,
            }
        });
        let mut hand_over = |place, run: SeedRun| {
            for lane in run.lanes {
                found(place, lane);
            }
        };
        let played = self.queue.play(tasks.collect(), &mut hand_over);
        played.map_err(|_| Stopped)
    }
}

/// What workers play: each network with the traffic on it, by its place.
pub(super) fn recipes(networks: &[Network]) -> Vec<Recipe> {
    let recipe = |network: &Network| Recipe::of(env!("CARGO_PKG_VERSION"), &network.resolved);
    networks.iter().map(recipe).collect()
}
