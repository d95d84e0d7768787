//! Recordings, streams and requests over real sockets in hosts of their own.

use crate::workloads_of_tests::{ALL, check, write};
use crate::{permitted, play};

#[test]
fn recordings_streams_and_requests_are_played_over_real_sockets() {
    let Some(_alone) = permitted() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    for (name, ..) in ALL {
        let file = folder.path().join(format!("{name}.toml"));
        let document = play(&[file.to_str().unwrap()]);
        assert_eq!(document["testbed"], "emu");
        check(name, &document, 1, false);
    }
}
