//! One abuse's row: figures with and without the attacker, and whether they meet
//! the goal.

mod table;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::attacker::Effort;
use super::latency::LATE_US;
use crate::counters::Spread;

pub(crate) use table::{missed, table};

/// Under attack the 99th percentile is at most so many times what it was.
const P99_TIMES: f64 = 2.0;

/// And below this, milliseconds.
const P99_MS: f64 = LATE_US as f64 / 1e3;

/// A minute after, so many megabytes more than before are allowed.
pub(super) const MEMORY_MB: f64 = 10.0;

/// Before a login a peer gets at most so many times the bytes it sent (RFC 9000,
/// section 8.1).
const REFLECTION: f64 = 3.0;

/// A generator later than this measures itself, milliseconds.
const GENERATOR_MS: f64 = 10.0;

/// The log may grow so fast under an attack, megabytes a second.
const LOG_MB_PER_S: f64 = 1.0;

/// What a row has to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Goal {
    /// There was an attack to stand up to.
    Attack,
    /// The gateway is there at the end.
    Alive,
    /// The 99th percentile of ages.
    Latency,
    /// Nothing is lost and nobody's connection ends.
    Delivery,
    /// Newcomers are let in, soon.
    Newcomers,
    /// Questions for the health are answered well.
    Health,
    /// The memory is back.
    Memory,
    /// Little comes back before a login.
    Reflection,
}

impl Goal {
    const ALL: [Self; 8] = [
        Self::Attack,
        Self::Alive,
        Self::Latency,
        Self::Delivery,
        Self::Newcomers,
        Self::Health,
        Self::Memory,
        Self::Reflection,
    ];

    /// What it asks for, in words.
    fn text(self) -> &'static str {
        match self {
            Self::Attack => "there was an attack",
            Self::Alive => "the gateway lives",
            Self::Latency => "p99 at most doubled and below 100 ms",
            Self::Delivery => "nothing lost, no connection ended",
            Self::Newcomers => "newcomers let in within a second",
            Self::Health => "health answered well",
            Self::Memory => "memory back within 10 MB",
            Self::Reflection => "at most three bytes back for each before a login",
        }
    }
}

/// How old what arrived was in one phase.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Age {
    /// The server's updates at the players, milliseconds from the moment each was
    /// due.
    pub(crate) down_ms: Spread,
    /// The players' messages at the server.
    pub(crate) up_ms: Spread,
    /// The share of both that was late, percent.
    pub(crate) late_pct: f64,
    /// By how much this program itself was late.
    pub(crate) generator_late_ms: Spread,
}

impl Age {
    /// The worse of both ways.
    fn p50_ms(&self) -> f64 {
        self.down_ms.p50.max(self.up_ms.p50)
    }

    fn p99_ms(&self) -> f64 {
        self.down_ms.p99.max(self.up_ms.p99)
    }
}

/// What never came.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Lost {
    /// Players who do not have the newest state.
    pub(crate) updates: u64,
    /// Messages of players that the server never got.
    pub(crate) messages: u64,
    /// Connections of players and the server that ended.
    pub(crate) connections: u64,
    /// Updates that were not what the server had sent.
    pub(crate) wrong: u64,
    /// Why the first connection ended.
    pub(crate) why: Option<String>,
}

/// Those who came during the attack.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Newcomers {
    /// How many.
    pub(crate) came: u64,
    /// How many of them were game servers.
    pub(crate) servers: u64,
    /// Who were not let in within three seconds.
    pub(crate) refused: u64,
    /// Game servers among those.
    pub(crate) servers_refused: u64,
    /// Who were let in, but after more than a second.
    pub(crate) slow: u64,
    /// The slowest login that was let in, milliseconds.
    pub(crate) worst_ms: f64,
    /// Why the first was refused.
    pub(crate) why: Option<String>,
}

/// What a question for the health was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// 200.
    Well,
    /// Anything else.
    Unwell,
}

/// What questions for the health were answered, how many of each.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Health {
    /// 200.
    pub(crate) well: u64,
    /// Something else.
    pub(crate) unwell: u64,
    /// Nothing within a second.
    pub(crate) unanswered: u64,
}

/// The gateway's resident memory, megabytes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Before the attack, players playing.
    pub(crate) before_mb: f64,
    /// The most during the attack.
    pub(crate) peak_mb: f64,
    /// After it, once it was back or the time for that was over.
    pub(crate) after_mb: f64,
    /// How long after the attack that was, seconds.
    pub(crate) after_s: f64,
}

/// One abuse against one gateway.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The abuse.
    pub(crate) abuse: String,
    /// Why the goal was missed; met where nothing is.
    pub(crate) faults: Vec<String>,
    /// Which parts of it were.
    #[serde(default)]
    pub(crate) missed: BTreeSet<Goal>,
    /// What else is to be known of the figures.
    pub(crate) notes: Vec<String>,
    /// Why there was no attack to stand up to, where there was none.
    pub(crate) void: Option<String>,
    /// How long the attack was, seconds.
    pub(crate) seconds: f64,
    /// Players.
    pub(crate) players: usize,
    /// Without the attacker.
    pub(crate) quiet: Age,
    /// With it.
    pub(crate) attacked: Age,
    /// What never came.
    pub(crate) lost: Lost,
    /// Those who came during the attack.
    pub(crate) newcomers: Newcomers,
    /// The gateway's health during the attack.
    pub(crate) health: Health,
    /// The gateway's memory.
    pub(crate) memory: Memory,
    /// The gateway's share of a core without and with the attacker, percent.
    pub(crate) cpu_pct: [f64; 2],
    /// By how much its log grew during the attack, megabytes.
    pub(crate) log_mb: f64,
    /// What the attacker did.
    pub(crate) effort: Effort,
    /// How the gateway ended, if it did.
    pub(crate) ended: Option<String>,
}

impl Row {
    /// Compares the figures with the goal. `reflects` says whether what came
    /// back to the attacker is held against what it sent.
    pub(super) fn judge(&mut self, reflects: bool) {
        let mut faults = Vec::new();
        let mut missed = BTreeSet::new();
        let mut fault = |is_so: bool, goal: Goal, what: String| {
            if is_so {
                faults.push(what);
                missed.insert(goal);
            }
        };
        if let Some(why) = &self.void {
            fault(true, Goal::Attack, why.clone());
        }
        if let Some(how) = &self.ended {
            fault(true, Goal::Alive, format!("the gateway ended: {how}"));
        }
        let (quiet, attacked) = (self.quiet.p99_ms(), self.attacked.p99_ms());
        fault(
            attacked > P99_TIMES * quiet,
            Goal::Latency,
            format!("p99 {:.1} times as long", attacked / quiet.max(0.001)),
        );
        fault(
            attacked > P99_MS,
            Goal::Latency,
            format!("p99 {attacked:.0} ms"),
        );
        let lost = &self.lost;
        fault(
            lost.updates + lost.messages > 0,
            Goal::Delivery,
            format!("lost {} states, {} messages", lost.updates, lost.messages),
        );
        fault(
            lost.connections > 0,
            Goal::Delivery,
            format!(
                "{} connections ended ({})",
                lost.connections,
                lost.why.as_deref().unwrap_or("no reason")
            ),
        );
        fault(
            lost.wrong > 0,
            Goal::Delivery,
            format!("{} updates wrong", lost.wrong),
        );
        let newcomers = &self.newcomers;
        fault(
            newcomers.refused > 0,
            Goal::Newcomers,
            format!(
                "{} of {} newcomers not let in ({})",
                newcomers.refused,
                newcomers.came,
                newcomers.why.as_deref().unwrap_or("no reason")
            ),
        );
        fault(
            newcomers.slow > 0,
            Goal::Newcomers,
            format!("{} of {} logins slow", newcomers.slow, newcomers.came),
        );
        let health = &self.health;
        fault(
            health.unwell + health.unanswered > 0,
            Goal::Health,
            format!(
                "health: {} well, {} not, {} unanswered",
                health.well, health.unwell, health.unanswered
            ),
        );
        let more_mb = self.memory.after_mb - self.memory.before_mb;
        fault(
            more_mb > MEMORY_MB,
            Goal::Memory,
            format!("{more_mb:.0} MB more after {:.0} s", self.memory.after_s),
        );
        let reflected = self.effort.received_bytes as f64 / self.effort.sent_bytes.max(1) as f64;
        fault(
            reflects && reflected > REFLECTION,
            Goal::Reflection,
            format!("reflects {reflected:.1} times"),
        );
        self.faults = faults;
        self.missed = missed;
        self.take_notes(reflects.then_some(reflected));
    }

    fn take_notes(&mut self, reflected: Option<f64>) {
        let generator = self
            .quiet
            .generator_late_ms
            .p99
            .max(self.attacked.generator_late_ms.p99);
        if generator > GENERATOR_MS {
            let note = format!("the generator itself was {generator:.0} ms late (p99)");
            self.notes.push(note);
        }
        if self.log_mb > LOG_MB_PER_S * self.seconds {
            let note = format!("the log grew by {:.0} MB", self.log_mb);
            self.notes.push(note);
        }
        if let Some(reflected) = reflected {
            self.notes
                .push(format!("{reflected:.2} bytes back for each"));
        }
    }

    /// Whether the goal was met.
    pub(crate) fn is_met(&self) -> bool {
        self.faults.is_empty()
    }

    /// On one line, as it ends.
    pub(crate) fn line(&self) -> String {
        let goal = if self.is_met() {
            "met".to_owned()
        } else {
            format!("MISSED ({})", self.faults.join("; "))
        };
        let notes = if self.notes.is_empty() {
            String::new()
        } else {
            format!("; note: {}", self.notes.join("; "))
        };
        format!("{}: {goal}{notes}", self.abuse)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn age(p99_ms: f64) -> Age {
        let spread = Spread {
            p50: 20.0,
            p99: p99_ms,
            max: 2.0 * p99_ms,
        };
        Age {
            down_ms: spread,
            up_ms: Spread::default(),
            late_pct: 0.0,
            generator_late_ms: Spread::default(),
        }
    }

    pub(super) fn row(quiet_ms: f64, attacked_ms: f64) -> Row {
        Row {
            abuse: "none".into(),
            faults: Vec::new(),
            missed: BTreeSet::new(),
            notes: Vec::new(),
            void: None,
            seconds: 5.0,
            players: 200,
            quiet: age(quiet_ms),
            attacked: age(attacked_ms),
            lost: Lost::default(),
            newcomers: Newcomers {
                came: 20,
                ..Newcomers::default()
            },
            health: Health::default(),
            memory: Memory::default(),
            cpu_pct: [10.0, 20.0],
            log_mb: 0.0,
            effort: Effort {
                sent_bytes: 100,
                received_bytes: 400,
                ..Effort::default()
            },
            ended: None,
        }
    }

    fn faults(change: impl FnOnce(&mut Row)) -> Vec<String> {
        let mut row = row(30.0, 50.0);
        change(&mut row);
        row.judge(false);
        row.faults
    }

    #[test]
    fn what_those_who_behave_do_not_notice_meets_the_goal() {
        assert_eq!(faults(|_| ()), [] as [&str; 0]);
    }

    #[test]
    fn each_kind_of_harm_misses_the_goal() {
        assert_eq!(faults(|row| row.attacked = age(61.0)).len(), 1);
        assert_eq!(faults(|row| row.attacked = age(101.0)).len(), 2);
        assert_eq!(faults(|row| row.lost.updates = 1).len(), 1);
        assert_eq!(faults(|row| row.lost.messages = 1).len(), 1);
        assert_eq!(faults(|row| row.lost.connections = 1).len(), 1);
        assert_eq!(faults(|row| row.lost.wrong = 1).len(), 1);
        assert_eq!(faults(|row| row.newcomers.refused = 1).len(), 1);
        assert_eq!(faults(|row| row.newcomers.slow = 1).len(), 1);
        assert_eq!(faults(|row| row.health.unanswered = 1).len(), 1);
        assert_eq!(faults(|row| row.memory.after_mb = 10.5).len(), 1);
        assert_eq!(faults(|row| row.void = Some("nothing".into())).len(), 1);
        assert_eq!(faults(|row| row.ended = Some("signal 6".into())).len(), 1);
    }

    #[test]
    fn reflection_counts_only_where_a_sender_may_be_forged() {
        let mut row = row(30.0, 30.0);
        row.judge(true);
        assert_eq!(row.faults, ["reflects 4.0 times"]);
        row.judge(false);
        assert!(row.is_met());
    }
}
