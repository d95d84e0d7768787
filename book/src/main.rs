//! The documentation site: the documents of this repository and the reference
//! that the program writes of itself, put together, rendered by `mdBook`, and
//! every link followed.
//!
//! `lagometer-book ROOT REFERENCE SITE` takes the repository, the folder that
//! `lagometer reference` wrote, and the folder the site goes to.

mod assemble;
mod links;
mod markdown;
mod paths;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(Into::into).collect();
    let [root, reference, site] = arguments.as_slice() else {
        eprintln!("lagometer-book: usage: lagometer-book ROOT REFERENCE SITE");
        return ExitCode::from(2);
    };
    match build(root, reference, site) {
        Ok(links) => {
            println!(
                "{}: {links} links lead somewhere",
                site.join("index.html").display()
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("lagometer-book: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the site and gives the number of links that were followed.
fn build(root: &Path, reference: &Path, site: &Path) -> anyhow::Result<usize> {
    // The generator takes relative paths as relative to the source's folder.
    let site = &std::path::absolute(site)?;
    let source = site.with_extension("source");
    for folder in [&source, site] {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
    }
    assemble::assemble(root, reference, &source)?;
    let config = root.join("book/book.toml");
    let mut config = Config::from_disk(config)?;
    config.book.src.clone_from(&source);
    config.build.build_dir.clone_from(site);
    config.set("output.html.additional-css", ["site.css"])?;
    fs::copy(root.join("book/site.css"), source.join("site.css"))?;
    let book = MDBook::load_with_config(&source, config)?;
    book.build()?;
    let (links, broken) = links::follow(site)?;
    if !broken.is_empty() {
        bail!("the site does not hold together:\n{}", broken.join("\n"));
    }
    fs::remove_dir_all(&source)?;
    Ok(links)
}
