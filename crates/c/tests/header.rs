//! The header is what the crate says: `LAGOMETER_WRITE_HEADER=1` writes it anew.

use std::fs;
use std::path::Path;

#[test]
fn the_header_is_made_of_the_crate() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = here.join("include/lagometer.h");
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::generate_with_config(here, config)
        .unwrap()
        .write(&mut made);
    let made = String::from_utf8(made).unwrap();
    if std::env::var_os("LAGOMETER_WRITE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == made,
        "{} is not what the crate says: LAGOMETER_WRITE_HEADER=1 cargo test -p lagometer-c",
        path.display()
    );
}
