//! Bulk throughput of two connections in memory, on one core.
//!
//! `cargo bench -p lagometer-tcp` prints one line for each congestion control;
//! a number as the argument sets the gigabytes.

use std::time::{Duration, Instant as Clock};

use lagometer_tcp::congestion::Algorithm;
use lagometer_tcp::{Config, Connection, Endpoint, Instant};

const CHUNK: usize = 64 * 1024;

fn run(congestion: Algorithm, bytes: u64) -> (f64, u64) {
    let config = Config {
        congestion,
        ..Config::default()
    };
    let mut now = Instant::from_millis(1_000);
    let mut a = Endpoint::new([10, 0, 0, 1].into(), config.clone(), 1);
    let mut b = Endpoint::new([10, 0, 0, 2].into(), config, 2);
    b.listen(80, 1);
    let remote = ([10, 0, 0, 2], 80).into();
    let Ok(client) = a.connect(now, remote) else {
        return (0.0, 0);
    };
    let mut server = None;
    let data = vec![7; CHUNK];
    let mut buffer = vec![0; CHUNK];
    let (mut received, mut packets) = (0, 0);
    let begin = Clock::now();
    while received < bytes {
        // A tenth of a millisecond a turn: the path's delay.
        now = now + Duration::from_micros(100);
        while a.with(client, |c| c.write(now, &data)).unwrap_or(0) > 0 {}
        while let Some(packet) = a.poll_transmit() {
            packets += 1;
            let _ = b.receive(now, &packet);
        }
        server = server.or_else(|| b.accept(80));
        if let Some(server) = server {
            let mut read = |c: &mut Connection| c.read(now, &mut buffer) as u64;
            loop {
                let length = b.with(server, &mut read).unwrap_or(0);
                received += length;
                if length == 0 {
                    break;
                }
            }
        }
        while let Some(packet) = b.poll_transmit() {
            packets += 1;
            let _ = a.receive(now, &packet);
        }
        a.handle_deadline(now);
        b.handle_deadline(now);
    }
    (begin.elapsed().as_secs_f64(), packets)
}

fn main() {
    let gigabytes = std::env::args().find_map(|arg| arg.parse().ok());
    let bytes = gigabytes.unwrap_or(1_u64).clamp(1, 1_000) * 1_000_000_000;
    for congestion in [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr] {
        let (seconds, packets) = run(congestion, bytes);
        println!(
            "{congestion:?}: {:.2} Gbit/s, {:.0} ns a packet",
            bytes as f64 * 8.0 / seconds / 1e9,
            seconds * 1e9 / packets as f64,
        );
    }
}
