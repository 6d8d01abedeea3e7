//! Parts of a line, by the tables of keywords: the words of its name, and the options of `bind` and `server` lines. Must
//! never judge a line.

use config::document::Word;
use config::keyword::catalogue;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::new);

struct Tables {
    /// Names of settings, each with its kind: `("proxy", "timeout client")`.
    settings: HashSet<(&'static str, &'static str)>,
    /// Options of lines, each with its kind, and whether a word follows.
    options: HashMap<(&'static str, &'static str), bool>,
}

impl Tables {
    fn new() -> Self {
        let (mut settings, mut options) = (HashSet::new(), HashMap::new());
        for entry in catalogue::entries() {
            match entry.kind {
                "global" | "proxy" => {
                    settings.insert((entry.kind, entry.name));
                }
                "bind" | "server" => {
                    options.insert((entry.kind, entry.name), takes_word(entry.usage));
                }
                _ => {}
            }
        }
        Self { settings, options }
    }
}

/// Whether a usage has arguments other than those in parentheses, which are part of the name's word.
fn takes_word(usage: &str) -> bool {
    let usage = usage.trim_start_matches('[');
    let rest = match usage.strip_prefix('(') {
        Some(inside) => inside.split_once(')').map_or("", |(_, rest)| rest.trim_start_matches(']')),
        None => usage,
    };
    !rest.trim().is_empty()
}

/// Returns words as one text.
pub fn text(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Returns the number of words that name what a line of such a section sets: 2 for `timeout client 10s`.
pub fn name_length(section: &str, words: &[Word]) -> usize {
    let kind = match section {
        "global" => "global",
        "defaults" | "frontend" | "backend" | "listen" => "proxy",
        _ => return 1,
    };
    let is_option = kind == "proxy" && words.first().is_some_and(|word| word.text == "option");
    let is_known = |length: &usize| {
        let name = text(words.get(..*length).unwrap_or_default());
        TABLES.settings.contains(&(kind, name.as_str()))
    };
    let length = if is_option { 2 } else { [3, 2].into_iter().find(is_known).unwrap_or(1) };
    length.min(words.len())
}

/// Splits the options of a `bind` or `server` line, after its address: each with its arguments. An unknown one has none.
pub fn options<'a>(kind: &'static str, mut words: &'a [Word]) -> Vec<&'a [Word]> {
    let mut found = Vec::new();
    while let Some((first, rest)) = words.split_first() {
        let name = first.text.split('(').next().unwrap_or_default();
        let mut length = usize::from(TABLES.options.get(&(kind, name)).copied().unwrap_or_default()).min(rest.len());
        if name == "source" {
            while matches!(rest.get(length).map(|word| word.text.as_str()), Some("usesrc" | "interface")) {
                length = (length + 2).min(rest.len());
            }
        }
        let (option, after) = words.split_at(1 + length);
        found.push(option);
        words = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::document::Line;

    fn line(text: &str) -> Line {
        let word = |text: &str| Word { text: text.to_owned(), ..Word::default() };
        Line { words: text.split(' ').map(word).collect(), ..Line::default() }
    }

    #[test]
    fn lines_are_named_by_the_tables() {
        for (section, text, wanted) in [
            ("global", "maxconn 10", 1),
            ("global", "stats socket /run/x.sock", 2),
            ("backend", "timeout server 10s", 2),
            ("backend", "option httplog clf", 2),
            ("frontend", "http-request deny if x", 1),
            ("frontend", "tcp-request content accept", 2),
            ("frontend", "unknown a b", 1),
            ("userlist", "user a password b", 1),
        ] {
            assert_eq!(name_length(section, &line(text).words), wanted, "{section}: {text}");
        }
    }

    #[test]
    fn options_have_their_arguments() {
        let of = |kind, text: &str| {
            let line = line(text);
            let options = options(kind, &line.words);
            options.into_iter().map(super::text).collect::<Vec<_>>()
        };
        assert_eq!(
            of("server", "weight 30 check source 192.0.2.1 interface eth0 backup what"),
            ["weight 30", "check", "source 192.0.2.1 interface eth0", "backup", "what"]
        );
        assert_eq!(of("bind", "ssl crt a.pem alpn h2,http/1.1"), ["ssl", "crt a.pem", "alpn h2,http/1.1"]);
    }

    /// The list of `-dKcfg` is printed from the tables that the parser uses.
    #[test]
    fn arguments_are_those_of_the_parser() {
        let mut text = String::new();
        catalogue::dump(&mut text);
        let mut count = 0;
        for line in text.lines().map(str::trim) {
            let words: Vec<&str> = line.split(' ').collect();
            let (kind, name, rest) = match words.as_slice() {
                ["bind", "<addr>", name, rest @ ..] => ("bind", *name, rest),
                ["server", "<name>", "<addr>", name, rest @ ..] => ("server", *name, rest),
                _ => continue,
            };
            let own = TABLES.options.iter().find(|((of, known), _)| *of == kind && *known == name);
            assert_eq!(own.map(|(_, takes_word)| *takes_word), Some(rest == ["+1"]), "{line}");
            count += 1;
        }
        assert!(count > 100, "{count}");
    }
}
