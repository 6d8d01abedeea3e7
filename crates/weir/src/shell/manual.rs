//! The manual page `weir(8)`. Owns its layout in roff (`man(7)`): the program's help page, then one section per tool.
//! Must never know an option by name.

use super::Page;
use std::fmt::Write;

/// Escapes characters that are special to roff.
fn plain(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    // A line of text must not begin like a roff request.
    text.lines()
        .map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the manual page.
pub(super) fn roff(pages: &[Page]) -> String {
    let version = crate::version::VERSION;
    let mut out = String::from(".\\\" Written by 'weir manual'.\n");
    let date = crate::version::RELEASE_DATE.replace('/', "-");
    let _ = writeln!(out, ".TH WEIR 8 {date} \"weir {version}\" \"System administration\"");
    for page in pages {
        match page.command {
            None => section(&mut out, page, ""),
            Some(command) => section(&mut out, page, &format!("weir {command}")),
        }
    }
    out.push_str(".SH SEE ALSO\nThe documentation of Weir in /usr/share/doc/weir, and the configuration manual of HAProxy 3.5.\n");
    out
}

/// Converts a help page: a heading in capitals becomes a section, an option a tagged paragraph; other lines are kept as
/// they are.
fn section(out: &mut String, page: &Page, command: &str) {
    if !command.is_empty() {
        let _ = writeln!(out, ".SH {}", command.to_uppercase());
    }
    let is_heading = |line: &str| {
        let mut letters = line.chars().filter(|letter| letter.is_alphabetic()).peekable();
        line.starts_with(|letter: char| letter.is_ascii_uppercase())
            && letters.peek().is_some()
            && line.split(':').next().is_some_and(|head| head.chars().all(|letter| !letter.is_lowercase()))
    };
    let mut options = page.options.0.iter();
    let (mut within, mut verbatim) = (false, false);
    for line in page.text.lines() {
        let depth = line.len() - line.trim_start().len();
        let is_option = (2..=4).contains(&depth) && line.trim_start().starts_with('-');
        if verbatim && (line.is_empty() || is_option || is_heading(line)) {
            out.push_str(".fi\n");
            verbatim = false;
        }
        if is_heading(line) {
            let request = if command.is_empty() { ".SH" } else { ".SS" };
            let _ = writeln!(out, "{request} {}", plain(line));
            within = false;
        } else if is_option {
            if let Some(option) = options.next() {
                let tag = option.names.join(", ");
                let value = option.value.trim_end_matches(if option.attached { ']' } else { '\0' });
                let value = match (option.value.is_empty(), option.attached) {
                    (true, _) => String::new(),
                    (false, true) => format!("[{}]", value.trim_start_matches('[')),
                    (false, false) => format!(" {value}"),
                };
                let _ = writeln!(out, ".TP\n\\fB{}\\fR{}\n{}", plain(&tag), plain(&value), plain(&option.doc));
            }
            within = true;
        } else if within && depth > 4 {
            // Part of the option's text, which has been written.
        } else if line.is_empty() {
            within = false;
            out.push_str(".PP\n");
        } else if command.is_empty() && line.starts_with("    weir - ") {
            let _ = writeln!(out, "{}", plain(line.trim()));
        } else {
            if !verbatim {
                out.push_str(".nf\n");
                verbatim = true;
            }
            let _ = writeln!(out, "{}", plain(line.strip_prefix("    ").unwrap_or(line)));
        }
    }
    if verbatim {
        out.push_str(".fi\n");
    }
}
