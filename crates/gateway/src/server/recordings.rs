//! What clients sent, written to files by a thread of its own: disks are slow.

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::{info, warn};

use crate::core::Recording;

/// Starts the writer. It ends with the last sender.
pub(super) fn start(folder: PathBuf) -> std::io::Result<Sender<Recording>> {
    std::fs::create_dir_all(&folder)?;
    let (sender, receiver) = channel::<Recording>();
    std::thread::Builder::new()
        .name("recordings".into())
        .spawn(move || {
            for recording in receiver {
                let connection = recording.id.map_or(0, |id| id.0);
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                let name = format!("session_{connection}_{}.cpr", now.as_millis());
                let path = folder.join(name);
                match std::fs::write(&path, &recording.file) {
                    Ok(()) => info!(connection, path = %path.display(), "recorded"),
                    Err(error) => warn!(path = %path.display(), %error, "cannot be written"),
                }
            }
        })?;
    Ok(sender)
}
