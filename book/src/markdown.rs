//! The little that is read of Markdown: where its links are.

/// A document with the target of every link and image replaced by what
/// `replace` makes of it; where it makes nothing, the link's text stays alone.
/// Code is left as it is.
pub fn with_links(
    text: &str,
    mut replace: impl FnMut(&str) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut is_fenced = false;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced || line.trim_start().starts_with("```") {
            out.push_str(line);
        } else {
            out.push_str(&in_line(line, &mut replace)?);
        }
    }
    Ok(out)
}

fn in_line(
    line: &str,
    replace: &mut impl FnMut(&str) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<String> {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        let (before, after) = rest.split_at(at);
        let Some(end) = after.find(')') else { break };
        let target = &after[2..end];
        out.push_str(before);
        match replace(target)? {
            Some(target) => {
                out.push_str("](");
                out.push_str(&target);
                out.push(')');
            }
            // A link's text may begin on the line before: its bracket is then
            // left, and the check of the rendered site would not see it.
            None => match out.rfind('[') {
                Some(open) => {
                    out.remove(open);
                }
                None => anyhow::bail!("a link to {target} begins on the line before"),
            },
        }
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_replaced_and_taken_away_but_not_in_code() {
        let text = "[a](x.md) and [`b`](y)\n```\n[c](x.md)\n```\n";
        let with = with_links(text, |target| {
            Ok((target == "x.md").then(|| format!("../{target}")))
        });
        assert_eq!(with.unwrap(), "[a](../x.md) and `b`\n```\n[c](x.md)\n```\n");
    }
}
