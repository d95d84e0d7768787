//! Asking another process for its metrics, as Prometheus does, and reading what
//! it says.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a connection, and an answer, is waited for.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Longer answers are cut off.
const MOST_BYTES: u64 = 4 << 20;

/// What `/metrics` at `metrics` answers, headers and all.
///
/// # Errors
///
/// The system's: nobody listens there, or it does not answer within seconds.
pub fn fetch(metrics: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&metrics, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(
        stream,
        "GET /metrics HTTP/1.0\r\nHost: {metrics}\r\nAccept: text/plain\r\n\r\n"
    )?;
    let mut text = String::new();
    stream.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The sum of all samples of a name in Prometheus' text format; `None` where
/// there is none.
#[must_use]
pub fn sum(text: &str, name: &str) -> Option<f64> {
    samples(text, name)
        .map(|(_, value)| value)
        .reduce(|sum, value| sum + value)
}

/// Labels and values of the samples of a name, which a counter may also bear
/// with `_total` at its end.
pub fn samples<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
    text.lines().filter_map(move |line| {
        let rest = line.strip_prefix(name)?;
        let rest = rest.strip_prefix("_total").unwrap_or(rest);
        let (labels, value) = match rest.strip_prefix('{') {
            Some(rest) => rest.split_once('}')?,
            None => ("", rest.strip_prefix(' ')?),
        };
        let value = value.split_whitespace().next()?.parse().ok()?;
        Some((labels, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# HELP messages_in Received messages\n\
# TYPE messages_in counter\n\
messages_in{channel=\"GLOBAL\",msgType=\"1\"} 4\n\
messages_in{channel=\"GLOBAL\",msgType=\"8\"} 1.5e2 1700000000\n\
messages_in_flight 9\n\
channel_tick_duration{type=\"TEST\"} 1\n\
channel_tick_duration{type=\"GLOBAL\"} 7.25\n\
process_cpu_seconds_total 12\n\
frames_total{x=\"y\"} 3\n";

    #[test]
    fn samples_are_found_by_name_and_label() {
        assert_eq!(sum(TEXT, "messages_in"), Some(154.0));
        assert_eq!(sum(TEXT, "process_cpu_seconds_total"), Some(12.0));
        assert_eq!(sum(TEXT, "frames"), Some(3.0));
        assert_eq!(sum(TEXT, "absent"), None);
        let ticks: Vec<_> = samples(TEXT, "channel_tick_duration").collect();
        assert_eq!(ticks, [("type=\"TEST\"", 1.0), ("type=\"GLOBAL\"", 7.25)]);
    }
}
