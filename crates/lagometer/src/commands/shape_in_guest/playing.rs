//! One play in one guest: started, captured, and its output passed on with the
//! guest's time.

use std::env;
use std::ffi::OsString;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_emu::{Speaker, TaggedLine};
use lagometer_guest::{Ended, Kernel, Said, Stream, Traps};
use sha2::{Digest as _, Sha256};

use super::super::in_guest::Visit;
use super::write_line;
use crate::cli::ShapeArguments;
use crate::failure::Failure;

/// Bytes of output that are kept to be set beside another play's.
const KEPT_BYTES: usize = 64 << 20;

/// What was captured of one play.
pub(super) struct Captured {
    /// How lines are shown; nothing where they are not.
    shown: Option<Manner>,
    is_kept: bool,
    has_many_clients: bool,
    kept: Vec<Kept>,
    kept_bytes: usize,
    /// Of all lines.
    digest: Sha256,
    /// How many.
    pub(super) lines: u64,
    /// Whether the next piece continues a line, for each output.
    goes_on: [bool; 2],
}

/// How lines are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// With the time and who said them.
    Stamped,
    /// As they are.
    Plain,
}

/// A line as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) at: Duration,
    /// With the name of who said it.
    pub(super) line: Vec<u8>,
}

impl Captured {
    /// Nothing yet; what is captured is shown if `is_shown`.
    pub(super) fn new(arguments: &ShapeArguments, is_shown: bool) -> Self {
        let manner = if arguments.plain {
            Manner::Plain
        } else {
            Manner::Stamped
        };
        Self {
            shown: is_shown.then_some(manner),
            is_kept: arguments.twice,
            has_many_clients: arguments.clients > 1,
            kept: Vec::new(),
            kept_bytes: 0,
            digest: Sha256::new(),
            lines: 0,
            goes_on: [false; 2],
        }
    }

    /// Takes a line that the guest's program put out: a command's, or its own.
    fn take(&mut self, said: &Said<'_>) {
        let tagged = match said.stream {
            Stream::Output => TaggedLine::parse(said.line),
            Stream::Error => None,
        };
        let Some(tagged) = tagged else {
            // Lagometer's own, within the guest.
            if self.shown.is_some() {
                note!("{}", said.text());
            }
            return;
        };
        self.keep(said.at, &tagged);
        if let Some(manner) = self.shown {
            self.show(manner, said.at, &tagged);
        }
    }

    fn keep(&mut self, at: Duration, tagged: &TaggedLine<'_>) {
        if !self.is_kept {
            return;
        }
        let line = self.line(None, tagged);
        self.lines += 1;
        self.digest.update(at.as_nanos().to_le_bytes());
        self.digest.update((line.len() as u64).to_le_bytes());
        self.digest.update(&line);
        if self.kept_bytes < KEPT_BYTES {
            self.kept_bytes += line.len() + size_of::<Kept>();
            self.kept.push(Kept { at, line });
        }
    }

    fn show(&mut self, manner: Manner, at: Duration, tagged: &TaggedLine<'_>) {
        let is_output = tagged.speaker != Speaker::Server && !tagged.is_error;
        let line = if manner == Manner::Plain {
            [tagged.text, if tagged.is_whole { b"\n" } else { b"" }].concat()
        } else {
            let goes_on = &mut self.goes_on[usize::from(is_output)];
            let begins = !std::mem::replace(goes_on, !tagged.is_whole);
            let mut line = if begins {
                self.line(Some(at), tagged)
            } else {
                tagged.text.to_vec()
            };
            line.extend(tagged.is_whole.then_some(b'\n'));
            line
        };
        if is_output {
            write_line(io::stdout().lock(), &line);
        } else {
            write_line(io::stderr().lock(), &line);
        }
    }

    /// The line with the time and, where it is not clear, who said it.
    fn line(&self, at: Option<Duration>, tagged: &TaggedLine<'_>) -> Vec<u8> {
        let time = at.map_or_else(String::new, stamp);
        let name = match tagged.speaker {
            Speaker::Client(_) if self.has_many_clients => format!("{}: ", tagged.speaker),
            Speaker::Client(_) if tagged.is_error => "client: ".to_owned(),
            Speaker::Client(_) => String::new(),
            Speaker::Server => format!("{}: ", tagged.speaker),
        };
        [time.as_bytes(), name.as_bytes(), tagged.text].concat()
    }

    /// The lines that were kept, at most 64 MiB of them.
    pub(super) fn kept(&self) -> &[Kept] {
        &self.kept
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        self.digest.clone().finalize().into()
    }
}

/// The time before a line: seconds since the guest booted.
fn stamp(at: Duration) -> String {
    format!("[{:>12.6}] ", at.as_secs_f64())
}

/// Plays once.
pub(super) fn play(
    arguments: &ShapeArguments,
    kernel: &Kernel,
    captured: &mut Captured,
    stop: &AtomicBool,
) -> Result<Ended, Failure> {
    let limit = arguments.guest.real_limit.duration();
    let visit = Visit {
        kernel,
        seed: arguments.seed,
        // Whose programs these are is not known here.
        traps: Traps::Traced,
        words: words(arguments),
        limit,
        // Programs may have nothing to say.
        silence: limit,
        environment: env::vars_os().collect(),
        keeps_files: arguments.keep.is_some(),
    };
    visit.run(&mut |said| captured.take(said), stop)
}

/// What this program is to do within the guest.
fn words(arguments: &ShapeArguments) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["guest", "shape"].map(OsString::from).to_vec();
    let mut flag = |name: &str, value: OsString| {
        let mut word = OsString::from(format!("--{name}="));
        word.push(value);
        words.push(word);
    };
    flag("network", arguments.network.clone().into());
    flag("seed", arguments.seed.to_string().into());
    flag("clients", arguments.clients.to_string().into());
    if let Some(remote) = &arguments.remote {
        flag("remote", remote.clone());
    }
    if let Some(pcap) = &arguments.pcap {
        flag("pcap", pcap.clone().into());
    }
    if arguments.twice {
        words.push("--log".into());
    }
    words.push("--".into());
    words.extend(arguments.command.iter().cloned());
    words
}
