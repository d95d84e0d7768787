//! Writing and reading netlink messages: a header, a fixed part, and nested
//! attributes, all aligned to four bytes (`netlink(7)`).

/// Bytes of `struct nlmsghdr`.
pub(super) const HEADER_BYTES: usize = 16;
/// Bytes of `struct nlattr`.
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// Set in the kind of an attribute that holds attributes.
const NESTED: u16 = 1 << 15;

/// A message being written.
#[derive(Debug)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A message of `kind` with `flags`, whose fixed part is `fixed`.
    pub(super) fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        let mut message = Self { bytes };
        message.align();
        message
    }

    /// Appends an attribute.
    pub(super) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let start = self.open(kind);
        self.bytes.extend_from_slice(value);
        self.close(start);
        self
    }

    /// Appends an attribute that holds text and a closing zero.
    pub(super) fn text(mut self, kind: u16, value: &str) -> Self {
        let start = self.open(kind);
        self.bytes.extend_from_slice(value.as_bytes());
        self.bytes.push(0);
        self.close(start);
        self
    }

    /// Appends an attribute that starts with `fixed` and holds what `inside`
    /// appends.
    pub(super) fn nested(
        mut self,
        kind: u16,
        fixed: &[u8],
        inside: impl FnOnce(Self) -> Self,
    ) -> Self {
        let start = self.open(kind | NESTED);
        self.bytes.extend_from_slice(fixed);
        self.align();
        let mut whole = inside(self);
        whole.close(start);
        whole
    }

    /// The message's bytes, numbered `sequence`.
    pub(super) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }

    fn open(&mut self, kind: u16) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0, 0]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        start
    }

    fn close(&mut self, start: usize) {
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// One message of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received<'a> {
    /// The message's type (`nlmsg_type`).
    pub(super) kind: u16,
    /// The number of the message it answers.
    pub(super) sequence: u32,
    /// What follows the header.
    pub(super) body: &'a [u8],
}

/// The messages in `bytes`, up to the first that is cut short.
pub(super) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Received<'_>> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(bytes.first_chunk().copied()?) as usize;
        let message = bytes.get(..length).filter(|_| length >= HEADER_BYTES)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Received {
            kind: u16::from_ne_bytes([message[4], message[5]]),
            sequence: u32::from_ne_bytes([message[8], message[9], message[10], message[11]]),
            body: &message[HEADER_BYTES..],
        })
    })
}

/// The first attribute of `kind` among the attributes in `bytes`.
pub(super) fn attribute(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    while let Some(&[a, b, c, d]) = bytes.first_chunk() {
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let found = u16::from_ne_bytes([c, d]) & !NESTED;
        let value = bytes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        if found == kind {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let bytes = Message::new(16, 5, &[1; 16])
            .text(3, "lane0")
            .nested(18, &[], |m| m.text(1, "veth"))
            .attribute(4, &1500_u32.to_ne_bytes())
            .finish(7);
        let read: Vec<_> = messages(&bytes).collect();
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].kind, read[0].sequence), (16, 7));
        let attributes = &read[0].body[16..];
        assert_eq!(attribute(attributes, 3), Some(&b"lane0\0"[..]));
        assert_eq!(attribute(attributes, 4), Some(&1500_u32.to_ne_bytes()[..]));
        let nested = attribute(attributes, 18).unwrap();
        assert_eq!(attribute(nested, 1), Some(&b"veth\0"[..]));
        assert_eq!(attribute(nested, 2), None);
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic_or_hang(bytes: Vec<u8>, kind: u16) {
            for message in messages(&bytes) {
                let _ = attribute(message.body, kind);
            }
        }
    }
}
