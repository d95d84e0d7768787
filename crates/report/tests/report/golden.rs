//! Comparing text with a checked-in file.

use std::path::Path;

/// Fails unless `text` equals the file `golden/NAME`.
///
/// With `LAGOMETER_BLESS=1` in the environment the file is written instead,
/// to be read before it is committed.
pub(crate) fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/report/golden")
        .join(name);
    if std::env::var_os("LAGOMETER_BLESS").is_some() {
        std::fs::write(&path, text).expect("the golden directory is writable");
        return;
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; LAGOMETER_BLESS=1 writes it", path.display()));
    assert!(
        text == expected,
        "{name} is no longer as checked in; LAGOMETER_BLESS=1 rewrites it\n--- now\n{text}\n--- expected\n{expected}"
    );
}
