//! `lagometer shape --testbed kernel`: any program behind an emulated link, on a
//! real kernel in virtual time. What happens once happens again, for the same
//! seed and as often as is asked.

mod playing;
mod twice;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use lagometer_guest::{Cut, Ended, Kernel, Outcome};

use super::in_guest::{self, make_capture, packets, save_packets, who_computes};
use crate::cli::ShapeArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use playing::{Captured, play};

/// Runs the commands in a guest, and again if that is asked.
pub(super) fn shape_in_guest(arguments: &ShapeArguments) -> Result<ExitCode, Failure> {
    if let Some(folder) = &arguments.keep {
        check_is_free(folder)?;
    }
    let kernel = in_guest::kernel(&arguments.guest)?;
    make_places(arguments)?;
    let stop = interrupt::listen()?;
    announce(arguments, &kernel);
    let mut captured = Captured::new(arguments, true);
    let ended = play(arguments, &kernel, &mut captured, stop)?;
    if let Some(path) = &arguments.pcap {
        save_packets(&packets(&ended), path)?;
    }
    if let Some(folder) = &arguments.keep {
        save_files(&ended, folder)?;
    }
    let code = exit_code(arguments, &ended)?;
    if !arguments.twice || matches!(ended.outcome, Outcome::Cut(_)) {
        return Ok(code);
    }
    let mut again = Captured::new(arguments, false);
    let ended_again = play(arguments, &kernel, &mut again, stop)?;
    exit_code(arguments, &ended_again)?;
    let first = twice::Playing::new(&captured, &ended);
    let second = twice::Playing::new(&again, &ended_again);
    Ok(match first.difference(&second) {
        None => {
            note!(
                "lagometer: played twice: the same {} lines of output at the same times, {} \
                 packets, exit code",
                first.lines(),
                first.packets(),
            );
            code
        }
        Some(difference) => {
            note!("lagometer: played twice: not the same: {difference}");
            Exit::DoesNotHold.into()
        }
    })
}

fn announce(arguments: &ShapeArguments, kernel: &Kernel) {
    let record = kernel.record();
    note!(
        "lagometer: Linux {} at {} Hz in virtual time, over `{}`, seed {}",
        record.version,
        record.hz,
        arguments.network,
        arguments.seed,
    );
}

/// Files are kept where nothing is.
fn check_is_free(folder: &Path) -> Result<(), Failure> {
    let why = match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => return Ok(()),
            Some(_) => String::new(),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => format!(": {error}"),
    };
    Err(Failure::Input(format!(
        "{}: --keep needs a folder that does not exist or is empty{why}",
        folder.display()
    )))
}

/// Makes what is written at the end, so that it is known before anything is played if it
/// cannot be.
fn make_places(arguments: &ShapeArguments) -> Result<(), Failure> {
    let failed = |path: &Path, why| Failure::Write {
        path: path.to_owned(),
        why,
    };
    if let Some(folder) = &arguments.keep {
        fs::create_dir_all(folder).map_err(|why| failed(folder, why))?;
    }
    arguments
        .pcap
        .as_ref()
        .map_or(Ok(()), |path| make_capture(path))
}

fn save_files(ended: &Ended, folder: &Path) -> Result<(), Failure> {
    if !ended.has_kept() {
        note!("lagometer: no files are kept: the guest had to be ended");
        return Ok(());
    }
    let omitted = ended.copy_kept(folder).map_err(|why| Failure::Write {
        path: folder.to_owned(),
        why,
    })?;
    if let Some(which) = omitted {
        note!("lagometer: not all files are kept: {which}");
    }
    Ok(())
}

/// The code of the commands, or why they have none.
fn exit_code(arguments: &ShapeArguments, ended: &Ended) -> Result<ExitCode, Failure> {
    match ended.outcome {
        // Exit codes have eight bits, here as in shells.
        Outcome::Exited(code) => Ok(ExitCode::from(code as u8)),
        Outcome::Cut(Cut::Stopped) => {
            note!(
                "lagometer: stopped with the clock at {:.6} s; {} had the processor",
                ended.at.as_secs_f64(),
                who_computes(ended),
            );
            Ok(Exit::Interrupted.into())
        }
        Outcome::Cut(Cut::Time | Cut::Silence) => Err(Failure::Environment(format!(
            "ended after {} of real time, its clock at {:.6} s when it last said anything; {} \
             had the processor; --real-limit gives it longer",
            arguments.guest.real_limit,
            ended.at.as_secs_f64(),
            who_computes(ended),
        ))),
    }
}

/// Writes a line to an output. Whoever has stopped reading wants no more of it.
fn write_line(mut to: impl io::Write, line: &[u8]) {
    let _ = to.write_all(line).and_then(|()| to.flush());
}
