//! A service of the game's own that is asked over HTTP.
//!
//! It is sent `POST` with JSON, `{"player": …, "loginToken": …, "address": …,
//! "connectionType": "CLIENT"}`, and answers with a status: 2xx lets in, 404
//! says that there is no such player, 401 and 403 that the token is wrong;
//! anything else, or silence, is a failure and closes the connection.
//!
//! A few threads ask, so that one slow answer keeps nobody else waiting. No more
//! logins are with them than they can soon ask about; the rest wait with
//! [`Waiting`](super::Waiting), where those are passed over that have hung up.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lagometer_limits::LineRate;

use crate::core::{AuthRequest, AuthVerdict, Peer, Ticket};
use crate::server::journal::LINES_PER_S;
use crate::server::poller::Waker;

/// Threads that ask.
const THREADS: usize = 4;

/// Logins handed to the threads at most, so that none of them has to wait for
/// the next.
const IN_HAND: usize = 2 * THREADS;

/// A service and those who ask it.
#[derive(Debug)]
pub(in crate::server) struct HttpProvider {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    waker: Waker,
    /// Of warnings, which any client that logs in may cause.
    warnings: Mutex<LineRate>,
    started: Instant,
}

#[derive(Debug, Default)]
struct State {
    requests: VecDeque<AuthRequest>,
    verdicts: VecDeque<(Ticket, AuthVerdict)>,
    /// Requests that have no verdict yet.
    in_hand: usize,
    over: bool,
}

impl HttpProvider {
    pub(super) fn start(url: &str, timeout: Duration, waker: Waker) -> Arc<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            waker,
            warnings: Mutex::new(LineRate::new(LINES_PER_S)),
            started: Instant::now(),
        });
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(timeout))
            .max_redirects(0)
            .http_status_as_error(false)
            .build()
            .into();
        for number in 0..THREADS {
            let (agent, url, shared) = (agent.clone(), url.to_owned(), Arc::clone(&shared));
            let thread = std::thread::Builder::new().name(format!("login-{number}"));
            // Where no thread can be had at all, logins wait and time out.
            let _ = thread.spawn(move || run(&agent, &url, &shared));
        }
        Arc::new(Self { shared })
    }

    /// Whether another login may be handed over.
    pub(super) fn is_free(&self) -> bool {
        self.shared.lock().in_hand < IN_HAND
    }

    /// Has the service asked.
    pub(super) fn ask(&self, request: AuthRequest) -> Option<AuthVerdict> {
        let mut state = self.shared.lock();
        state.in_hand += 1;
        state.requests.push_back(request);
        drop(state);
        self.shared.work.notify_one();
        None
    }

    /// Whether verdicts are still to come, or to be polled.
    pub(super) fn has_any_in_hand(&self) -> bool {
        let state = self.shared.lock();
        state.in_hand > 0 || !state.verdicts.is_empty()
    }

    pub(super) fn poll(&self) -> Option<(Ticket, AuthVerdict)> {
        self.shared.lock().verdicts.pop_front()
    }
}

impl Drop for HttpProvider {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No step under the lock can stop half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a warning is to be written, and how many were not before it.
    fn warning_is_due(&self) -> Option<u64> {
        let warnings = self.warnings.lock();
        let mut warnings = warnings.unwrap_or_else(PoisonError::into_inner);
        warnings.due(self.started.elapsed())
    }

    /// The next to ask about; none when the provider is no more.
    fn next(&self) -> Option<AuthRequest> {
        let mut state = self.lock();
        loop {
            if state.over {
                return None;
            }
            if let Some(request) = state.requests.pop_front() {
                return Some(request);
            }
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// One thread's life.
fn run(agent: &ureq::Agent, url: &str, shared: &Shared) {
    while let Some(request) = shared.next() {
        let verdict = ask(agent, url, &request, shared);
        let mut state = shared.lock();
        state.in_hand -= 1;
        state.verdicts.push_back((request.ticket, verdict));
        drop(state);
        // For the verdict, and for those who wait until a thread is free.
        shared.waker.wake();
    }
}

fn ask(agent: &ureq::Agent, url: &str, request: &AuthRequest, shared: &Shared) -> AuthVerdict {
    let body = serde_json::json!({
        "player": request.player,
        "loginToken": request.login_token,
        "address": request.address.map(|address| address.to_string()),
        "connectionType": match request.peer {
            Peer::Server => "SERVER",
            Peer::Client => "CLIENT",
        },
    });
    let answer = agent
        .post(url)
        .header("content-type", "application/json")
        .send(body.to_string());
    match answer.map(|answer| answer.status().as_u16()) {
        Ok(200..=299) => AuthVerdict::Admit,
        Ok(404) => AuthVerdict::WrongPlayer,
        Ok(401 | 403) => AuthVerdict::WrongLogin,
        Ok(status) => {
            if let Some(left_out) = shared.warning_is_due() {
                tracing::warn!(status, left_out, "the login service gave no verdict");
            }
            AuthVerdict::Failed
        }
        Err(error) => {
            if let Some(left_out) = shared.warning_is_due() {
                tracing::warn!(%error, left_out, "the login service cannot be asked");
            }
            AuthVerdict::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::server::poller::{Events, Poller, waker};
    use crate::server::providers::signed_token::tests::request;

    /// Asks a service that answers so.
    fn verdict(answer: &'static str) -> AuthVerdict {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/login", listener.local_addr().unwrap());
        let service = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = String::new();
            let mut buffer = [0; 4096];
            while !asked.contains('}') {
                let bytes = stream.read(&mut buffer).unwrap();
                asked.push_str(std::str::from_utf8(&buffer[..bytes]).unwrap());
            }
            stream.write_all(answer.as_bytes()).unwrap();
            asked
        });
        let poller = Poller::new().unwrap();
        let waker = waker(&poller, 0).unwrap();
        let provider = HttpProvider::start(&url, Duration::from_secs(10), waker);
        let request = request("eve", "secret");
        let ticket = request.ticket;
        assert_eq!(provider.ask(request), None);
        poller.wait(None, &mut Events::new()).unwrap();
        let asked = service.join().unwrap();
        assert!(
            asked.contains(r#""player":"eve","loginToken":"secret""#),
            "{asked}"
        );
        let (answered, verdict) = provider.poll().unwrap();
        assert_eq!(answered, ticket);
        verdict
    }

    #[test]
    fn the_status_is_the_verdict() {
        let end = "content-length: 0\r\nconnection: close\r\n\r\n";
        for (status, expected) in [
            ("200 OK", AuthVerdict::Admit),
            ("404 Not Found", AuthVerdict::WrongPlayer),
            ("403 Forbidden", AuthVerdict::WrongLogin),
            ("500 Oh", AuthVerdict::Failed),
            ("302 Elsewhere", AuthVerdict::Failed),
        ] {
            let answer = format!("HTTP/1.1 {status}\r\n{end}").leak();
            assert_eq!(verdict(answer), expected, "{status}");
        }
    }
}
