//! Traffic as a text with a message on each line.

use std::fmt::Write as _;
use std::time::Duration;

use lagometer_link::Direction;

use super::{
    BadTraffic, LARGEST_MESSAGE_BYTES, LONGEST, MOST_MESSAGES, Origin, RecordedMessage, Traffic,
};

/// The head of what is written.
const HEAD: &str = "seconds,direction,bytes\n";

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Reads a log.
pub(super) fn read(bytes: &[u8]) -> Result<Traffic, BadTraffic> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        BadTraffic::Line {
            line: before.split(|&byte| byte == b'\n').count(),
            what: "is neither text nor a capture (pcapng, pcap)".to_owned(),
        }
    })?;
    let mut ways = [Vec::new(), Vec::new()];
    // The first time and the newest, each as it is written.
    let mut first: Option<u64> = None;
    let mut newest: (u64, &str) = (0, "");
    for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let text = text.split('#').next().unwrap_or_default().trim();
        let is_head = first.is_none() && !text.contains(|letter: char| letter.is_ascii_digit());
        if text.is_empty() || is_head {
            continue;
        }
        let (written, at, direction, bytes) =
            message(text).map_err(|what| BadTraffic::Line { line, what })?;
        if first.is_some() && at < newest.0 {
            return Err(BadTraffic::Backwards {
                line,
                at: written.to_owned(),
                before: newest.1.to_owned(),
            });
        }
        newest = (at, written);
        let start = *first.get_or_insert(at);
        ways[direction.index()].push(RecordedMessage {
            at: Duration::from_nanos(at - start),
            bytes,
        });
        if ways.iter().map(Vec::len).sum::<usize>() > MOST_MESSAGES {
            return Err(BadTraffic::TooMany);
        }
    }
    Traffic::of(ways, Origin::default())
}

/// What a line says: its time as it is written and in nanoseconds, its direction and
/// bytes.
fn message(text: &str) -> Result<(&str, u64, Direction, u32), String> {
    let separates = |letter: char| matches!(letter, ',' | ';') || letter.is_whitespace();
    let mut words = text.split(separates).filter(|word| !word.is_empty());
    let (Some(at), Some(way), Some(bytes), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("has not three columns".to_owned());
    };
    let nanos = nanos(at).ok_or_else(|| {
        let most = LONGEST.as_secs();
        let at = short(at);
        format!("`{at}` is no time in seconds, from 0 on (and {most} s at most from the first)")
    })?;
    let direction = match way.to_ascii_lowercase().as_str() {
        "up" => Direction::Up,
        "down" => Direction::Down,
        _ => return Err(format!("`{}` is neither `up` nor `down`", short(way))),
    };
    let size = bytes.parse().ok();
    let size = size.filter(|&size| size <= LARGEST_MESSAGE_BYTES);
    let size = size.ok_or_else(|| format!("`{}` are no bytes of a message", short(bytes)))?;
    Ok((at, nanos, direction, size))
}

/// A word of an untrusted file as it fits into a line.
fn short(word: &str) -> String {
    let letters = word.chars().filter(|letter| !letter.is_control());
    letters.take(40).collect()
}

/// A decimal number of seconds in nanoseconds, exactly; digits behind the ninth are left
/// out.
fn nanos(written: &str) -> Option<u64> {
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let seconds = match whole {
        "" => 0,
        digits => digits.parse::<u64>().ok()?,
    };
    let fraction = &fraction[..fraction.len().min(9)];
    let nanos = format!("{fraction:0<9}").parse::<u64>().ok()?;
    seconds.checked_mul(SECOND)?.checked_add(nanos)
}

/// Writes a log, in order of time; at one instant what goes up comes first.
pub(super) fn write(traffic: &Traffic) -> String {
    let mut messages: Vec<(Duration, Direction, u32)> = Direction::BOTH
        .into_iter()
        .flat_map(|direction| {
            let way = traffic.way(direction).iter();
            way.map(move |message| (message.at, direction, message.bytes))
        })
        .collect();
    messages.sort_by_key(|&(at, direction, _)| (at, direction));
    let mut text = HEAD.to_owned();
    for (at, direction, bytes) in messages {
        let (seconds, nanos) = (at.as_secs(), at.subsec_nanos());
        let fraction = format!("{nanos:09}");
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        let _ = writeln!(text, "{seconds}{point}{fraction},{direction},{bytes}");
    }
    text
}
