//! One connection over TCP, for programs that wait for what they asked.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::auth_result_message::AuthResult;
use lagometer_protocol::schema::Schema;
use thiserror::Error;

use crate::event::{Event, Handler, OwnedEvent};
use crate::mirror::Mirror;
use crate::outbox::{Outbox, SendError, Stub};
use crate::session::{ReceiveError, Session, Settings};

/// Why a client did not get what it waited for.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// What arrived is not a gateway's.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// Something was not taken for sending.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The gateway has closed the connection.
    #[error("the gateway has closed the connection")]
    Closed,
    /// It did not come in time. A gateway does not answer what it refuses.
    #[error("nothing of the kind came within {0:?}")]
    TimedOut(Duration),
    /// The gateway did not let the client in.
    #[error("the login was refused: {}", .0.as_str_name())]
    LoginRefused(AuthResult),
}

/// One connection to a gateway.
///
/// Requests go into the [`outbox`](Self::outbox) and out when the client next
/// waits or [flushes](Self::flush). All that arrives is kept, in order, until
/// it is asked for; channel data is also merged into the
/// [`mirror`](Self::mirror).
///
/// ```no_run
/// use std::time::Duration;
///
/// use lagometer_client::Settings;
/// use lagometer_client::blocking::Client;
/// use lagometer_protocol::messages::chatpb::ChatChannelData;
/// use lagometer_protocol::schema::Schema;
///
/// let soon = Duration::from_secs(5);
/// let mut client = Client::connect("127.0.0.1:12108", Settings::default(), Schema::bundled())?;
/// let own = client.login("player-1", "secret", soon)?;
/// let asked = client.outbox().subscribe(0, own, None)?;
/// client.answer(asked, soon)?;
/// client.wait_until(soon, |client| client.mirror().updates(0) > 0)?;
/// println!("{:?}", client.mirror().data::<ChatChannelData>(0));
/// # Ok::<_, lagometer_client::blocking::ClientError>(())
/// ```
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    session: Session,
    received: Received,
    buffer: Vec<u8>,
    is_closed: bool,
}

/// What has arrived and was not asked for yet.
#[derive(Debug)]
struct Received {
    events: VecDeque<OwnedEvent>,
    mirror: Mirror,
    conn_id: Option<u32>,
}

impl Handler for Received {
    fn on_event(&mut self, _outbox: &mut Outbox, event: Event<'_>) {
        if let Event::LoggedIn { conn_id, .. } = event {
            self.conn_id = Some(conn_id);
        }
        // Data that cannot be merged is still handed out as an event.
        let _ = self.mirror.take(self.conn_id, &event);
        self.events.push_back(event.into_owned());
    }
}

/// As much as is read at once.
const READ_BYTES: usize = 64 * 1024;

impl Client {
    /// Connects to a gateway: its server port for a game server, its client
    /// port for a player. `schema` holds the types of the channel data.
    ///
    /// # Errors
    ///
    /// The socket's.
    pub fn connect(
        address: impl ToSocketAddrs,
        settings: Settings,
        schema: Schema,
    ) -> Result<Self, ClientError> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            session: Session::new(settings),
            received: Received {
                events: VecDeque::new(),
                mirror: Mirror::new(schema),
                conn_id: None,
            },
            buffer: vec![0; READ_BYTES],
            is_closed: false,
        })
    }

    /// Logs in and waits to be let in. Returns the client's connection id.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub fn login(
        &mut self,
        player_token: &str,
        login_token: &str,
        within: Duration,
    ) -> Result<u32, ClientError> {
        let login = self.outbox().authenticate(player_token, login_token)?;
        let answer = self.take_event(within, |event| match event {
            OwnedEvent::LoggedIn { stub, .. } | OwnedEvent::LoginRefused { stub, .. } => {
                *stub == login
            }
            _ => false,
        })?;
        match answer {
            OwnedEvent::LoginRefused { result, .. } => Err(ClientError::LoginRefused(result)),
            _ => Ok(self.received.conn_id.unwrap_or_default()),
        }
    }

    /// What the client is to send.
    pub fn outbox(&mut self) -> &mut Outbox {
        self.session.outbox()
    }

    /// The client's connection id, once it is logged in.
    #[must_use]
    pub fn conn_id(&self) -> Option<u32> {
        self.session.conn_id()
    }

    /// The channels' data so far.
    #[must_use]
    pub fn mirror(&self) -> &Mirror {
        &self.received.mirror
    }

    /// The same, to merge own updates into, which the gateway does not send.
    pub fn mirror_mut(&mut self) -> &mut Mirror {
        &mut self.received.mirror
    }

    /// Sends what is in the outbox.
    ///
    /// # Errors
    ///
    /// The socket's.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        let outbox = self.session.outbox();
        let pending = outbox.pending();
        let bytes = pending.len();
        if bytes > 0 {
            self.stream.write_all(pending)?;
            outbox.sent(bytes);
        }
        Ok(())
    }

    /// The next event. `None` when nothing came within that time.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; what had arrived before the end is handed out first.
    pub fn next_event(&mut self, within: Duration) -> Result<Option<OwnedEvent>, ClientError> {
        match self.take_event(within, |_| true) {
            Ok(event) => Ok(Some(event)),
            Err(ClientError::TimedOut(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The answer to a request. Other events stay for later.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; [`ClientError::TimedOut`] when the gateway refused.
    pub fn answer(&mut self, asked: Stub, within: Duration) -> Result<FromGateway, ClientError> {
        let event = self.take_event(
            within,
            |event| matches!(event, OwnedEvent::Message { stub, .. } if *stub == asked),
        )?;
        match event {
            OwnedEvent::Message { message, .. } => Ok(message),
            _ => Err(ClientError::Closed),
        }
    }

    /// The first event that `wanted` accepts, taken out of those that wait or
    /// come. Others stay for later.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub fn take_event(
        &mut self,
        within: Duration,
        mut wanted: impl FnMut(&OwnedEvent) -> bool,
    ) -> Result<OwnedEvent, ClientError> {
        let deadline = Instant::now() + within;
        let mut looked_at = 0;
        loop {
            let events = &mut self.received.events;
            let found = (looked_at..events.len()).find(|&at| wanted(&events[at]));
            if let Some(event) = found.and_then(|at| events.remove(at)) {
                return Ok(event);
            }
            looked_at = events.len();
            self.receive_until(deadline, within)?;
        }
    }

    /// Receives until `is_so`.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub fn wait_until(
        &mut self,
        within: Duration,
        mut is_so: impl FnMut(&Self) -> bool,
    ) -> Result<(), ClientError> {
        let deadline = Instant::now() + within;
        while !is_so(self) {
            self.receive_until(deadline, within)?;
        }
        Ok(())
    }

    /// All events that have arrived and were not taken, oldest first.
    pub fn drain_events(&mut self) -> impl Iterator<Item = OwnedEvent> {
        self.received.events.drain(..)
    }

    /// Sends what waits, then reads once.
    fn receive_until(&mut self, deadline: Instant, within: Duration) -> Result<(), ClientError> {
        if self.is_closed {
            return Err(ClientError::Closed);
        }
        self.flush()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ClientError::TimedOut(within));
        }
        self.stream.set_read_timeout(Some(left))?;
        match self.stream.read(&mut self.buffer) {
            Ok(0) => self.is_closed = true,
            Ok(bytes) => self
                .session
                .receive(&self.buffer[..bytes], &mut self.received)?,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                ErrorKind::ConnectionReset => self.is_closed = true,
                _ => return Err(error.into()),
            },
        }
        Ok(())
    }
}
