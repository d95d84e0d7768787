//! A game that goes on whatever happens to the nodes, and what its players saw of that.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lagometer_client::blocking::Client;

use crate::node::PATIENT;
use crate::peers::{GameServer, player, seen, sees};

/// The game server adds an entry so often.
const STEP: Duration = Duration::from_millis(20);

/// So long it looks whether something has come for it.
const LOOK: Duration = Duration::from_millis(1);

/// What a player has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// How often its connection ended.
    pub(crate) hung_up: u32,
    /// The longest that nothing new came, its coming back included.
    pub(crate) longest: Duration,
}

/// Plays a game on these edges, with a player at each, until `meanwhile` is over; then
/// everything that was ever added has to come to each of them. Returns what they saw, and
/// how often the game server had to come back.
pub(crate) fn play(
    servers: &[SocketAddr],
    clients: &[SocketAddr],
    meanwhile: impl FnOnce(),
) -> (Vec<Seen>, u32) {
    let (is_over, watching) = (AtomicBool::new(false), AtomicUsize::new(0));
    // The server and how many entries there are.
    let game = Mutex::new(GameServer::start(servers, 1));
    thread::scope(|scope| {
        let players: Vec<_> = (0..clients.len())
            .map(|nth| {
                let (is_over, watching, game) = (&is_over, &watching, &game);
                // Its own edge first.
                let mut to = clients.to_vec();
                to.rotate_left(nth);
                scope.spawn(move || {
                    let name = format!("player {nth}");
                    let mut client = player(&to, &name);
                    sees(&mut client, 1).unwrap();
                    watching.fetch_add(1, Ordering::SeqCst);
                    watch(client, &to, &name, is_over, game)
                })
            })
            .collect();
        // Whatever fails below, nobody plays on.
        let over = Over(&is_over);
        let until = Instant::now() + PATIENT;
        while watching.load(Ordering::SeqCst) < clients.len() {
            assert!(Instant::now() < until, "players do not see the game");
            thread::sleep(STEP);
        }
        let server = scope.spawn(|| {
            let mut came_back = 0;
            while !is_over.load(Ordering::SeqCst) {
                let lasts = {
                    let mut server = game.lock().unwrap_or_else(PoisonError::into_inner);
                    // Reading shows, too, whether it is still there.
                    let read = server.client.next_event(LOOK);
                    server.try_add().is_ok() && read.is_ok()
                };
                if !lasts {
                    came_back += 1;
                    let entries = game.lock().unwrap_or_else(PoisonError::into_inner).entries;
                    let again = GameServer::start(servers, entries);
                    *game.lock().unwrap_or_else(PoisonError::into_inner) = again;
                }
                thread::sleep(STEP);
            }
            came_back
        });
        meanwhile();
        drop(over);
        let came_back = server.join().unwrap();
        let players = players.into_iter().map(|it| it.join().unwrap()).collect();
        (players, came_back)
    })
}

/// Ends the game when dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn watch(
    mut client: Client,
    to: &[SocketAddr],
    name: &str,
    is_over: &AtomicBool,
    game: &Mutex<GameServer>,
) -> Seen {
    let mut found = Seen::default();
    let (mut last, mut entries) = (Instant::now(), 1);
    loop {
        if client.next_event(STEP).is_err() {
            found.hung_up += 1;
            client = player(to, name);
        }
        let now_seen = seen(&client).len();
        if now_seen > entries {
            found.longest = found.longest.max(last.elapsed());
            (last, entries) = (Instant::now(), now_seen);
        }
        if is_over.load(Ordering::SeqCst) {
            let all = game.lock().unwrap_or_else(PoisonError::into_inner).entries;
            let is_behind = now_seen < all as usize;
            if sees(&mut client, all).is_ok() {
                if is_behind {
                    found.longest = found.longest.max(last.elapsed());
                }
                return found;
            }
            found.hung_up += 1;
            client = player(to, name);
        }
    }
}
