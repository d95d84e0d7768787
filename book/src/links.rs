//! Follows every link of the rendered site: each leads to a file of it, to an
//! anchor that is there, or, for what a reader clicks, to another site. Nothing
//! that a page shows or runs comes from elsewhere.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::{RawKind, State};
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use crate::paths::{files_below, normal};

/// What is read of a page.
#[derive(Default)]
struct Page {
    anchors: RefCell<BTreeSet<String>>,
    /// Links with whether the browser follows them by itself.
    links: RefCell<Vec<(String, bool)>>,
}

impl TokenSink for &Page {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = token else {
            return TokenSinkResult::Continue;
        };
        let name = &*tag.name;
        for attribute in &tag.attrs {
            let value = attribute.value.to_string();
            match &*attribute.name.local {
                "id" => {
                    self.anchors.borrow_mut().insert(value);
                }
                "href" => self.links.borrow_mut().push((value, name != "a")),
                "src" => self.links.borrow_mut().push((value, true)),
                _ => {}
            }
        }
        match (tag.kind, name) {
            (TagKind::StartTag, "script") => TokenSinkResult::RawData(RawKind::ScriptData),
            (TagKind::StartTag, "style") => TokenSinkResult::RawData(RawKind::Rawtext),
            _ => TokenSinkResult::Continue,
        }
    }
}

fn read(html: &str) -> Page {
    let page = Page::default();
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let options = TokenizerOpts {
        initial_state: Some(State::Data),
        ..TokenizerOpts::default()
    };
    let tokenizer = Tokenizer::new(&page, options);
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    page
}

/// The number of links of the site, and what is wrong with those that lead
/// nowhere.
pub fn follow(site: &Path) -> anyhow::Result<(usize, Vec<String>)> {
    let mut pages = BTreeMap::new();
    let mut files = BTreeSet::new();
    let mut broken = Vec::new();
    for path in files_below(site)? {
        let at = path.strip_prefix(site)?.to_owned();
        let end = path
            .extension()
            .map(|end| end.to_string_lossy().into_owned());
        match end.as_deref() {
            Some("html") => {
                let html = fs::read_to_string(&path).with_context(|| at.display().to_string())?;
                pages.insert(at.clone(), read(&html));
            }
            Some("css") => {
                let text = fs::read_to_string(&path)?;
                if text.contains("url(http") || text.contains("@import") {
                    broken.push(format!("{}: takes something from elsewhere", at.display()));
                }
            }
            _ => {}
        }
        files.insert(at);
    }
    let mut followed = 0;
    for (at, page) in &pages {
        for (target, is_taken) in page.links.borrow().iter() {
            followed += 1;
            if let Some(why) = wrong_with(at, target, *is_taken, &pages, &files) {
                broken.push(format!("{}: {target}: {why}", at.display()));
            }
        }
    }
    Ok((followed, broken))
}

fn wrong_with(
    at: &Path,
    target: &str,
    is_taken: bool,
    pages: &BTreeMap<PathBuf, Page>,
    files: &BTreeSet<PathBuf>,
) -> Option<&'static str> {
    if target.contains("://") {
        return is_taken.then_some("is taken from elsewhere");
    }
    if target.starts_with("data:") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let leads_to = if path.is_empty() {
        at.to_owned()
    } else {
        let Some(leads_to) = normal(&at.parent().unwrap_or(Path::new("")).join(path)) else {
            return Some("leads out of the site");
        };
        leads_to
    };
    if !files.contains(&leads_to) {
        return Some("there is no such file");
    }
    if anchor.is_empty() {
        return None;
    }
    let there = pages.get(&leads_to);
    let is_there = there.is_some_and(|page| page.anchors.borrow().contains(anchor));
    (!is_there).then_some("there is no such anchor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_anchors_and_what_comes_from_elsewhere_are_distinguished() {
        let a =
            r#"<a href="b.html#there">x</a><script>"<a href='no.html'>"</script><h2 id="here">"#;
        let pages = BTreeMap::from([
            (PathBuf::from("a.html"), read(a)),
            (PathBuf::from("b.html"), read(r#"<p id="there">"#)),
        ]);
        let links = pages[Path::new("a.html")].links.borrow().clone();
        assert_eq!(links, [("b.html#there".to_owned(), false)]);
        let files = pages.keys().cloned().collect();
        let wrong =
            |target, is_taken| wrong_with(Path::new("a.html"), target, is_taken, &pages, &files);
        assert_eq!(wrong("b.html#there", false), None);
        assert_eq!(wrong("#here", false), None);
        assert_eq!(wrong("#there", false), Some("there is no such anchor"));
        assert_eq!(wrong("c.html", false), Some("there is no such file"));
        assert_eq!(wrong("../a.html", false), Some("leads out of the site"));
        assert_eq!(wrong("https://example.org", false), None);
        assert_eq!(
            wrong("https://example.org/x.js", true),
            Some("is taken from elsewhere")
        );
    }
}
