//! Text of the program as Markdown.

/// A cell of a table: on one line, with nothing in it that ends the cell or
/// begins a tag.
pub(super) fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_code = false;
    for letter in text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
    {
        match letter {
            '`' => is_code = !is_code,
            // Within code, too, where tables are cut before code is seen.
            '|' => out.push('\\'),
            '<' if !is_code => out.push('\\'),
            _ => {}
        }
        out.push(letter);
    }
    out
}

/// Text as code within a cell.
pub(super) fn code(text: &str) -> String {
    cell(&format!("`{text}`"))
}

/// A text file in a block of its own.
pub(super) fn fenced(language: &str, text: &str) -> String {
    format!("```{language}\n{}\n```\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_cells_whatever_is_in_them() {
        assert_eq!(cell("a | b\n  <c> `d<e`"), r"a \| b \<c> `d<e`");
        assert_eq!(code("NAME|FILE"), r"`NAME\|FILE`");
    }
}
