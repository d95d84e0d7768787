//! One end of a transfer: our engine, or the reference.

use kcp_oracle::Oracle;
use lagometer_kcp::{Config, Engine};
use lagometer_units::Time;

use crate::case::MESSAGE_BYTES;

/// What a benchmark needs of one end.
pub(crate) trait End {
    fn new(window: u16) -> Self;
    fn send(&mut self, bytes: &[u8]);
    fn receive(&mut self) -> Option<&[u8]>;
    fn input(&mut self, bytes: &[u8]);
    fn update(&mut self, now: u32, output: impl FnMut(&[u8]));
    fn flush(&mut self, output: impl FnMut(&[u8]));
    fn check(&mut self, now: u32) -> u32;
    fn waiting(&self) -> usize;
}

pub(crate) struct Ours {
    engine: Engine,
    message: Vec<u8>,
}

impl End for Ours {
    fn new(window: u16) -> Self {
        let config = Config {
            nodelay: 1,
            interval_ms: 10,
            resend: 2,
            congestion_control: false,
            send_window: window,
            receive_window: window,
            ..Config::default()
        };
        Self {
            engine: Engine::new(7, &config),
            message: Vec::new(),
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        let taken = self.engine.send(bytes);
        assert_eq!(taken, Ok(bytes.len()));
    }

    fn receive(&mut self) -> Option<&[u8]> {
        self.engine.receive(&mut self.message)?;
        Some(&self.message)
    }

    fn input(&mut self, bytes: &[u8]) {
        assert_eq!(self.engine.input(Time::ZERO, bytes), Ok(()));
    }

    fn update(&mut self, now: u32, output: impl FnMut(&[u8])) {
        self.engine.update(now, output);
    }

    fn flush(&mut self, output: impl FnMut(&[u8])) {
        self.engine.flush(output);
    }

    fn check(&mut self, now: u32) -> u32 {
        self.engine.check(now)
    }

    fn waiting(&self) -> usize {
        self.engine.waiting()
    }
}

pub(crate) struct Reference {
    oracle: Oracle,
    room: Vec<u8>,
}

impl End for Reference {
    fn new(window: u16) -> Self {
        let mut oracle = Oracle::new(7);
        oracle.nodelay(1, 10, 2, 1);
        oracle.wndsize(i32::from(window), i32::from(window));
        Self {
            oracle,
            room: vec![0; 2 * MESSAGE_BYTES],
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        let taken = self.oracle.send(bytes);
        assert_eq!(usize::try_from(taken), Ok(bytes.len()));
    }

    fn receive(&mut self) -> Option<&[u8]> {
        let length = self.oracle.recv(&mut self.room);
        usize::try_from(length)
            .ok()
            .map(|length| &self.room[..length])
    }

    fn input(&mut self, bytes: &[u8]) {
        assert_eq!(self.oracle.input(bytes), 0);
    }

    fn update(&mut self, now: u32, output: impl FnMut(&[u8])) {
        self.oracle.update(now, output);
    }

    fn flush(&mut self, output: impl FnMut(&[u8])) {
        self.oracle.flush(output);
    }

    fn check(&mut self, now: u32) -> u32 {
        self.oracle.check(now)
    }

    fn waiting(&self) -> usize {
        usize::try_from(self.oracle.waitsnd()).unwrap_or(0)
    }
}
