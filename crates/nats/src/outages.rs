//! What is said of a connection that is lost and comes back.

use async_nats::Event;

/// Says when NATS is lost, and when it is back, and what its servers complain of.
#[derive(Clone, Debug)]
pub struct Outages {
    /// Where it is, without passwords.
    urls: String,
    is_lost: bool,
    /// Complaints of its servers that were passed on.
    said: usize,
}

/// Complaints that are passed on; then they are known.
const MOST_SAID: usize = 8;

impl Outages {
    /// Of a connection with the servers at `urls`, which is there.
    #[must_use]
    pub const fn of(urls: String) -> Self {
        Self {
            urls,
            is_lost: false,
            said: 0,
        }
    }

    /// Says in a line what became of the connection, if it was lost or is back.
    pub fn report(&mut self, event: &Event, note: &dyn Fn(&str)) {
        match event {
            Event::Disconnected => {
                self.is_lost = true;
                note(&format!("lost NATS at {}; waiting for it", self.urls));
            }
            Event::Connected if self.is_lost => {
                self.is_lost = false;
                note(&format!("NATS at {} is back", self.urls));
            }
            Event::ServerError(why) if self.said < MOST_SAID => {
                self.said += 1;
                note(&format!("NATS at {} says: {why}", self.urls));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn an_outage_is_said_when_it_begins_and_when_it_is_over() {
        let mut outages = Outages::of("nats://a:1".to_owned());
        let said = RefCell::new(Vec::new());
        for event in [Event::Connected, Event::Disconnected, Event::Connected] {
            outages.report(&event, &|line| said.borrow_mut().push(line.to_owned()));
        }
        let both = [
            "lost NATS at nats://a:1; waiting for it",
            "NATS at nats://a:1 is back",
        ];
        assert_eq!(said.into_inner(), both);
    }
}
