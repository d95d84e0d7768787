//! The archive a bundle is kept in: texts by name, held to limits.

use std::io::{Cursor, Read as _, Write as _};

use lagometer_units::MOST_DATA;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// An experiment, its network, a result, and a trace for each direction of a
/// network and then some.
const MOST_ENTRIES: usize = 32;

/// Why an archive cannot be read.
#[derive(Debug, Error)]
pub enum BadArchive {
    /// It is none, or cut short.
    #[error("is no bundle, or was cut short: {0}")]
    NotOne(#[source] ZipError),
    /// It has more entries than any bundle.
    #[error("has {0} entries, and a bundle at most {MOST_ENTRIES}")]
    TooMany(usize),
    /// It lacks an entry.
    #[error("lacks `{0}`: it was cut short, or is no bundle")]
    Missing(String),
    /// An entry is not what it was.
    #[error("`{0}` was changed after the bundle was written")]
    Changed(String),
    /// An entry cannot be read.
    #[error("`{name}` cannot be read: {why}")]
    Unreadable {
        /// The entry.
        name: String,
        /// Why not.
        #[source]
        why: std::io::Error,
    },
    /// An entry is longer than it may be.
    #[error("`{0}` is longer than {MOST_DATA}, the most that is read of a bundle's entry")]
    TooLong(String),
}

/// An archive that is read.
pub(super) struct Archive<'a>(ZipArchive<Cursor<&'a [u8]>>);

impl<'a> Archive<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, BadArchive> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(BadArchive::NotOne)?;
        match archive.len() {
            entries if entries > MOST_ENTRIES => Err(BadArchive::TooMany(entries)),
            _ => Ok(Self(archive)),
        }
    }

    /// The text of an entry, however short it says it is when packed.
    pub(super) fn text(&mut self, name: &str) -> Result<String, BadArchive> {
        let entry = self.0.by_name(name).map_err(|error| match error {
            ZipError::FileNotFound => BadArchive::Missing(name.to_owned()),
            other => BadArchive::NotOne(other),
        })?;
        let mut text = String::new();
        entry
            .take(MOST_DATA.0 + 1)
            .read_to_string(&mut text)
            .map_err(|why| BadArchive::Unreadable {
                name: name.to_owned(),
                why,
            })?;
        if text.len() as u64 > MOST_DATA.0 {
            return Err(BadArchive::TooLong(name.to_owned()));
        }
        Ok(text)
    }

    /// The text of an entry that has this SHA-256.
    pub(super) fn unchanged_text(
        &mut self,
        name: &str,
        digest: &str,
    ) -> Result<String, BadArchive> {
        let text = self.text(name)?;
        if sha256(&text) == digest {
            Ok(text)
        } else {
            Err(BadArchive::Changed(name.to_owned()))
        }
    }
}

/// The archive of these texts. No times stand in it.
pub(super) fn write(entries: &[(String, String)]) -> Result<Vec<u8>, ZipError> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default());
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in entries {
        writer.start_file(name.as_str(), options)?;
        writer.write_all(text.as_bytes())?;
    }
    Ok(writer.finish()?.into_inner())
}

/// The SHA-256 of a text, in hex.
pub(super) fn sha256(text: &str) -> String {
    format!("{:x}", Sha256::digest(text.as_bytes()))
}
