//! What coordinator and workers send each other, and how findings are packed.

use std::io::{self, Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use lagometer_lab::OwnLane;
use lagometer_lab::saved::SavedSeed;
use lagometer_units::MOST_DATA;
use serde::{Deserialize, Serialize};

/// One seed that is to be played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The sweep it is of, by which its recipe is found.
    pub sweep: String,
    /// Its number within the sweep, from 0.
    pub number: usize,
    /// Which of the sweep's recipes is played, from 0.
    pub recipe: usize,
    /// The seed.
    pub seed: u64,
    /// The lanes that are to be played, in order. A worker that could play only some of
    /// them refuses the job.
    pub lanes: Vec<String>,
    /// What is played in place of the recipe's lanes; those are where it is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instead: Vec<OwnLane>,
}

/// Text of somebody else's as it may be shown on a terminal: one line, not too long.
pub(crate) fn printable(text: &str) -> String {
    const MOST: usize = 400;
    let letter = |letter: char| if letter.is_control() { '?' } else { letter };
    text.chars().take(MOST).map(letter).collect()
}

/// What a worker brings of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Brought {
    /// What the lanes did.
    Played(SavedSeed),
    /// Why no worker will ever play it.
    Failed(String),
}

/// What a worker says every so often, and what every coordinator answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The version of the program that says it.
    pub(crate) version: String,
    /// The worker; empty of a coordinator.
    pub(crate) worker: String,
}

/// How far a worker is with a job, or that it begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) worker: String,
    pub(crate) number: usize,
    /// Virtual time that its lanes have played together, in milliseconds.
    pub(crate) played_ms: u64,
}

/// Whether a job that a worker asks for is still to be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Take {
    pub(crate) play: bool,
}

/// What was brought, as it crosses: JSON, deflated.
///
/// # Errors
///
/// Where it cannot be written as JSON.
pub fn pack(brought: &Brought) -> io::Result<Vec<u8>> {
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
    // Fields are written one by one; so short pieces are gathered first.
    let mut gathered = io::BufWriter::with_capacity(1 << 16, &mut packer);
    serde_json::to_writer(&mut gathered, brought)?;
    gathered.flush()?;
    drop(gathered);
    packer.finish()
}

/// Reads what [`pack`] wrote.
///
/// # Errors
///
/// Where it is not that, or is longer than any result may be.
pub fn unpack(bytes: &[u8]) -> io::Result<Brought> {
    let mut text = Vec::new();
    DeflateDecoder::new(bytes)
        .take(MOST_DATA.0 + 1)
        .read_to_end(&mut text)?;
    if text.len() as u64 > MOST_DATA.0 {
        return Err(io::Error::other(format!("is longer than {MOST_DATA}")));
    }
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked_and_else_nothing_is() {
        let brought = Brought::Failed("no worker has SRT".to_owned());
        let packed = pack(&brought).unwrap();
        assert_eq!(unpack(&packed).unwrap(), brought);
        assert!(unpack(&packed[..packed.len() / 2]).is_err());
        assert!(unpack(b"hello").is_err());
    }

    #[test]
    fn what_unpacks_to_more_than_any_result_is_refused() {
        let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
        let zeros = vec![b' '; 1 << 20];
        for _ in 0..=MOST_DATA.0 >> 20 {
            packer.write_all(&zeros).unwrap();
        }
        let why = unpack(&packer.finish().unwrap()).unwrap_err();
        assert!(why.to_string().contains("longer than"), "{why}");
    }
}
