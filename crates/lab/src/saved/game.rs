//! A game's streams as a text. Instants and durations are nanoseconds.

use std::time::Duration;

use lagometer_results::{EventRecord, GameRecords, GameTerms, Rollback, StateRecord};
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

/// When a message was meant to leave, and when it came.
type SavedEvent = (u64, Option<u64>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SavedGame {
    played: u64,
    interpolation: u64,
    /// Frame, input delay, most.
    rollback: Option<(u64, u32, u32)>,
    voice_within: u64,
    states: Vec<SavedEvent>,
    events: Vec<SavedEvent>,
    voice: Vec<SavedEvent>,
}

impl From<&GameRecords> for SavedGame {
    fn from(game: &GameRecords) -> Self {
        let nanos = |span: Duration| span.as_nanos() as u64;
        let came = |at: Time, came: Option<Time>| (at.as_nanos(), came.map(Time::as_nanos));
        let events = |events: &[EventRecord]| {
            let each = events.iter();
            each.map(|event| came(event.at, event.arrived)).collect()
        };
        let rollback = game.terms.rollback;
        Self {
            played: nanos(game.played),
            interpolation: nanos(game.terms.interpolation),
            rollback: rollback.map(|it| (nanos(it.frame), it.input_delay, it.most)),
            voice_within: nanos(game.terms.voice_within),
            states: game
                .states
                .iter()
                .map(|state| came(state.at, state.seen))
                .collect(),
            events: events(&game.events),
            voice: events(&game.voice),
        }
    }
}

impl From<SavedGame> for GameRecords {
    fn from(saved: SavedGame) -> Self {
        let came = |came: Option<u64>| came.map(Time::from_nanos);
        let events = |events: Vec<SavedEvent>| {
            let each = events.into_iter().map(|(at, arrived)| EventRecord {
                at: Time::from_nanos(at),
                arrived: came(arrived),
            });
            each.collect()
        };
        let states = saved.states.into_iter().map(|(at, seen)| StateRecord {
            at: Time::from_nanos(at),
            seen: came(seen),
        });
        Self {
            played: Duration::from_nanos(saved.played),
            terms: GameTerms {
                interpolation: Duration::from_nanos(saved.interpolation),
                rollback: saved.rollback.map(|(frame, input_delay, most)| Rollback {
                    frame: Duration::from_nanos(frame),
                    input_delay,
                    most,
                }),
                voice_within: Duration::from_nanos(saved.voice_within),
            },
            states: states.collect(),
            events: events(saved.events),
            voice: events(saved.voice),
        }
    }
}
