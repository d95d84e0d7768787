//! What a result says of the libraries behind a transport is what was built.

use lagometer_transport::{OWN_LIBRARY, Spec, presets};

const LOCK: &str = include_str!("../../../Cargo.lock");

#[test]
fn stated_versions_are_those_of_the_lock_file() {
    for preset in presets() {
        let library = Spec::preset(preset.name).unwrap().library();
        if library == OWN_LIBRARY {
            continue;
        }
        let (name, version) = library.split_once(' ').unwrap();
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(LOCK.contains(&entry), "{library} is not what was built");
    }
}
