//! What clients sent, written to files by a thread of its own: disks are slow.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::time::{SystemTime, UNIX_EPOCH};

use lagometer_limits::SharedLineRate;
use tracing::{info, warn};

use crate::core::Recording;

use super::journal::LINES_PER_S;

/// The most sessions of one number that may end in one millisecond.
const SAME_NAME: u32 = 1000;

/// Starts the writer. It ends with the last sender. A folder that it has to make
/// is its owner's alone: recordings hold what players said.
pub(super) fn start(folder: PathBuf) -> io::Result<Sender<Recording>> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    let (sender, receiver) = channel::<Recording>();
    std::thread::Builder::new()
        .name("recordings".into())
        .spawn(move || {
            let (recorded, failed) = (
                SharedLineRate::new(LINES_PER_S),
                SharedLineRate::new(LINES_PER_S),
            );
            for recording in receiver {
                let connection = recording.id.map_or(0, |id| id.0);
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                let name = format!("session_{connection}_{}", now.as_millis());
                match write(&folder, &name, &recording.file) {
                    Ok(path) => {
                        if let Some(left_out) = recorded.due() {
                            info!(connection, path = %path.display(), left_out, "recorded");
                        }
                    }
                    Err(error) => {
                        if let Some(left_out) = failed.due() {
                            warn!(name, %error, left_out, "a recording cannot be written");
                        }
                    }
                }
            }
        })?;
    Ok(sender)
}

/// Writes a file that only its owner may read, under a name that nobody has.
fn write(folder: &Path, name: &str, content: &[u8]) -> io::Result<PathBuf> {
    let (mut file, path) = create(folder, name)?;
    file.write_all(content)?;
    Ok(path)
}

fn create(folder: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    for again in 0..SAME_NAME {
        let path = folder.join(match again {
            0 => format!("{name}.cpr"),
            again => format!("{name}_{again}.cpr"),
        });
        let mut options = OpenOptions::new();
        match options.write(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            other => return Ok((other?, path)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_are_their_owners_and_none_takes_anothers_place() {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..3)
            .map(|content| {
                let path = write(folder.path(), "session_0_7", &[content]).unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), [content]);
                let mode = path.metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600);
                path.file_name().unwrap().to_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(
            names,
            ["session_0_7.cpr", "session_0_7_1.cpr", "session_0_7_2.cpr"]
        );
    }
}
