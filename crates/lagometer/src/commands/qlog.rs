//! The parts of `run` that write logs of connections.

use std::path::{Path, PathBuf};

use lagometer_lab::{QlogFolder, Resolved, RunOptions};

use crate::failure::Failure;

/// Logs that are being written.
pub(super) struct Logs {
    folder: QlogFolder,
    path: PathBuf,
}

/// Has the lanes of the first seed logged into the folder at `path`, if there is to be
/// one.
pub(super) fn begin(
    path: Option<&Path>,
    resolved: &mut Resolved,
    options: &RunOptions,
) -> Result<Option<Logs>, Failure> {
    let (Some(path), Some(&seed)) = (path, options.seeds.first()) else {
        return Ok(None);
    };
    let folder = QlogFolder::create(path).map_err(|why| Failure::Write {
        path: path.to_owned(),
        why,
    })?;
    if folder.watch(resolved, seed) == 0 {
        return Err(Failure::Input(
            "--qlog is of QUIC lanes, and none of these is one: `--lanes quic,quic-datagram`"
                .to_owned(),
        ));
    }
    Ok(Some(Logs {
        folder,
        path: path.to_owned(),
    }))
}

impl Logs {
    /// Says what became of them, once all connections are gone.
    pub(super) fn report(self) {
        let path = self.path.display();
        match self.folder.finish() {
            Ok(1) => note!("lagometer: {path} holds the log of one end of a connection"),
            Ok(files) => note!("lagometer: {path} holds the logs of {files} ends of connections"),
            Err(why) => note!("lagometer: {path}: writing ended early: {why}"),
        }
    }
}
