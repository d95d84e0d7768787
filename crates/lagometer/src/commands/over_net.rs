//! The parts of `run` that only the testbed `net` has.

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_lab::net::{NetOptions, OverNet, may_capture_all, play_over_net};
use lagometer_lab::{Resolved, RunnableLane};
use lagometer_link::Profile;
use lagometer_remote::{Line, Remote};
use lagometer_results::{Document, Warning};
use lagometer_units::check_private_file;
use serde_json::json;

use crate::cli::RemoteArguments;
use crate::failure::Failure;

/// Plays the experiment over the path to `remote`.
pub(super) fn play(
    resolved: &Resolved,
    options: &NetOptions,
    remote: &Remote,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<OverNet, Failure> {
    Ok(play_over_net(resolved, options, remote, progress, stop)?)
}

/// Refuses a capture at `path` where there are lanes whose packets this program neither
/// makes nor may see, or it cannot be written.
pub(super) fn check_capture(resolved: &Resolved, path: &std::path::Path) -> Result<(), Failure> {
    let unseen = |lane: &&RunnableLane| lane.transport.endpoint().is_none();
    let unseen: Vec<&str> = resolved
        .lanes
        .iter()
        .filter(unseen)
        .map(|lane| &*lane.name)
        .collect();
    if !unseen.is_empty() {
        may_capture_all().map_err(|why| unseen_lanes(&unseen, &why))?;
    }
    // The remote end may not be there: then an earlier capture is to be there still.
    check_private_file(path).map_err(|why| Failure::Write {
        path: path.to_owned(),
        why,
    })
}

/// What to do where these lanes' packets cannot be seen.
fn unseen_lanes(lanes: &[&str], why: &io::Error) -> Failure {
    let needs = if why.kind() == io::ErrorKind::Unsupported {
        "only Linux shows to a program".to_owned()
    } else {
        format!(
            "are shown to root and to whom root gives the right with `setcap cap_net_raw+ep \
             \"$(command -v lagometer)\"` ({why})"
        )
    };
    Failure::Input(format!(
        "--pcap: the packets of {} are made by the kernel or a library, and {needs}: leave them \
         out with `--lanes`, or capture with `tshark -i any -w FILE host ADDRESS`",
        lanes.join(", ")
    ))
}

/// What a path is called that nothing is known of.
pub(super) fn path_name(arguments: &RemoteArguments) -> String {
    match &arguments.to {
        Some(to) => format!("the path to {to}"),
        None => "loopback".to_owned(),
    }
}

/// The profile of a path of which nothing is known.
pub(super) fn unknown_path() -> Result<Profile, Failure> {
    Profile::from_text("net", "summary = \"a real path\"\n").map_err(Failure::input)
}

/// What is known of the path and its two ends after a run.
pub(super) struct Path {
    clocks: Option<Line>,
    remote_end: String,
    gone: Option<String>,
}

impl Path {
    pub(super) fn of(found: &OverNet, remote: &Remote) -> Self {
        Self {
            clocks: found.clocks,
            remote_end: remote.host().to_string(),
            gone: found.gone.clone(),
        }
    }

    /// Puts it into the run's document.
    pub(super) fn report_in(self, document: &mut Document) {
        if let Some(experiment) = document.experiment.as_object_mut() {
            experiment.insert("remote_end".to_owned(), self.as_json());
        }
        document
            .warnings
            .extend(self.clocks.map(|line| about_clocks(&line)));
        if let Some(why) = self.gone {
            document.partial = true;
            document.warnings.push(Warning {
                what: format!("the remote end was gone before the run was over: {why}"),
                why: "what was measured until then is shown; one-way figures and what the remote \
                      end counted are lost"
                    .to_owned(),
                mend: "see what `lagometer serve` said".to_owned(),
            });
        }
    }

    fn as_json(&self) -> serde_json::Value {
        let clocks = self.clocks.map(|line| {
            let (drift_ppm, drift_error_ppm) = line.drift_ppm();
            json!({
                "error_ms": millis(line.error()),
                "drift_ppm": drift_ppm,
                "drift_error_ppm": drift_error_ppm,
                "probes": line.probes(),
                "steps": line.steps(),
                "least_round_trip_ms": millis(line.least_round_trip()),
            })
        });
        json!({ "address": self.remote_end, "clocks": clocks })
    }
}

fn about_clocks(line: &Line) -> Warning {
    let (drift, drift_error) = line.drift_ppm();
    let error = millis(line.error());
    if line.steps() > 0 {
        return Warning {
            what: format!("a clock was stepped {} times during the run", line.steps()),
            why: "one-way delays from before the last step are wrong; round trips are not touched"
                .to_owned(),
            mend: "find out what sets the clock, and run again".to_owned(),
        };
    }
    Warning {
        what: format!("one-way delays are known to ±{error:.3} ms"),
        why: format!(
            "they rest on how far apart the two clocks are (drift {drift:.1} ±{drift_error:.1} \
             ppm), which a path of {:.3} ms round trip hides so well; round trips are not touched",
            millis(line.least_round_trip())
        ),
        mend: String::new(),
    }
}

fn millis(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e6).round() / 1e3
}
