//! Recordings, streams and requests on a real kernel in virtual time.

use crate::workloads_of_tests::{ALL, check, write};
use crate::{document, kernel, play};

#[test]
fn recordings_streams_and_requests_are_played_in_guests() {
    let Some(_alone) = kernel() else { return };
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    for (name, ..) in ALL {
        let file = folder.path().join(format!("{name}.toml"));
        let document = document(&play(&[file.to_str().unwrap()]));
        assert_eq!(document["testbed"], "kernel");
        check(name, &document, 1, true);
    }
}
