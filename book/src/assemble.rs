//! The site's pages: the documents of the repository, each at its place, with
//! links that lead where things are on the site, and the pages that are made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::markdown;
use crate::paths::{files_below, normal};

/// Documents outside `docs/`, by where they are in the repository and on the
/// site.
const ELSEWHERE: &[(&str, &str)] = &[
    ("README.md", "README.md"),
    ("ARCHITECTURE.md", "architecture.md"),
    ("CHANGELOG.md", "changelog.md"),
    ("SECURITY.md", "reporting.md"),
    ("bench/gateway/README.md", "bench/gateway.md"),
    ("bench/kcp/README.md", "bench/kcp.md"),
    ("bench/world/README.md", "bench/world.md"),
];

/// What the reference says of files and folders of the repository.
const IN_THE_REFERENCE: &[(&str, &str)] = &[
    ("bench/gateway", "bench/gateway.md"),
    ("bench/world", "bench/world.md"),
    ("deploy/gateway.toml", "reference/settings.md"),
    ("experiments", "reference/experiments.md"),
    ("experiments/world", "reference/experiments.md"),
    ("networks", "reference/networks.md"),
    ("schema", "reference/document.md"),
    ("schema/lagometer-2.json", "reference/document.md"),
];

/// Writes all pages into the folder `to`, which is new.
pub fn assemble(root: &Path, reference: &Path, to: &Path) -> anyhow::Result<()> {
    let mut site = Site {
        root: root.canonicalize()?,
        to: to.to_owned(),
        pages: BTreeMap::new(),
    };
    for (from, at) in ELSEWHERE {
        site.pages.insert(from.into(), at.into());
    }
    let mut attached = Vec::new();
    for path in files_below(&site.root.join("docs"))? {
        let from = path.strip_prefix(&site.root)?.to_owned();
        let at = from.strip_prefix("docs")?.to_owned();
        if path.extension().is_some_and(|end| end == "md") {
            site.pages.insert(from, at);
        } else {
            attached.push((path, at));
        }
    }
    for (path, at) in attached {
        site.write(&at, &fs::read(path)?)?;
    }
    for (from, at) in &site.pages {
        let text =
            fs::read_to_string(site.root.join(from)).with_context(|| from.display().to_string())?;
        let text = markdown::with_links(&text, |target| site.target(from, at, target))
            .with_context(|| from.display().to_string())?;
        site.write(at, text.as_bytes())?;
    }
    for path in files_below(reference)? {
        let name = path.strip_prefix(reference)?;
        site.write(&Path::new("reference").join(name), &fs::read(&path)?)?;
    }
    Ok(())
}

struct Site {
    root: PathBuf,
    to: PathBuf,
    /// Documents by their path in the repository, with their path on the site.
    pages: BTreeMap<PathBuf, PathBuf>,
}

impl Site {
    fn write(&self, at: &Path, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.to.join(at);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, bytes).with_context(|| path.display().to_string())
    }

    /// Where a link of the document at `from`, whose page is `at`, leads on the
    /// site; `None` for what is in the repository alone.
    fn target(&self, from: &Path, at: &Path, target: &str) -> anyhow::Result<Option<String>> {
        let (path, anchor) = target
            .split_once('#')
            .map_or((target, String::new()), |(path, anchor)| {
                (path, format!("#{anchor}"))
            });
        let is_made = from == Path::new("docs/SUMMARY.md") && path.starts_with("reference/");
        if path.is_empty() || path.contains("://") || path.starts_with("mailto:") || is_made {
            return Ok(Some(target.to_owned()));
        }
        let leads_to = normal(&from.parent().unwrap_or(Path::new("")).join(path))
            .with_context(|| format!("{target} leads out of the repository"))?;
        let there = self.root.join(&leads_to);
        if !there.exists() {
            bail!("{target} leads nowhere");
        }
        let described = IN_THE_REFERENCE
            .iter()
            .find(|(known, _)| Path::new(known) == leads_to)
            .map(|(_, page)| PathBuf::from(page));
        let known = self.pages.get(&leads_to).cloned().or(described);
        let page = match known {
            Some(page) => page,
            None if there.is_dir() => return Ok(None),
            None => match leads_to.strip_prefix("docs") {
                Ok(attached) => attached.to_owned(),
                Err(_) => self.attach(&leads_to)?,
            },
        };
        Ok(Some(format!("{}{anchor}", relative(at, &page))))
    }

    /// Puts a file of the repository onto the site, as text that any browser
    /// shows.
    fn attach(&self, path: &Path) -> anyhow::Result<PathBuf> {
        let mut at = Path::new("files").join(path).into_os_string();
        at.push(".txt");
        let at = PathBuf::from(at);
        self.write(&at, &fs::read(self.root.join(path))?)?;
        Ok(at)
    }
}

/// The way from one page to another.
fn relative(from: &Path, to: &Path) -> String {
    let up = from.components().count().saturating_sub(1);
    let there = to.to_string_lossy().into_owned();
    "../".repeat(up) + &there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_to_the_reference_to_files_or_nowhere() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let to = std::env::temp_dir().join(format!("lagometer-book-{}", std::process::id()));
        let site = Site {
            root: root.canonicalize().unwrap(),
            to: to.clone(),
            pages: BTreeMap::from([
                ("README.md".into(), "README.md".into()),
                ("docs/tcp.md".into(), "tcp.md".into()),
                (
                    "docs/gateway/running.md".into(),
                    "gateway/running.md".into(),
                ),
            ]),
        };
        let lead = |from: &str, at: &str, target: &str| {
            site.target(Path::new(from), Path::new(at), target)
        };
        let running = |target| lead("docs/gateway/running.md", "gateway/running.md", target);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(running("../tcp.md#why").unwrap(), some("../tcp.md#why"));
        assert_eq!(
            running("../../deploy/gateway.toml").unwrap(),
            some("../reference/settings.md")
        );
        assert_eq!(running("#wires").unwrap(), some("#wires"));
        assert_eq!(running("../../crates").unwrap(), None);
        assert_eq!(
            lead("README.md", "README.md", "docs/tcp.md").unwrap(),
            some("tcp.md")
        );
        assert_eq!(
            lead("README.md", "README.md", "deny.toml").unwrap(),
            some("files/deny.toml.txt")
        );
        assert!(to.join("files/deny.toml.txt").exists());
        assert!(running("nonesuch.md").is_err());
        assert!(running("../../../etc/passwd").is_err());
        fs::remove_dir_all(to).unwrap();
    }
}
