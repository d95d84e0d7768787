//! Turns `proto/*.proto` into Rust types and a descriptor set, both in
//! `OUT_DIR`, with a protobuf compiler written in Rust: nothing needs to be
//! installed.

use std::{env, error::Error, fs, path::PathBuf};

const FILES: [&str; 7] = [
    "channeld.proto",
    "unity_common.proto",
    "unreal_common.proto",
    "tps.proto",
    "chat.proto",
    "tanks.proto",
    "replay.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");

    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_files(FILES)?;

    prost_build::Config::new()
        .btree_map(["."])
        .bytes(["."])
        .compile_fds(compiler.file_descriptor_set())?;

    // The schema's descriptors keep the files' options, which the set above,
    // made of generated types, loses.
    let descriptors = PathBuf::from(env::var("OUT_DIR")?).join("bundled.binpb");
    compiler.include_source_info(false);
    fs::write(descriptors, compiler.encode_file_descriptor_set())?;
    Ok(())
}
