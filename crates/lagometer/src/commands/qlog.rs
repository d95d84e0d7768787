//! The parts of `run` that write logs of connections.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use lagometer_lab::{QlogFolder, Resolved, RunOptions};
use lagometer_testbed::Testbed;
use lagometer_units::create_private_file;

use crate::failure::Failure;

/// Logs that are being written.
pub(super) struct Logs {
    folder: PathBuf,
    /// Who writes them; none where guests do, which have files of their own.
    writer: Option<QlogFolder>,
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
    /// Says what became of them, once all connections are gone; `of_guest` are the files
    /// that a guest wrote.
    pub(super) fn report(self, of_guest: Vec<(String, File)>) -> Result<(), Failure> {
        let path = self.folder.display();
        let files = match self.writer {
            None => copy(of_guest, &self.folder)?,
            Some(writer) => match writer.finish() {
                Ok(files) => files.len(),
                Err(why) => {
                    note!("lagometer: {path}: writing ended early: {why}");
                    return Ok(());
                }
            },
        };
        match files {
            0 => note!("lagometer: {path} holds no logs: the guest ended before it had any"),
            1 => note!("lagometer: {path} holds the log of one end of a connection"),
            files => note!("lagometer: {path} holds the logs of {files} ends of connections"),
        }
        Ok(())
    }
}

/// Copies a guest's files into a folder, and returns how many they are.
fn copy(files: Vec<(String, File)>, folder: &Path) -> Result<usize, Failure> {
    let number = files.len();
    for (name, mut file) in files {
        let path = folder.join(name);
        create_private_file(&path)
            .and_then(|mut to| io::copy(&mut file, &mut to))
            .map_err(|why| Failure::Write { path, why })?;
    }
    Ok(number)
}
