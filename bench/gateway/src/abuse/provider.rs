//! A login service of the game's own that takes its time, as one that asks a
//! database does.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::deployment::TOKEN;

/// How long it takes over each login.
pub(super) const DELAY: Duration = Duration::from_millis(20);

/// How long a request may take to arrive.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);

/// Longer requests are not read.
const REQUEST_BYTES: usize = 256 << 10;

/// A login service that runs until this is dropped.
#[derive(Debug)]
pub(super) struct Provider {
    /// Where it is asked.
    pub(super) address: SocketAddr,
    asked: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Provider {
    /// Starts a service on a free port.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let provider = Self {
            address: listener.local_addr()?,
            asked: Arc::default(),
            is_over: Arc::default(),
        };
        let (asked, is_over) = (Arc::clone(&provider.asked), Arc::clone(&provider.is_over));
        thread::Builder::new()
            .name("login-service".into())
            .spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let asked = Arc::clone(&asked);
                    // A caller keeps its connection: a thread for each.
                    thread::spawn(move || serve(stream, &asked));
                }
            })?;
        Ok(provider)
    }

    /// How often it was asked.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // So that it looks.
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers one caller until it goes.
fn serve(mut stream: TcpStream, asked: &AtomicU64) {
    let _ = stream.set_read_timeout(Some(REQUEST_WITHIN));
    let mut waiting = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        while let Some(length) = request_length(&waiting) {
            let request: Vec<u8> = waiting.drain(..length).collect();
            asked.fetch_add(1, Ordering::Relaxed);
            thread::sleep(DELAY);
            if stream.write_all(answer(&request)).is_err() {
                return;
            }
        }
        match stream.read(&mut buffer) {
            Ok(bytes @ 1..) if waiting.len() <= REQUEST_BYTES => {
                waiting.extend_from_slice(&buffer[..bytes]);
            }
            _ => return,
        }
    }
}

fn answer(request: &[u8]) -> &'static [u8] {
    let token = format!("\"loginToken\":\"{TOKEN}\"");
    if request
        .windows(token.len())
        .any(|part| part == token.as_bytes())
    {
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    } else {
        b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
    }
}

/// The length of the first request, head and body, once it is there.
fn request_length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..head]).ok()?;
    let body = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok())
        .unwrap_or(0);
    let length = head.checked_add(body)?;
    (bytes.len() >= length).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_token_is_let_in_and_requests_are_distinguished() {
        let provider = Provider::start().unwrap();
        let mut stream = TcpStream::connect(provider.address).unwrap();
        let ask = |token: &str| {
            let body = format!("{{\"player\":\"p\",\"loginToken\":\"{token}\"}}");
            format!(
                "POST /login HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        };
        let both = format!("{}{}", ask(TOKEN), ask("wrong"));
        stream.write_all(both.as_bytes()).unwrap();
        let mut answers = String::new();
        let mut buffer = [0; 256];
        while answers.matches("\r\n\r\n").count() < 2 {
            let bytes = stream.read(&mut buffer).unwrap();
            answers.push_str(std::str::from_utf8(&buffer[..bytes]).unwrap());
        }
        assert!(answers.starts_with("HTTP/1.1 200"), "{answers}");
        assert!(answers.contains("HTTP/1.1 403"), "{answers}");
        assert_eq!(provider.asked(), 2);
    }
}
