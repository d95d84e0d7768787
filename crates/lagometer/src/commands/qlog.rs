//! The parts of `run` that write logs of connections.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use lagometer_lab::{QlogError, QlogFolder, Resolved, RunOptions};
use lagometer_testbed::Testbed;
use lagometer_units::create_private_file;

use crate::failure::{Failure, Missing};

/// Logs that are being written.
pub(super) struct Logs {
    folder: PathBuf,
    /// Who writes them; none where guests do, which have files of their own.
    writer: Option<QlogFolder>,
}

/// What a guest wrote of its connections.
#[derive(Debug, Default)]
pub(super) struct GuestLogs {
    /// The files' names, and what is in them.
    pub(super) files: Vec<(String, File)>,
    /// Why one of them ends early, if it does.
    pub(super) cut: Option<String>,
}

/// Has the lanes of the first seed logged into the folder at `path`, if there is to be
/// one.
pub(super) fn begin(
    path: Option<&Path>,
    resolved: &mut Resolved,
    options: &RunOptions,
    testbed: Testbed,
) -> Result<Option<Logs>, Failure> {
    let (Some(path), Some(&seed)) = (path, options.seeds.first()) else {
        return Ok(None);
    };
    let writer = QlogFolder::watch(path, resolved, seed).map_err(|why| Failure::Write {
        path: path.to_owned(),
        why,
    })?;
    if writer.is_none() {
        return Err(Failure::Input(
            "--qlog is of QUIC lanes, and none of these is one: `--lanes quic,quic-datagram`"
                .to_owned(),
        ));
    }
    Ok(Some(Logs {
        folder: path.to_owned(),
        writer: writer.filter(|_| testbed != Testbed::Kernel),
    }))
}

impl Logs {
    /// Says what became of them, once all connections are gone; `of_guest` is what a guest
    /// wrote.
    pub(super) fn report(self, of_guest: GuestLogs) -> Result<(), Failure> {
        let files = match self.writer {
            None => copy(of_guest, &self.folder)?,
            Some(writer) => {
                let files = writer.finish().map_err(|error| cut(&self.folder, error))?;
                files.len()
            }
        };
        let path = self.folder.display();
        match files {
            0 => note!("lagometer: {path} holds no logs: the guest ended before it had any"),
            1 => note!("lagometer: {path} holds the log of one end of a connection"),
            files => note!("lagometer: {path} holds the logs of {files} ends of connections"),
        }
        Ok(())
    }
}

/// A log in `folder` ended early.
fn cut(folder: &Path, error: QlogError) -> Failure {
    Failure::Cut {
        path: folder.join(error.file),
        why: error.why.to_string(),
        missing: Missing(None),
    }
}

/// Copies a guest's files into a folder, and returns how many they are.
fn copy(logs: GuestLogs, folder: &Path) -> Result<usize, Failure> {
    let number = logs.files.len();
    for (name, mut file) in logs.files {
        let path = folder.join(name);
        create_private_file(&path)
            .and_then(|mut to| io::copy(&mut file, &mut to))
            .map_err(|why| Failure::Cut {
                path,
                why: why.to_string(),
                missing: Missing(None),
            })?;
    }
    if let Some(why) = logs.cut {
        return Err(Failure::Environment(why));
    }
    Ok(number)
}
