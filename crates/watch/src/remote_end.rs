//! A remote end: whose measurements it serves now.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::draw::clock;
use crate::{Board, Row};

/// A remote end that is watched.
pub struct RemoteEndView {
    board: Board,
    sessions: BTreeMap<u64, Session>,
    served: u64,
    jobs: u64,
    turned_away: u64,
}

/// Somebody who measures.
#[derive(Clone, Debug)]
struct Session {
    peer: String,
    since: Duration,
    /// What is measured now, and how often each was.
    running: Vec<String>,
    jobs: u64,
}

const SESSIONS: usize = 0;
const RUNNING: usize = 1;
const AWAY: usize = 2;

impl Default for RemoteEndView {
    fn default() -> Self {
        Self::new()
    }
}

impl RemoteEndView {
    /// Of a remote end that nobody has come to.
    #[must_use]
    pub fn new() -> Self {
        let rows = ["sessions", "running jobs", "turned away"];
        Self {
            board: Board {
                title: String::new(),
                state: "waits for somebody".to_owned(),
                done: None,
                rows: rows.map(Row::named).to_vec(),
                table: Vec::new(),
                ends: "Ctrl-C ends it",
            },
            sessions: BTreeMap::new(),
            served: 0,
            jobs: 0,
            turned_away: 0,
        }
    }

    /// What it is called from now on.
    pub fn call(&mut self, title: &str) {
        title.clone_into(&mut self.board.title);
    }

    /// Somebody was authenticated, at `now` since it began to serve.
    pub fn join(&mut self, now: Duration, session: u64, peer: &str) {
        self.served += 1;
        let peer = peer.to_owned();
        let session_of = Session {
            peer,
            since: now,
            running: Vec::new(),
            jobs: 0,
        };
        self.sessions.insert(session, session_of);
    }

    /// Somebody was refused.
    pub fn turn_away(&mut self) {
        self.turned_away += 1;
    }

    /// A job has begun.
    pub fn open(&mut self, session: u64, service: &str) {
        self.jobs += 1;
        if let Some(session) = self.sessions.get_mut(&session) {
            session.jobs += 1;
            session.running.push(service.to_owned());
        }
    }

    /// A job has ended.
    pub fn close(&mut self, session: u64, service: &str) {
        if let Some(session) = self.sessions.get_mut(&session)
            && let Some(place) = session.running.iter().position(|it| it == service)
        {
            session.running.remove(place);
        }
    }

    /// Somebody is gone.
    pub fn leave(&mut self, session: u64) {
        self.sessions.remove(&session);
    }

    /// Takes a look at `now`.
    pub fn look(&mut self, now: Duration) {
        let running: usize = self.sessions.values().map(|it| it.running.len()).sum();
        let here = self.sessions.len();
        self.board.state = format!(
            "{}  {} sessions and {} jobs so far",
            clock(now),
            self.served,
            self.jobs
        );
        self.board.rows[SESSIONS].note(Some(here as f64), here.to_string(), false);
        self.board.rows[RUNNING].note(Some(running as f64), running.to_string(), false);
        let away = self.turned_away;
        self.board.rows[AWAY].note(Some(away as f64), away.to_string(), away > 0);
        let heads = ["from", "for", "jobs", "running"];
        self.board.table = vec![heads.map(str::to_owned).to_vec()];
        for session in self.sessions.values() {
            self.board.table.push(vec![
                session.peer.clone(),
                clock(now.saturating_sub(session.since)),
                session.jobs.to_string(),
                counted(&session.running),
            ]);
        }
    }

    /// What is drawn.
    #[must_use]
    pub const fn board(&self) -> &Board {
        &self.board
    }
}

/// Each name once, with how often it is there.
fn counted(names: &[String]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let one = |(name, count): (&str, usize)| match count {
        1 => name.to_owned(),
        many => format!("{many} {name}"),
    };
    counts.into_iter().map(one).collect::<Vec<_>>().join(", ")
}
