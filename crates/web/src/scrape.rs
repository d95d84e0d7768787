//! Asking another process for its metrics, as Prometheus does, and reading what
//! it says.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a connection, and an answer, is waited for.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Longer answers are cut off.
const MOST_BYTES: u64 = 4 << 20;

/// What `/metrics` at `metrics` answers.
///
/// # Errors
///
/// The system's: nobody listens there, or it does not answer within seconds; and of kind
/// `InvalidData` where the answer is no page of metrics, with its status.
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
    body(&text).map(str::to_owned)
}

/// The body of an answer that is one.
fn body(answer: &str) -> io::Result<&str> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.lines().next().unwrap_or_default();
    if status.starts_with("HTTP/1.") && status.split(' ').nth(1) == Some("200") {
        return Ok(body);
    }
    let shown: String = status
        .chars()
        .filter(|it| !it.is_control())
        .take(80)
        .collect();
    let why = format!("`GET /metrics` was answered `{shown}`");
    Err(io::Error::new(io::ErrorKind::InvalidData, why))
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
            Some(rest) => {
                let end = end_of_labels(rest)?;
                (&rest[..end], &rest[end + 1..])
            }
            None => ("", rest.strip_prefix(' ')?),
        };
        let value = value.split_whitespace().next()?.parse().ok()?;
        Some((labels, value))
    })
}

/// Where the brace stands that ends a sample's labels: one within a label's value, which is
/// quoted, does not.
fn end_of_labels(text: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'}' if !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
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

    #[test]
    fn labels_end_where_their_values_do() {
        let text =
            "calls{path=\"/a}/{id\",by=\"a \\\"}\"} 3\ncalls{path=\"/b\"} 4\ncalls{path=\"} 5\n";
        let found: Vec<_> = samples(text, "calls").collect();
        let first = "path=\"/a}/{id\",by=\"a \\\"}\"";
        assert_eq!(found, [(first, 3.0), ("path=\"/b\"", 4.0)]);
    }

    #[test]
    fn an_answer_that_is_no_page_of_metrics_is_refused_with_its_status() {
        assert_eq!(
            body("HTTP/1.1 200 OK\r\nX: y\r\n\r\na 1\n").unwrap(),
            "a 1\n"
        );
        for answer in ["HTTP/1.1 404 Not Found\r\n\r\na 1\n", "SSH-2.0-x\r\n", ""] {
            let why = body(answer).unwrap_err();
            assert_eq!(why.kind(), io::ErrorKind::InvalidData);
            let status = answer.lines().next().unwrap_or_default();
            assert!(why.to_string().contains(status), "{why}");
        }
    }
}
