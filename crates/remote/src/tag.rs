//! Keyed tags: HMAC-SHA256 (RFC 2104, FIPS 198-1) over labelled parts, and the
//! keys derived with it.

use std::fmt;

use ring::hmac;

/// The length of a tag in bytes.
pub(crate) const TAG_BYTES: usize = 32;

/// A tag.
pub(crate) type Tag = [u8; TAG_BYTES];

/// A key that makes and checks tags.
#[derive(Clone)]
pub(crate) struct Key(hmac::Key);

impl Key {
    /// A key from bytes that only both ends know.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// The tag of `parts` for the purpose that `label` names.
    ///
    /// Each part is preceded by its length, so that no two lists of parts are
    /// the same bytes.
    pub(crate) fn tag(&self, label: &str, parts: &[&[u8]]) -> Tag {
        let mut context = hmac::Context::with_key(&self.0);
        each_piece(label, parts, |piece| context.update(piece));
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }

    /// Whether `tag` is the tag of `parts`; takes as long for one wrong byte
    /// as for many.
    pub(crate) fn accepts(&self, label: &str, parts: &[&[u8]], tag: &[u8]) -> bool {
        let mut message =
            Vec::with_capacity(64 + parts.iter().map(|part| part.len()).sum::<usize>());
        each_piece(label, parts, |piece| message.extend_from_slice(piece));
        hmac::verify(&self.0, &message, tag).is_ok()
    }

    /// A key for the purpose that `label` names, which reveals nothing of this
    /// one.
    pub(crate) fn derive(&self, label: &str, parts: &[&[u8]]) -> Self {
        Self::new(&self.tag(label, parts))
    }
}

fn each_piece(label: &str, parts: &[&[u8]], mut take: impl FnMut(&[u8])) {
    for part in std::iter::once(label.as_bytes()).chain(parts.iter().copied()) {
        take(&(part.len() as u64).to_be_bytes());
        take(part);
    }
}

/// A key shows nothing of itself.
impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_for_its_label_its_parts_and_its_key_alone() {
        let key = Key::new(b"key");
        let tag = key.tag("purpose", &[b"ab", b"c"]);
        assert!(key.accepts("purpose", &[b"ab", b"c"], &tag));
        assert!(!key.accepts("purpose", &[b"a", b"bc"], &tag));
        assert!(!key.accepts("other", &[b"ab", b"c"], &tag));
        assert!(!Key::new(b"yek").accepts("purpose", &[b"ab", b"c"], &tag));
        assert!(!key.accepts("purpose", &[b"ab", b"c"], &tag[..31]));
        assert!(!key.accepts("purpose", &[b"ab", b"c"], &[]));
    }

    #[test]
    fn a_key_does_not_show_itself() {
        assert_eq!(format!("{:?}", Key::new(b"key")), "Key(…)");
    }
}
