//! The example in C, compiled against the static library by the system's compiler and
//! run: the same seed gives the same output, another seed another one. `CC` names
//! another compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What Rust's standard library wants of the system, besides C's library.
const SYSTEM_LIBRARIES: &[&str] = if cfg!(windows) {
    &["-lws2_32", "-lntdll", "-luserenv", "-lbcrypt"]
} else {
    &["-lpthread", "-ldl", "-lm"]
};

/// Where Cargo puts the static library: beside the program of this test.
fn library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let deps = program.parent().unwrap();
    // Of the last build, if several lie there.
    let mut found: Vec<_> = std::fs::read_dir(deps)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("liblagometer_c") && name.ends_with(".a")
        })
        .collect();
    found.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    found
        .pop()
        .expect("Cargo builds the static library with this test")
}

fn build(into: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = into.join("impaired_socket");
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-D_POSIX_C_SOURCE=200809L",
        ])
        .arg(here.join("examples/impaired_socket.c"))
        .arg("-I")
        .arg(here.join("include"))
        .arg(library())
        .args(SYSTEM_LIBRARIES)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a C compiler is there, for dependencies are compiled by it");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

#[test]
fn a_games_own_sockets_meet_the_same_network_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path());
    let play = |arguments: &[&str]| {
        let output = Command::new(&program).args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (code, first, stderr) = play(&["busy-wifi", "7"]);
    assert_eq!((code, &*stderr), (Some(0), ""));
    assert!(
        first.starts_with("busy-wifi, seed 7: 300 inputs, 2"),
        "some are lost: {first}"
    );
    assert_eq!(play(&["busy-wifi", "7"]).1, first);
    assert_ne!(
        play(&["busy-wifi", "8"]).1.replace("seed 8", "seed 7"),
        first
    );
    let (code, stdout, stderr) = play(&["busy-wify"]);
    assert_eq!((code, &*stdout), (Some(1), ""));
    assert!(
        stderr.contains("there is no network `busy-wify`"),
        "{stderr}"
    );
}
