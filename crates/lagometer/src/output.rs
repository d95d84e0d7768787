//! Where results go: the table on standard output, the document and the page
//! in files.

use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use lagometer_results::Document;

use crate::failure::{Failure, read};

/// Where the page goes, if there is to be one: the file that was `named`, else the
/// `usual` one.
pub(crate) fn page_path(named: Option<&PathBuf>, no_html: bool, usual: String) -> Option<PathBuf> {
    let usual = || (!no_html).then(|| PathBuf::from(usual));
    named.cloned().or_else(usual)
}

/// Shows a document as asked: a table, unless the document itself goes to
/// standard output; the document and the page where files are named.
pub(crate) fn show(
    document: &Document,
    json: Option<&PathBuf>,
    html: Option<&PathBuf>,
) -> Result<(), Failure> {
    let to_stdout = json.is_some_and(|path| path.as_os_str() == "-");
    // What cannot be written in one place is still shown in the others.
    let written = match json {
        Some(_) if to_stdout => print(&document.to_json()),
        Some(path) => write(path, &document.to_json()),
        None => Ok(()),
    };
    if !to_stdout {
        print(&lagometer_report::table(document, terminal()))?;
    }
    if let Some(path) = html {
        let page = lagometer_report::page(std::slice::from_ref(document));
        write(path, &page)?;
        note!("lagometer: the page is {}", path.display());
    }
    written
}

/// Reads a result document.
pub(crate) fn read_document(path: &Path) -> Result<Document, Failure> {
    Document::from_json(&read(path)?)
        .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
}

/// What to call each of several documents: its file's name without an
/// extension, or the whole path where that does not tell them apart.
pub(crate) fn names_of(paths: &[PathBuf]) -> Vec<String> {
    let stem = |path: &Path| {
        path.file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
    };
    paths
        .iter()
        .map(|path| {
            let alike = paths.iter().filter(|other| stem(other) == stem(path));
            match stem(path) {
                Some(stem) if alike.count() == 1 => stem,
                _ => path.display().to_string(),
            }
        })
        .collect()
}

/// What standard output is.
pub(crate) fn terminal() -> lagometer_report::Terminal {
    let is_terminal = std::io::stdout().is_terminal();
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let width = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    // Windows' console shows what colours are asked by as letters unless it is told
    // not to, which this question does.
    let shows_colours = console::Term::stdout().features().colors_supported();
    lagometer_report::Terminal {
        colour: is_terminal && !no_color && shows_colours,
        width: width
            .or_else(|| is_terminal.then(terminal_width).flatten())
            .unwrap_or(80),
    }
}

/// The terminal's width in characters.
fn terminal_width() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(usize::from(columns))
}

/// Writes to standard output. A reader that has gone away is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(why) if why.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Write {
            path: PathBuf::from("standard output"),
            why,
        }),
        _ => Ok(()),
    }
}

/// Writes a recording: what a path did is its owner's to read alone.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let written = lagometer_units::create_private_file(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|why| Failure::Write {
        path: path.to_owned(),
        why,
    })
}

/// Writes a file that the user named so that whoever reads it finds all of it or what
/// was there before, though the disk is full or the program killed meanwhile.
pub(crate) fn write(path: &Path, contents: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), Failure> {
    let contents = contents.as_ref();
    let written = match fs::metadata(path) {
        // A device is what it is, and a file with another name is written where it is.
        Ok(about) if !about.is_file() => fs::write(path, contents),
        Ok(_) => path
            .canonicalize()
            .and_then(|place| replace(&place, contents)),
        Err(_) => replace(path, contents),
    };
    written.map_err(|why| Failure::Write {
        path: path.to_owned(),
        why,
    })
}

/// Writes a file beside another and gives it that one's name.
fn replace(path: &Path, contents: &[u8]) -> std::io::Result<()> {
    let beside = path.with_added_extension("part");
    let written = fs::File::create(&beside).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    });
    if written.is_err() {
        // There is nothing more to be done where even that fails.
        let _ = fs::remove_file(&beside);
    }
    written
}
