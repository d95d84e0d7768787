//! A stream in messages: numbered, so that what is missing is noticed.
//!
//! A message has a number of eight bytes, the most significant first, and what the stream
//! goes on with: nothing, where an end has nothing to say just now, and then the next has the
//! same number. An empty message is the stream's end.

/// Bytes of a stream in one message: far less than the 1 MiB that NATS takes by default.
pub(super) const MOST_BYTES: usize = 32 << 10;

/// Bytes of a number.
const NUMBER_BYTES: usize = size_of::<u64>();

/// Numbers pieces.
#[derive(Debug, Default)]
pub(super) struct Numbered {
    next: u64,
}

impl Numbered {
    /// The message that ends a stream.
    pub(super) const END: &'static [u8] = &[];

    /// The message with a stream's next bytes.
    pub(super) fn piece(&mut self, bytes: &[u8]) -> Vec<u8> {
        let message = [&self.next.to_be_bytes(), bytes].concat();
        self.next += 1;
        message
    }

    /// A message that adds nothing to the stream.
    pub(super) fn pause(&self) -> Vec<u8> {
        self.next.to_be_bytes().to_vec()
    }
}

/// What a message is to its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// The stream goes on with these bytes.
    Next(&'a [u8]),
    /// It ends.
    End,
    /// It is not what comes next: something is missing, or is no piece.
    Broken,
}

/// Reads pieces in their order.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    next: u64,
}

impl Ordered {
    /// What a message is.
    pub(super) fn read<'a>(&mut self, message: &'a [u8]) -> Piece<'a> {
        if message == Numbered::END {
            return Piece::End;
        }
        let Some((number, bytes)) = message.split_first_chunk::<NUMBER_BYTES>() else {
            return Piece::Broken;
        };
        if u64::from_be_bytes(*number) != self.next {
            return Piece::Broken;
        }
        self.next += u64::from(!bytes.is_empty());
        Piece::Next(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_as_they_were_cut() {
        let (mut numbered, mut ordered) = (Numbered::default(), Ordered::default());
        for text in ["a stream", "in", "pieces"] {
            let message = numbered.piece(text.as_bytes());
            assert_eq!(ordered.read(&message), Piece::Next(text.as_bytes()));
            assert_eq!(ordered.read(&numbered.pause()), Piece::Next(b""));
        }
        assert_eq!(ordered.read(Numbered::END), Piece::End);
    }

    #[test]
    fn what_is_lost_doubled_or_in_disorder_breaks_the_stream() {
        let mut numbered = Numbered::default();
        let [first, second] = [b"1", b"2"].map(|bytes| numbered.piece(bytes));
        let after = |message: &[u8]| {
            let mut ordered = Ordered::default();
            assert_eq!(ordered.read(&first), Piece::Next(b"1"));
            ordered.read(message) == Piece::Broken
        };
        assert!(!after(&second));
        assert!(after(&first), "doubled");
        assert!(after(&numbered.piece(b"3")), "one is missing");
        assert!(after(b"short"));
        assert_eq!(Ordered::default().read(&second), Piece::Broken);
        assert!(after(&Numbered::default().pause()), "one is missing");
    }
}
