//! What the test against kcp-go is made of: scripts of conversations, our play
//! of them, and kcp-go's.

pub(crate) mod oracle;
pub(crate) mod play;
pub(crate) mod script;

use script::Script;

/// A datagram that a session sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// When, since the conversation's start.
    pub(crate) ns: u64,
    /// Which of the two sessions.
    pub(crate) side: usize,
    pub(crate) bytes: Vec<u8>,
}

/// What all runs together have met.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) datagrams: u64,
    /// Datagrams of parity.
    pub(crate) parity: u64,
    /// Data segments sent before.
    pub(crate) resent: u64,
    pub(crate) failures: Vec<String>,
}

impl Totals {
    pub(crate) fn compare(&mut self, script: &Script, ours: &[Sent], theirs: &[Sent]) {
        if let Some(what) = difference(ours, theirs) {
            self.failures.push(format!(
                "LAGOMETER_KCP_SEED={} cargo test -p lagometer-transport --test kcp_go_differential  # {what}",
                script.seed
            ));
        }
        self.datagrams += theirs.len() as u64;
        let mut next = [0; 2];
        for sent in theirs {
            let bytes = match script.fec {
                None => &sent.bytes[..],
                Some(_) if sent.bytes[4] == 0xf1 => &sent.bytes[8..],
                Some(_) => {
                    self.parity += 1;
                    continue;
                }
            };
            for segment in segments(bytes).iter().filter(|it| it.0 == 81) {
                if segment.3 < next[sent.side] {
                    self.resent += 1;
                } else {
                    next[sent.side] = segment.3 + 1;
                }
            }
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.datagrams += other.datagrams;
        self.parity += other.parity;
        self.resent += other.resent;
        self.failures.extend(other.failures);
    }
}

/// Where two plays of a conversation part, if they do.
pub(crate) fn difference(ours: &[Sent], theirs: &[Sent]) -> Option<String> {
    let describe = |sent: Option<&Sent>| {
        sent.map_or("nothing more".to_owned(), |sent| {
            let (ms, side) = (sent.ns as f64 / 1e6, sent.side);
            format!("{ms:.6} ms, side {side}: {:?}", segments(&sent.bytes))
        })
    };
    (0..ours.len().max(theirs.len()))
        .find(|&index| ours.get(index) != theirs.get(index))
        .map(|index| {
            format!(
                "datagram {index} of {}: ours {}; kcp-go's {}",
                theirs.len(),
                describe(ours.get(index)),
                describe(theirs.get(index)),
            )
        })
}

/// (command, window, timestamp, sequence, una, length) of every segment.
fn segments(mut bytes: &[u8]) -> Vec<(u8, u16, u32, u32, u32, u32)> {
    let mut found = Vec::new();
    while bytes.len() >= 24 {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let window = u16::from_le_bytes([bytes[6], bytes[7]]);
        let length = u32_at(20);
        found.push((bytes[4], window, u32_at(8), u32_at(12), u32_at(16), length));
        bytes = &bytes[(24 + length as usize).min(bytes.len())..];
    }
    found
}
