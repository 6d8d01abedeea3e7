//! The help text. Owns its wording and layout; the options are those of the table.

use super::{Group, OPTIONS, Row, Value};
use std::fmt::Write;

const HEAD: &str = "\
NAME
    weir load - sends HTTP requests and measures the answers

USAGE
    weir load [OPTIONS] URL [[OPTIONS] URL]...

    A URL is [http[s]://]HOST[:PORT][/PATH]. Numbers take k, m and g; times take us, ms, s, m, h and d.
    Options and columns are h1load's; long options extend it.
";

const TAIL: &str = "
STATUS
    0 if the run completed, whatever the answers were; 1 if it could not run; 2 for a usage error

EXAMPLES
    weir load -c 100 -d 10 http://127.0.0.1:8080/
    weir load -t 4 -c 400 -d 60 -s 10 -P -ll http://127.0.0.1:8080/ > load.txt
    weir load -c 50 -d 60 --constant 20k --reference 100 --summary http://127.0.0.1:8080/
    weir load -c 10 -n 100k --weight 9 http://127.0.0.1/a -X POST --body order.json http://127.0.0.1/b
    weir load -c 100 -d 60 --live --json=run.json http://127.0.0.1:8080/
";

/// Returns the whole page.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(HEAD);
    for (group, heading) in Group::ALL {
        let (title, rest) = heading.split_once(':').unwrap_or((heading, ""));
        let separator = if rest.is_empty() { "" } else { ":" };
        let _ = write!(page, "\n{}{separator}{rest}\n", title.to_uppercase());
        for row in OPTIONS.iter().filter(|row| row.group == *group) {
            let _ = writeln!(page, "    {:<26} {}", synopsis(row), row.doc);
        }
    }
    page.push_str(TAIL);
    page
}

/// Returns an option with its value, as shown in the help.
fn synopsis(row: &Row) -> String {
    match row.value {
        Value::None => row.name.to_owned(),
        Value::Needed(value) => format!("{} {value}", row.name),
        Value::Optional(value) => format!("{}[={value}]", row.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_option_and_fits_a_terminal() {
        let page = page();
        for row in OPTIONS {
            assert!(page.contains(&format!("\n    {} ", synopsis(row))), "{}", row.name);
        }
        for line in page.lines() {
            assert!(line.len() <= 120, "{line}");
        }
    }
}
