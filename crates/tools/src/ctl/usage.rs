//! Usages of commands as `help` lists them, and the words that may come next. Must never ask a process.

/// Maximum number of steps of one search: a usage with repeated choices has many readings.
const MOST_STEPS: usize = 20_000;
/// Maximum number of commands, and length of a usage in bytes.
const MOST_USAGES: usize = 2000;
const LONGEST_USAGE: usize = 500;
/// Maximum depth of brackets.
const DEEPEST: usize = 8;

/// Words in brackets that are no words of the language.
const VARIABLES: [&str; 12] =
    ["thread_num", "nb", "num", "id", "opts", "args", "section", "map", "var", "msg", "code", "size"];

/// Usages that `help` leaves out, or shortens. Each is offered if `help` lists a command with the same first two words.
const EXTRA: [&str; 24] = [
    "set server <bk>/<srv> state {ready|drain|maint}",
    "set server <bk>/<srv> weight",
    "set server <bk>/<srv> addr",
    "set server <bk>/<srv> agent {up|down}",
    "set server <bk>/<srv> agent-addr",
    "set server <bk>/<srv> agent-port",
    "set server <bk>/<srv> agent-send",
    "set server <bk>/<srv> check-addr",
    "set server <bk>/<srv> check-port",
    "set server <bk>/<srv> fqdn",
    "set server <bk>/<srv> health {up|stopping|down}",
    "set server <bk>/<srv> ssl {on|off}",
    "enable server <bk>/<srv>",
    "disable server <bk>/<srv>",
    "enable health <bk>/<srv>",
    "disable health <bk>/<srv>",
    "enable agent <bk>/<srv>",
    "disable agent <bk>/<srv>",
    "set weight <bk>/<srv>",
    "set maxconn server <bk>/<srv>",
    "show map <map>",
    "show table <table> key",
    "clear table <table> key",
    "set table <table> key",
];

/// Part of a usage.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// `<name>`: any word.
    Placeholder(String),
    /// `[a|b]`, `{a|b}`, `[a|b]*`.
    Choice {
        alternatives: Vec<Vec<Part>>,
        is_optional: bool,
        is_repeated: bool,
    },
}

/// A word that may come next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextWord {
    Literal(String),
    /// Any word of the kind that a placeholder names, such as `bk/srv`.
    Placeholder(String),
}

/// Usages of every command of a process.
#[derive(Debug, Default)]
pub struct Usages(Vec<Vec<Part>>);

impl Usages {
    /// Parses the answer to `help`.
    pub fn of_help(text: &str) -> Self {
        let usage = |line: &str| {
            let line = line.strip_prefix("  ")?;
            let usage = line.split_once(" : ").map_or(line, |(usage, _)| usage);
            (usage.len() <= LONGEST_USAGE).then(|| parse(usage, DEEPEST))
        };
        let mut usages: Vec<Vec<Part>> = text.lines().filter_map(usage).take(MOST_USAGES).collect();
        let begins = |usages: &[Vec<Part>], extra: &[Part]| usages.iter().any(|usage| usage.get(..2) == extra.get(..2));
        let extra: Vec<Vec<Part>> =
            EXTRA.iter().map(|usage| parse(usage, DEEPEST)).filter(|extra| begins(&usages, extra)).collect();
        usages.extend(extra);
        Self(usages)
    }

    /// Returns the words that may follow these words, sorted.
    pub fn after(&self, words: &[&str]) -> Vec<NextWord> {
        let mut search = Search { found: Vec::new(), steps: 0 };
        for usage in &self.0 {
            search.steps = 0;
            search.follow(usage, &[], words);
        }
        search.found.sort();
        search.found.dedup();
        search.found
    }
}

struct Search {
    found: Vec<NextWord>,
    steps: usize,
}

impl Search {
    /// Follows the parts, then those of `rest`, innermost first, along the words.
    fn follow(&mut self, parts: &[Part], rest: &[&[Part]], words: &[&str]) {
        self.steps += 1;
        if self.steps > MOST_STEPS || rest.len() > 64 {
            return;
        }
        let Some((part, after)) = parts.split_first() else {
            if let Some((next, rest)) = rest.split_first() {
                self.follow(next, rest, words);
            }
            return;
        };
        match (part, words.split_first()) {
            (Part::Literal(text), None) => self.found.push(NextWord::Literal(text.clone())),
            (Part::Placeholder(name), None) => self.found.push(NextWord::Placeholder(name.clone())),
            (Part::Literal(text), Some((word, words))) => {
                if text == word {
                    self.follow(after, rest, words);
                }
            }
            (Part::Placeholder(_), Some((_, words))) => self.follow(after, rest, words),
            (Part::Choice { alternatives, is_optional, is_repeated }, _) => {
                // A repeated choice is followed by itself.
                let again = if *is_repeated { parts } else { after };
                let nested: Vec<&[Part]> = std::iter::once(again).chain(rest.iter().copied()).collect();
                for alternative in alternatives.iter().filter(|alternative| !alternative.is_empty()) {
                    self.follow(alternative, &nested, words);
                }
                if *is_optional {
                    self.follow(after, rest, words);
                }
            }
        }
    }
}

/// Parses a usage, brackets up to that depth.
fn parse(text: &str, depth: usize) -> Vec<Part> {
    if depth == 0 {
        return Vec::new();
    }
    let mut parts = Vec::new();
    for token in tokens(text, ' ') {
        let (body, is_repeated) = match token.strip_suffix('*') {
            Some(body) if body.ends_with([']', '}']) => (body, true),
            _ => (token, false),
        };
        let inside = |open: char, close: char| body.strip_prefix(open).and_then(|body| body.strip_suffix(close));
        let part = match (inside('[', ']'), inside('{', '}')) {
            (Some(body), _) => {
                Part::Choice { alternatives: alternatives(body, depth - 1), is_optional: true, is_repeated }
            }
            (_, Some(body)) => {
                Part::Choice { alternatives: alternatives(body, depth - 1), is_optional: false, is_repeated }
            }
            _ => match word(token) {
                Some(part) => part,
                None => continue,
            },
        };
        parts.push(part);
    }
    parts
}

fn alternatives(body: &str, depth: usize) -> Vec<Vec<Part>> {
    let alternative = |text: &str| match parse(text.trim(), depth) {
        parts if matches!(&*parts, [Part::Literal(text)] if VARIABLES.contains(&text.as_str())) => {
            vec![Part::Placeholder(text.trim().to_owned())]
        }
        parts => parts,
    };
    tokens(body, '|').into_iter().map(alternative).collect()
}

/// Parses a word without brackets around it. `None`: a remark, which is not typed.
fn word(token: &str) -> Option<Part> {
    let is_remark = token.starts_with('(') || token.starts_with("...") || token.ends_with("...") || token == ":";
    if is_remark || token.is_empty() {
        return None;
    }
    if token.contains('<') || token.contains(['[', '|', '*', '#', '.']) {
        let name = token.replace(['<', '>', '\\'], "");
        return Some(Part::Placeholder(name.split('[').next().unwrap_or_default().to_owned()));
    }
    Some(Part::Literal(token.to_owned()))
}

/// Splits at a separator outside of brackets.
fn tokens(text: &str, separator: char) -> Vec<&str> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '{' | '<' => depth += 1,
            ']' | '}' | '>' => depth = depth.saturating_sub(1),
            _ if letter == separator && depth == 0 => {
                found.push(&text[start..at]);
                start = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    found.push(&text[start..]);
    found.into_iter().filter(|token| !token.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "The following commands are valid at this level:
  clear counters [all|server <bk>/<srv> [force]] : clear max statistics counters (or all, or one server's)
  disable server (DEPRECATED)             : disable a server for maintenance
  purge cache <name> { key <url> | tag <tag> | all } : remove responses from a cache
  set maxconn global <value>              : change the per-process maxconn setting
  set profiling <what> {auto|on|off}      : enable/disable resource profiling (tasks,memory)
  set server <bk>/<srv> [opts]            : change a server's state, weight, address, name or ssl
  show activity [-1|0|thread_num]         : show per-thread activity stats
  show map [@<ver>] [map]                 : report available maps or dump a map's contents
  show profiling [<what>|<#lines>|<opts>]* : show profiling state
  show stat [desc|json|no-maint|typed|up]* : report counters for each proxy and server
  show table [<table> [<filter>]*]        : report table usage stats
  quit                                    : disconnect
";

    fn after(words: &str) -> Vec<String> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let shown = |next: NextWord| match next {
            NextWord::Literal(text) => text,
            NextWord::Placeholder(name) => format!("<{name}>"),
        };
        Usages::of_help(HELP).after(&words).into_iter().map(shown).collect()
    }

    #[test]
    fn usages_say_what_comes_next() {
        let rows: [(&str, &[&str]); 16] = [
            ("", &["clear", "disable", "purge", "quit", "set", "show"]),
            ("show", &["activity", "map", "profiling", "stat", "table"]),
            ("show stat", &["desc", "json", "no-maint", "typed", "up"]),
            ("show stat json", &["desc", "json", "no-maint", "typed", "up"]),
            ("show stat nothing", &[]),
            ("show table", &["<table>"]),
            ("show table abuse", &["key", "<filter>"]),
            ("show map", &["<@ver>", "<map>"]),
            ("show activity", &["-1", "0", "<thread_num>"]),
            ("clear counters", &["all", "server"]),
            ("clear counters server app/s1", &["force"]),
            ("purge cache c", &["all", "key", "tag"]),
            ("set profiling tasks", &["auto", "off", "on"]),
            ("set server app/s1 state", &["drain", "maint", "ready"]),
            ("disable server", &["<bk/srv>"]),
            // Not listed: 'set weight'.
            ("set weight", &[]),
        ];
        for (words, wanted) in rows {
            assert_eq!(after(words), wanted, "{words}");
        }
    }

    #[test]
    fn a_search_ends() {
        let words = "x ".repeat(60);
        assert_eq!(after(&format!("show profiling {words}")), ["<#lines>", "<opts>", "<what>"]);
        for deep in [format!("  a {}b{}\n", "[".repeat(200), "]".repeat(200)), format!("  a {}\n", "[".repeat(5000))] {
            assert!(Usages::of_help(&deep).after(&["a"]).is_empty());
        }
    }
}
