//! The options of a help page. Owns how they are recognized: a line that is indented by two to four columns and begins
//! with a dash; its text follows after at least two blanks, or on the more indented lines below. Must never know a
//! command.

pub(super) struct ShellOption {
    /// Its spellings, such as `-h` and `--help`.
    pub names: Vec<String>,
    /// The name of its value; empty: no value.
    pub value: String,
    /// True if the value is optional, or attached to the name.
    pub attached: bool,
    /// Description, one sentence.
    pub doc: String,
}

impl ShellOption {
    /// True if the value names a file or a folder.
    pub(super) fn takes_file(&self) -> bool {
        ["FILE", "FOLDER", "SOCKET", "PAGE"].iter().any(|kind| self.value.contains(kind))
    }

    /// True if the next word is the value.
    pub(super) fn takes_word(&self) -> bool {
        !self.value.is_empty() && !self.attached
    }
}

/// The options of a page, in order.
pub(super) struct Options(pub(super) Vec<ShellOption>);

impl Options {
    /// Parses the options of a help page.
    pub(super) fn of_help(text: &str) -> Self {
        let mut found: Vec<ShellOption> = Vec::new();
        // Whether the text of the last option may continue.
        let mut open = false;
        for line in text.lines() {
            let depth = line.len() - line.trim_start().len();
            let content = line.trim();
            if (2..=4).contains(&depth) && content.starts_with('-') {
                found.push(option(content));
                open = true;
            } else if open && depth > 4 && !content.is_empty() {
                if let Some(last) = found.last_mut() {
                    let blank = if last.doc.is_empty() { "" } else { " " };
                    last.doc = format!("{}{blank}{content}", last.doc);
                }
            } else {
                open = false;
            }
        }
        Self(found)
    }

    /// Finds the option with that spelling.
    #[cfg(test)]
    pub(super) fn find(&self, name: &str) -> Option<&ShellOption> {
        self.0.iter().find(|option| option.names.iter().any(|known| known == name))
    }
}

/// Parses a line: spellings and value, then the text. A value may be separated from its name by a blank or by `=`, or
/// be in brackets.
fn option(line: &str) -> ShellOption {
    let (head, doc) = split(line);
    let mut option = ShellOption { names: Vec::new(), value: String::new(), attached: false, doc: doc.to_owned() };
    for part in head.split(", ") {
        let end = part.find([' ', '=', '[']).unwrap_or(part.len());
        let (name, value) = part.split_at(end);
        if name.len() > 1 && name.starts_with('-') {
            option.names.push(name.to_owned());
        }
        option.attached |= value.starts_with('[');
        let value = value.trim_start_matches([' ', '=']);
        if !value.is_empty() {
            value.clone_into(&mut option.value);
        }
    }
    option
}

/// Splits a line into head and text at two blanks. A head that fills its column is followed by only one blank and a
/// lower-case letter.
fn split(line: &str) -> (&str, &str) {
    if let Some((head, doc)) = line.split_once("  ") {
        return (head, doc.trim());
    }
    let small = |(at, _): &(usize, &str)| line[at + 1..].starts_with(|letter: char| letter.is_ascii_lowercase());
    match line.match_indices(' ').find(small) {
        Some((at, _)) if !line[..at].ends_with(',') => (&line[..at], &line[at + 1..]),
        _ => (line, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_spellings_a_value_and_a_text() {
        let rows: [(&str, &[&str], &str, bool, &str); 8] = [
            ("-D                  starts", &["-D"], "", false, "starts"),
            ("-f FILE|FOLDER      loads a file", &["-f"], "FILE|FOLDER", false, "loads a file"),
            ("-dK[CLASSES]        prints", &["-dK"], "CLASSES]", true, "prints"),
            ("-sf [PID...]        asks", &["-sf"], "[PID...]", false, "asks"),
            ("--json[=FILE]       writes", &["--json"], "[=FILE]", true, "writes"),
            ("-h, --help          prints this page", &["-h", "--help"], "", false, "prints this page"),
            ("-S ADDRESS[,OPTION...] address of it", &["-S"], "ADDRESS[,OPTION...]", false, "address of it"),
            ("--into PAGE FOLDER...", &["--into"], "PAGE FOLDER...", false, ""),
        ];
        for (line, names, value, attached, doc) in rows {
            let option = option(line);
            assert_eq!(option.names, names, "{line}");
            assert_eq!(option.value.trim_matches(['[', ']', '=']), value.trim_matches(['[', ']', '=']), "{line}");
            assert_eq!((option.attached, option.doc.as_str()), (attached, doc), "{line}");
        }
    }

    #[test]
    fn the_text_goes_on_on_deeper_lines_and_ends_with_them() {
        let page = "Usage: x -a\n\n  -L PORT\n                 listens\n                 there\n  -b  ends it\n\nafter -c it\n";
        let options = Options::of_help(page);
        assert_eq!(options.0.len(), 2);
        assert_eq!(options.find("-L").expect("listed").doc, "listens there");
        assert_eq!(options.find("-b").expect("listed").doc, "ends it");
    }
}
