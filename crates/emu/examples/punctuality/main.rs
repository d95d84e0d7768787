//! How punctual the emulated network's router is on this machine.
//!
//!     cargo run --release -p lagometer-emu --example punctuality [PACKETS_PER_SECOND [SECONDS]]

#[cfg(target_os = "linux")]
mod measure;

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    measure::measure_all()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("namespaces are Linux's");
}
