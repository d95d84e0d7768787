//! What a guest's programs say, read from the file that its first process
//! writes while it grows.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// A file of records that grows, from its beginning.
#[derive(Debug)]
pub(crate) struct Output {
    file: File,
    /// What was read and not handed on.
    read: Vec<u8>,
    /// How much of it was handed on.
    taken: usize,
}

impl Output {
    /// The file at `path`, made empty.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        Ok(Self {
            file,
            read: Vec::new(),
            taken: 0,
        })
    }

    /// The next record, if a whole one is there.
    pub(crate) fn next_record(&mut self) -> Option<Vec<u8>> {
        loop {
            let rest = &self.read[self.taken..];
            if let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
                let record = rest[..end].to_vec();
                self.taken += end + 1;
                return Some(record);
            }
            if !self.read_on() {
                return None;
            }
        }
    }

    /// Reads more; whether there was any.
    fn read_on(&mut self) -> bool {
        self.read.drain(..self.taken);
        self.taken = 0;
        let before = self.read.len();
        self.read.resize(before + READ_BYTES, 0);
        // A file of this process's own; what cannot be read comes later.
        let bytes = self.file.read(&mut self.read[before..]).unwrap_or(0);
        self.read.truncate(before + bytes);
        bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn records_come_whole_while_the_file_grows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output");
        let mut output = Output::open(&path).unwrap();
        let mut writer = fs::File::options().append(true).open(&path).unwrap();
        assert_eq!(output.next_record(), None);
        writer.write_all(b"one\nt").unwrap();
        assert_eq!(output.next_record().as_deref(), Some(&b"one"[..]));
        assert_eq!(output.next_record(), None);
        let long = vec![b'x'; 2 * READ_BYTES];
        writer.write_all(b"wo\n").unwrap();
        writer.write_all(&long).unwrap();
        writer.write_all(b"\n").unwrap();
        assert_eq!(output.next_record().as_deref(), Some(&b"two"[..]));
        assert_eq!(output.next_record().as_deref(), Some(&long[..]));
        assert_eq!(output.next_record(), None);
    }
}
