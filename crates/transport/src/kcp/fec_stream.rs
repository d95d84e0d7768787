//! A stream of bytes in a KCP conversation with kcp-go's forward error
//! correction: what `DialWithOptions` of kcp-go makes where it is given shards.

use lagometer_kcp::Config;
use lagometer_units::Time;

use super::Stream;
use super::fec::{FEC_HEADER_BYTES, Fec, FecGroup};
use crate::{ByteStream, Encapsulation, State};

/// One side of a conversation that carries bytes, in groups of datagrams with
/// parity.
#[derive(Debug)]
pub struct FecStream {
    stream: Stream,
    fec: Fec,
}

impl FecStream {
    /// A side of the conversation so numbered, at `now`, as
    /// [`Stream::with_config`]. The configuration's datagrams are those on the
    /// wire, from 58 bytes: the 8 bytes in front of each are among theirs.
    ///
    /// # Panics
    ///
    /// If the group is none: either of its numbers is 0, or both together are
    /// more than 256.
    #[must_use]
    pub fn with_config(conversation: u32, config: &Config, group: FecGroup, now: Time) -> Self {
        let within = Config {
            mtu: config.mtu.saturating_sub(FEC_HEADER_BYTES),
            ..config.clone()
        };
        Self {
            stream: Stream::with_config(conversation, &within, now),
            fec: Fec::new(group, config.mtu),
        }
    }
}

impl ByteStream for FecStream {
    fn write(&mut self, now: Time, bytes: &[u8]) -> usize {
        self.stream.write(now, bytes)
    }

    fn send(&mut self, now: Time, output: &mut dyn FnMut(&[u8])) {
        let fec = &mut self.fec;
        self.stream
            .send(now, &mut |datagram| fec.send(datagram, output));
    }

    fn read(&mut self, take: &mut dyn FnMut(&[u8])) {
        self.stream.read(take);
    }

    fn input(&mut self, now: Time, datagram: &[u8], output: &mut dyn FnMut(&[u8])) {
        let decoded = self.fec.receive(now, datagram);
        if let Some(regular) = decoded.regular {
            let fec = &mut self.fec;
            self.stream
                .input(now, regular, &mut |answer| fec.send(answer, output));
        }
        for recovered in decoded.recovered {
            self.stream.input_recovered(now, &recovered);
        }
    }

    fn next_deadline(&mut self, now: Time) -> Option<Time> {
        self.stream.next_deadline(now)
    }

    fn tick(&mut self, now: Time, output: &mut dyn FnMut(&[u8])) {
        let fec = &mut self.fec;
        self.stream
            .tick(now, &mut |datagram| fec.send(datagram, output));
    }

    fn state(&self) -> State {
        self.stream.state()
    }

    fn encapsulation(&self) -> Encapsulation {
        self.stream.encapsulation()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_written_is_taken() {
        let group = FecGroup { data: 3, parity: 1 };
        let mut stream = FecStream::with_config(7, &Config::kcp_go(), group, Time::ZERO);
        assert_eq!(stream.write(Time::ZERO, &[7; 5_000]), 5_000);
    }
}
