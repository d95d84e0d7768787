//! Integers and strings of bytes as frames have them: little-endian, lengths before
//! contents.

use bytes::{Buf as _, Bytes};

/// Bytes that are not what was to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not of this protocol")]
pub(super) struct Malformed;

/// Appends.
pub(super) trait Put {
    fn put_u8(&mut self, value: u8);
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    fn put_len(&mut self, len: usize);
    fn put_bytes(&mut self, bytes: &[u8]);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_len(&mut self, len: usize) {
        // What crosses is far shorter: a message is at most some hundred kilobytes.
        self.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_len(bytes.len());
        self.extend_from_slice(bytes);
    }
}

/// Reads from the front, and shares what it reads of contents.
#[derive(Debug)]
pub(super) struct Reader(pub(super) Bytes);

impl Reader {
    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.0.try_get_u8().map_err(|_| Malformed)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.0.try_get_u16_le().map_err(|_| Malformed)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.0.try_get_u32_le().map_err(|_| Malformed)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.0.try_get_u64_le().map_err(|_| Malformed)
    }

    pub(super) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    /// A length of something whose elements take at least `each` bytes: never one that
    /// what is left cannot hold.
    pub(super) fn len(&mut self, each: usize) -> Result<usize, Malformed> {
        let len = self.u32()? as usize;
        if len.checked_mul(each).is_none_or(|all| all > self.0.len()) {
            return Err(Malformed);
        }
        Ok(len)
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, Malformed> {
        let len = self.len(1)?;
        Ok(self.0.split_to(len))
    }

    pub(super) fn text(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.bytes()?.into()).map_err(|_| Malformed)
    }

    pub(super) fn list<T>(
        &mut self,
        each: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let len = self.len(each)?;
        (0..len).map(|_| read(self)).collect()
    }

    /// That nothing is left.
    pub(super) fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }
}
