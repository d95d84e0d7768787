//! Compiles the shim against the system's UDT and finds the system's SRT, each where
//! it is asked for.

fn main() {
    println!("cargo::rerun-if-changed=shim");
    #[cfg(any(feature = "udt", feature = "srt"))]
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system != "linux") {
        println!("cargo::error=Linux alone has the features `udt` and `srt`: leave them out");
        return;
    }
    #[cfg(feature = "udt")]
    link_udt();
    #[cfg(feature = "srt")]
    link_srt();
}

#[cfg(feature = "udt")]
fn link_udt() {
    let mut shim = cc::Build::new();
    shim.cpp(true)
        .std("c++11")
        .include("shim")
        .opt_level(3)
        // Sequence numbers wrap.
        .flag_if_supported("-fwrapv")
        .flag_if_supported("-fvisibility=hidden");
    // UDT has no file for pkg-config: that its header is found says that it is
    // there.
    if let Err(error) = shim.clone().file("shim/fixed_window.h").try_expand() {
        let why = error.to_string();
        println!(
            "cargo::error=the feature `udt` needs libudt 4.11 and a C++ compiler: \
             apt-get install libudt-dev g++ ({})",
            why.lines().next().unwrap_or_default()
        );
        return;
    }
    shim.files([
        "shim/api.cpp",
        "shim/fixed_window.cpp",
        "shim/loss_reports.cpp",
        "shim/rate_control_4_10.cpp",
    ])
    .compile("udt4_shim");
    println!("cargo::rustc-link-lib=udt");
}

#[cfg(feature = "srt")]
fn link_srt() {
    if let Err(error) = pkg_config::Config::new()
        .atleast_version("1.5")
        .probe("srt")
    {
        println!(
            "cargo::error=the feature `srt` needs libsrt 1.5 and pkg-config: \
             apt-get install libsrt-openssl-dev pkg-config ({error})"
        );
    }
}
