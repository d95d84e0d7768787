//! Worlds in real time, which need Linux: what they are asked for on other systems,
//! refused in one line with what to use instead.

use crate::failure::Failure;

fn refusal() -> Failure {
    Failure::Environment(
        "a world over sockets needs Linux; `--testbed sim` plays it here, in virtual time"
            .to_owned(),
    )
}

pub(super) mod cluster {
    use std::process::ExitCode;

    use super::refusal;
    use crate::cli::ClusterArguments;
    use crate::failure::Failure;

    /// Refuses.
    pub(in super::super) fn work(_: &str, _: &ClusterArguments) -> Result<ExitCode, Failure> {
        Err(refusal())
    }
}

pub(super) mod emulated {
    use std::process::ExitCode;

    use lagometer_world::Scenario;

    use super::refusal;
    use crate::cli::WorldArguments;
    use crate::failure::Failure;

    /// Refuses.
    pub(in super::super) fn emulate(
        _: &Scenario,
        _: &[u32],
        _: &WorldArguments,
    ) -> Result<ExitCode, Failure> {
        Err(refusal())
    }
}

pub(super) mod exporter {
    /// None: only worlds in real time are watched.
    #[expect(clippy::unnecessary_wraps, reason = "the shape that Linux has")]
    pub(crate) const fn described_metrics() -> prometheus::Result<String> {
        Ok(String::new())
    }
}

pub(super) mod in_guest {
    use std::process::ExitCode;
    use std::sync::atomic::AtomicBool;

    use lagometer_world::Scenario;

    use crate::cli::WorldArguments;
    use crate::commands::in_guest::kernel;
    use crate::failure::Failure;

    /// Refuses: no kernel is found.
    pub(in super::super) fn play_in_guest(
        _: &Scenario,
        _: &[u32],
        arguments: &WorldArguments,
    ) -> Result<ExitCode, Failure> {
        kernel(&arguments.guest)?;
        Err(super::refusal())
    }

    /// Refuses.
    pub(crate) fn play_within(_: &WorldArguments, _: &AtomicBool) -> Result<(), Failure> {
        Err(super::refusal())
    }
}

pub(super) mod sockets {
    use std::process::ExitCode;

    use lagometer_world::Scenario;

    use super::refusal;
    use crate::cli::WorldArguments;
    use crate::failure::Failure;

    /// Refuses.
    pub(in super::super) fn play_all(
        _: &Scenario,
        _: &[u32],
        _: &WorldArguments,
    ) -> Result<ExitCode, Failure> {
        Err(refusal())
    }
}
