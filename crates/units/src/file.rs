//! Files that somebody named: read however long they turn out to be, written so
//! that nobody else reads them.
//!
//! A path may lead to `/dev/zero`, to a pipe that never closes or to a hundred
//! gigabytes; whoever reads it into memory has a most for it. Every reader of
//! whole files in the workspace is one of these two.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use crate::Size;

mod rights;

/// The most that is read of what people write by hand: settings, state
/// machines, grids, types of data, secrets, certificates.
pub const MOST_SETTINGS: Size = Size(16_000_000);

/// The most that is read of what programs write: traces, result documents, logs
/// of runs.
pub const MOST_DATA: Size = Size(256_000_000);

/// Reads all of a file, at most so much.
///
/// ```
/// # #[cfg(unix)] {
/// use std::path::Path;
///
/// use lagometer_units::{Size, read_file};
///
/// let endless = read_file(Path::new("/dev/zero"), Size(1 << 20)).unwrap_err();
/// assert_eq!(endless.kind(), std::io::ErrorKind::FileTooLarge);
/// # }
/// ```
///
/// # Errors
///
/// The system's, or [`ErrorKind::FileTooLarge`] with a line that says what the
/// most is.
pub fn read_file(path: &Path, at_most: Size) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(at_most.0.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > at_most.0 {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("is longer than {at_most}, the most that is read of such a file"),
        ));
    }
    Ok(bytes)
}

/// Reads all of a text file, at most so much, without the mark of its encoding that
/// Windows' programs write before it.
///
/// # Errors
///
/// As [`read_file`], and [`ErrorKind::InvalidData`] where it is not UTF-8.
pub fn read_text_file(path: &Path, at_most: Size) -> io::Result<String> {
    let bytes = read_file(path, at_most)?;
    let mut text = String::from_utf8(bytes)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "is not UTF-8"))?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// Makes a file that its owner alone may read and write, or empties one that is
/// there and takes it from everybody else: for recordings and captures, which hold
/// what others sent. Where the system has no such rights, files have what the
/// folder gives them.
///
/// # Errors
///
/// The system's.
pub fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    rights::make_private(&mut options);
    let file = options.open(path)?;
    rights::take_from_others(&file)?;
    Ok(file)
}

/// Whether [`create_private_file`] could write there: makes the file where there is none,
/// and leaves what is there as it is. What is no file of its own is not opened: a pipe's
/// reader would see its end.
///
/// # Errors
///
/// The system's.
pub fn check_private_file(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    rights::make_private(&mut options);
    options.open(path).map(drop)
}

/// Makes a file that its owner alone may read and write, and that must not be there
/// yet.
///
/// # Errors
///
/// The system's; [`io::ErrorKind::AlreadyExists`] where it is there.
pub fn create_new_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    rights::make_private(&mut options);
    options.open(path)
}

/// Makes a folder, and those above it, that its owner alone may enter; one that is
/// there is left as it is.
///
/// # Errors
///
/// The system's.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    rights::make_private_folders(&mut builder);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_private_file_is_its_owners_alone_even_where_it_was_everybodys() {
        use std::os::unix::fs::PermissionsExt as _;

        let name = format!("lagometer-private-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let rights = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        drop(create_private_file(&path).unwrap());
        assert_eq!(rights(), 0o600);
        std::fs::write(&path, "before").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        drop(create_private_file(&path).unwrap());
        assert_eq!((rights(), std::fs::read(&path).unwrap().len()), (0o600, 0));
        std::fs::remove_file(&path).unwrap();
        assert!(create_private_file(Path::new("/dev/null")).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_never_ends_is_refused_and_the_line_says_how_much_is_read() {
        let error = read_text_file(Path::new("/dev/zero"), Size(64_000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("64 KB"), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }

    #[test]
    fn a_file_of_just_the_most_is_read() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let length = std::fs::metadata(&own).unwrap().len();
        let text = read_text_file(&own, Size(length)).unwrap();
        assert_eq!(text.len() as u64, length);
        assert!(read_file(&own, Size(length - 1)).is_err());
    }

    #[test]
    fn what_is_no_text_is_said_to_be_none() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("lagometer-no-text-{}", std::process::id()));
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        let error = read_text_file(&path, Size(10)).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn the_mark_of_an_encoding_is_no_part_of_the_text() {
        let path = std::env::temp_dir().join(format!("lagometer-mark-{}", std::process::id()));
        std::fs::write(&path, "\u{feff}{}\r\n").unwrap();
        let text = read_text_file(&path, Size(10));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text.unwrap(), "{}\r\n");
    }
}
