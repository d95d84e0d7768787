//! Compiles UDT, the rate control of its release before, and the shim through
//! which both are called.

const UDT: &str = "../../third_party/udt";

fn main() {
    let sources = [
        "api", "buffer", "cache", "ccc", "channel", "common", "core", "epoll", "list", "md5",
        "packet", "queue", "window",
    ];
    let mut library = build();
    for source in sources {
        library.file(format!("{UDT}/src/{source}.cpp"));
    }
    library
        .file(format!("{UDT}/release-4.10/rate_control.cpp"))
        .warnings(false)
        // Its threads are made through the shim, which keeps their book.
        .define("pthread_create", "lagometer_udt_pthread_create")
        .compile("udt4");

    build()
        .files(["shim/api.cpp", "shim/fixed_window.cpp", "shim/threads.cpp"])
        .compile("udt4_shim");

    println!("cargo::rustc-link-lib=pthread");
    println!("cargo::rerun-if-changed={UDT}");
    println!("cargo::rerun-if-changed=shim");
}

/// What both halves are compiled with: UDT's own flags.
fn build() -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .include(format!("{UDT}/src"))
        .include(format!("{UDT}/release-4.10"))
        .include("shim")
        .define("LINUX", None)
        .opt_level(3)
        .flag_if_supported("-finline-functions")
        .flag_if_supported("-fno-strict-aliasing")
        // Sequence numbers wrap.
        .flag_if_supported("-fwrapv")
        .flag_if_supported("-fvisibility=hidden");
    build
}
