//! Text made safe inside HTML and inside a script's data, and numbers written
//! short: everything variable on the page passes through here.

use std::fmt;

/// `text` as HTML, whether between tags or inside a quoted attribute.
pub(crate) fn esc(text: &str) -> Escaped<'_> {
    Escaped(text)
}

/// See [`esc`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'', '\0']) {
            formatter.write_str(&rest[..at])?;
            formatter.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                b'\'' => "&#39;",
                // Not a character of HTML at all.
                _ => "\u{fffd}",
            })?;
            rest = &rest[at + 1..];
        }
        formatter.write_str(rest)
    }
}

/// `text` as a JSON string that may stand inside a `<script>` element: no
/// `<`, so that nothing in it can end the element.
pub(crate) fn json_string(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('<', "\\u003c")
}

/// A coordinate with at most two decimals and nothing superfluous.
pub(crate) fn coordinate(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let mut written = format!("{:.2}", value.clamp(-1e6, 1e6));
    while written.ends_with('0') {
        written.pop();
    }
    if written.ends_with('.') {
        written.pop();
    }
    if written == "-0" {
        "0".to_owned()
    } else {
        written
    }
}

/// A position between 0 and 1 as a percentage for an attribute.
pub(crate) fn per_cent(position: f64) -> String {
    coordinate(position * 100.0) + "%"
}

/// As [`per_cent`], fine enough to be magnified a thousand times: zooming in
/// on ten minutes starts from these.
pub(crate) fn fine_per_cent(position: f64) -> String {
    if !position.is_finite() {
        return "0%".to_owned();
    }
    let written = format!("{:.5}", (position * 100.0).clamp(-1e6, 1e6));
    written
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
        + "%"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_taken_for_markup() {
        assert_eq!(
            esc("<a href='x\"&\0'>é").to_string(),
            "&lt;a href=&#39;x&quot;&amp;\u{fffd}&#39;&gt;é"
        );
        assert_eq!(json_string("</script>\"\n"), r#""\u003c/script>\"\n""#);
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(coordinate(12.0), "12");
        assert_eq!(coordinate(-0.001), "0");
        assert_eq!(coordinate(1.256), "1.26");
        assert_eq!(coordinate(f64::NAN), "0");
        assert_eq!(per_cent(0.1234), "12.34%");
        assert_eq!(fine_per_cent(0.123_456_78), "12.34568%");
        assert_eq!(fine_per_cent(0.0), "0%");
    }
}
