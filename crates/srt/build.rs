//! Finds the system's libsrt, where it is asked for.

fn main() {
    #[cfg(feature = "srt")]
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
