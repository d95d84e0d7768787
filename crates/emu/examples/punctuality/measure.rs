//! Steady traffic through an emulated link of 20 ms, for each device and way of
//! waiting.

use std::error::Error;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use lagometer_emu::{Device, LaneAddresses, LaneSetup, Network, Permission, Settings, Waiting};
use lagometer_link::{Link, Profile, Regime};
use lagometer_units::{Clock, Time};

/// Measures and prints a line for each.
pub(crate) fn measure_all() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |default: f64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (packets_per_second, seconds) = (argument(20_000.0)?, argument(2.0)?);
    Permission::acquire()?;
    println!(
        "{packets_per_second} packets/s of 500 B for {seconds} s; release error and wake in us\n\
         device    waiting  class      packets   p50    p99   p99.9      max | wake p50   p99 | absence | cpu %"
    );
    for device in [Device::Tun, Device::Ethernet] {
        for waiting in [
            Waiting::Sleep,
            Waiting::Hybrid {
                spin: Duration::from_micros(50),
            },
            Waiting::Hybrid {
                spin: Duration::from_micros(100),
            },
            Waiting::Hybrid {
                spin: Duration::from_micros(300),
            },
            Waiting::Spin,
        ] {
            let settings = Settings {
                device,
                waiting,
                ..Settings::default()
            };
            measure(&settings, packets_per_second, seconds)?;
        }
    }
    Ok(())
}

fn measure(
    settings: &Settings,
    packets_per_second: f64,
    seconds: f64,
) -> Result<(), Box<dyn Error>> {
    let profile = Profile::from_text("here", "summary = \"20 ms\"\n[both]\ndelay = \"20 ms\"\n")?;
    let lane = LaneSetup {
        name: "steady".to_owned(),
        link: Link::new(&profile, 1, Regime::Time, Time::ZERO).into(),
    };
    let network = Network::start(settings, Clock::start(), vec![lane])?;
    let addresses = LaneAddresses::of(0);
    let local = network
        .local()
        .run(move || UdpSocket::bind((addresses.local_v4, 0)))??;
    let remote = network
        .remote()
        .run(move || UdpSocket::bind((addresses.remote_v4, 0)))??;
    local.connect(remote.local_addr()?)?;
    remote.set_read_timeout(Some(Duration::from_millis(200)))?;
    let receiver = thread::spawn(move || while remote.recv(&mut [0; 600]).is_ok() {});
    let began = Instant::now();
    let packets = (packets_per_second * seconds) as u64;
    for nth in 0..packets {
        let due = Duration::from_secs_f64(nth as f64 / packets_per_second);
        while let Some(early) = due.checked_sub(began.elapsed()) {
            thread::sleep(early.saturating_sub(Duration::from_micros(150)));
        }
        local.send(&[0; 472])?;
    }
    thread::sleep(Duration::from_millis(50));
    let audit = network.stop()?.audit;
    let _ = receiver.join();
    let (error, wake) = (&audit.release_error_us, &audit.wake_late_us);
    println!(
        "{:9} {:8} {:10} {:7} {:5.1} {:6.1} {:7.1} {:8.1} | {:8.1} {:5.1} | {:7.0} | {:5.1}",
        audit.device,
        audit.waiting,
        audit.precedence,
        error.count,
        error.p50,
        error.p99,
        error.p99_9,
        error.max,
        wake.p50,
        wake.p99,
        audit.longest_absence_us,
        audit.router_cpu_pct,
    );
    Ok(())
}
