//! Paragraphs and items of a page, in lines. Must never change a word.

/// Returns a paragraph in lines of at most 120 columns.
pub fn paragraph(text: &str) -> String {
    format!("{}\n\n", wrapped(text, "", ""))
}

/// Returns an item of a list, in lines of at most 120 columns.
pub fn item(text: &str) -> String {
    format!("{}\n", wrapped(text, "- ", "  "))
}

fn wrapped(text: &str, first: &str, rest: &str) -> String {
    const COLUMNS: usize = 120;
    let mut lines = String::from(first);
    let mut length = first.len();
    let mut begins = true;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if !begins && length + 1 + width > COLUMNS {
            lines.push('\n');
            lines += rest;
            length = rest.len();
            begins = true;
        }
        if !begins {
            lines.push(' ');
            length += 1;
        }
        lines += word;
        length += width;
        begins = false;
    }
    lines
}
