//! Comparison of two configurations as they are written: comments, blanks, the place of sections and the order of options
//! make no difference. Names what differs by the words of the language. Must never print a password or a key.

use super::keywords::{self, text};
use super::lines::{LineKey, SectionKey, SectionLines, sections};
use config::document::{Document, Line, Word};
use std::collections::BTreeSet;

/// Maximum size of the table that aligns two lists of lines; longer lists are compared as sets.
const MOST_ALIGNED: usize = 4_000_000;

/// Words after which a secret follows.
const SECRET: [&str; 6] =
    ["password", "insecure-password", "dynamic-cookie-key", "stats auth", "anonkey", "cluster-secret"];

/// Returns a line for each difference, by section.
pub fn changes(old: &Document, new: &Document) -> Vec<String> {
    let (old, new) = (sections(old), sections(new));
    let added = new.order.iter().filter(|key| !old.lines.contains_key(key));
    let mut found = Vec::new();
    for key in old.order.iter().chain(added) {
        match (old.lines.get(key), new.lines.get(key)) {
            (Some(old), Some(new)) => section(key, old, new, &mut found),
            (Some(old), None) => found.push(format!("{} removed ({})", key.shown(), lines(old.count()))),
            (None, Some(new)) => found.push(format!("{} added ({})", key.shown(), lines(new.count()))),
            (None, None) => {}
        }
    }
    found
}

fn lines(count: usize) -> String {
    if count == 1 { "1 line".to_owned() } else { format!("{count} lines") }
}

fn section(key: &SectionKey, old: &SectionLines<'_>, new: &SectionLines<'_>, found: &mut Vec<String>) {
    let whose = key.shown();
    for (what, old, new) in [("arguments", &old.arguments, &new.arguments), ("defaults", &old.defaults, &new.defaults)]
    {
        if old != new {
            found.push(format!("{whose}: {what} {}", arrow(old, new)));
        }
    }
    let added = new.groups.iter().filter(|(key, _)| old.get(key).is_empty()).map(|(key, _)| key);
    for line_key in old.groups.iter().map(|(key, _)| key).chain(added) {
        let (before, after) = (old.get(line_key), new.get(line_key));
        match line_key {
            LineKey::Object { .. } => object(key, line_key, before, after, found),
            LineKey::Setting(name) => setting(&whose, name, line_key, before, after, found),
        }
    }
    let is_server = |key: &&LineKey| matches!(key, LineKey::Object { keyword, .. } if keyword == "server");
    let both = |lines: &SectionLines<'_>, other: &SectionLines<'_>| {
        let keys = lines.groups.iter().map(|(key, _)| key).filter(is_server);
        keys.filter(|key| !other.get(key).is_empty()).cloned().collect::<Vec<_>>()
    };
    if both(old, new) != both(new, old) {
        found.push(format!("{whose}: order of servers"));
    }
}

/// Compares the lines of an object with a name.
fn object(section: &SectionKey, key: &LineKey, old: &[&Line], new: &[&Line], found: &mut Vec<String>) {
    let LineKey::Object { keyword, name } = key else { return };
    let named = if name.is_empty() { keyword.clone() } else { format!("{keyword} {name}") };
    let whose = match keyword.as_str() {
        "server" => format!("server {}/{name}", section.name),
        _ => format!("{}: {named}", section.shown()),
    };
    let bodies = |lines: &[&Line]| lines.iter().map(|line| text(&line.words[key.words(line)..])).collect::<Vec<_>>();
    match (old, new) {
        ([], []) => {}
        ([], _) => found.push(format!("{whose} added")),
        (_, []) => found.push(format!("{whose} removed")),
        ([before], [after]) => {
            let changed = options(keyword, &before.words[key.words(before)..], &after.words[key.words(after)..]);
            if !changed.is_empty() {
                let colon = if keyword == "server" { ":" } else { "" };
                found.push(format!("{whose}{colon} {}", changed.join(", ")));
            }
        }
        _ => list(&whose, "line", &bodies(old), &bodies(new), found),
    }
}

/// Compares the options of an object. Those without a table are one text.
fn options(keyword: &str, old: &[Word], new: &[Word]) -> Vec<String> {
    let (kind, has_address) = match keyword {
        "server" | "peer" => ("server", true),
        "default-server" => ("server", false),
        "bind" | "stats socket" => ("bind", false),
        _ => {
            let (old, new) = (text(old), text(new));
            return if old == new { Vec::new() } else { vec![hidden(keyword, &old, &new)] };
        }
    };
    let mut found = Vec::new();
    let (mut old, mut new) = (old, new);
    if has_address && let (Some((own, old_rest)), Some((next, new_rest))) = (old.split_first(), new.split_first()) {
        if own.text != next.text {
            found.push(format!("address {} → {}", own.text, next.text));
        }
        (old, new) = (old_rest, new_rest);
    }
    let (old, new) = (keywords::options(kind, old), keywords::options(kind, new));
    let names: Vec<&str> =
        old.iter().chain(&new).filter_map(|option| option.first()).map(|word| word.text.as_str()).collect();
    let mut seen = BTreeSet::new();
    for name in names.into_iter().filter(|name| seen.insert(*name)) {
        let of = |options: &[&[Word]]| {
            let own = options.iter().filter(|option| option.first().is_some_and(|word| word.text == name));
            own.map(|option| text(&option[1..])).collect::<Vec<_>>()
        };
        let (before, after) = (of(&old), of(&new));
        if before != after {
            let (before, after) = (before.join(" "), after.join(" "));
            found.push(match (of(&old).is_empty(), of(&new).is_empty()) {
                (true, _) => named(name, &after) + " added",
                (_, true) => named(name, &before) + " removed",
                _ => format!("{name} {}", arrow(&before, &after)),
            });
        }
    }
    found
}

/// Compares the lines of a setting: one value, or a list whose order matters.
fn setting(whose: &str, name: &str, key: &LineKey, old: &[&Line], new: &[&Line], found: &mut Vec<String>) {
    let value = |line: &&Line| {
        let negation = if matches!(line.keyword(), "no" | "default") { line.keyword() } else { "" };
        let value = text(&line.words[key.words(line)..]);
        if negation.is_empty() { value } else { format!("({negation}) {value}").trim_end().to_owned() }
    };
    let (before, after): (Vec<String>, Vec<String>) =
        (old.iter().map(value).collect(), new.iter().map(value).collect());
    match (&*before, &*after) {
        _ if before == after => {}
        ([], [value]) => found.push(format!("{whose}: {} added", named(name, &shown(name, value)))),
        ([value], []) => found.push(format!("{whose}: {} removed", named(name, &shown(name, value)))),
        ([before], [after]) => found.push(format!("{whose}: {name} {}", hidden(name, before, after))),
        _ => list(whose, name, &before, &after, found),
    }
}

/// Compares two lists of lines.
fn list(whose: &str, name: &str, old: &[String], new: &[String], found: &mut Vec<String>) {
    for hunk in hunks(old, new) {
        let (removed, added) = (&old[hunk.old.clone()], &new[hunk.new.clone()]);
        let pairs = removed.len().min(added.len());
        for (at, (before, after)) in removed.iter().zip(added).enumerate() {
            let number = hunk.new.start + at + 1;
            found.push(format!("{whose}: {name} (number {number}) {}", hidden(name, before, after)));
        }
        for (at, before) in removed.iter().enumerate().skip(pairs) {
            found.push(format!(
                "{whose}: {} removed (number {})",
                named(name, &shown(name, before)),
                hunk.old.start + at + 1
            ));
        }
        for (at, after) in added.iter().enumerate().skip(pairs) {
            found.push(format!(
                "{whose}: {} added (number {})",
                named(name, &shown(name, after)),
                hunk.new.start + at + 1
            ));
        }
    }
}

/// Ranges of two lists that differ.
#[derive(Debug, PartialEq, Eq)]
struct Hunk {
    old: std::ops::Range<usize>,
    new: std::ops::Range<usize>,
}

/// Aligns two lists by their longest common subsequence.
fn hunks(old: &[String], new: &[String]) -> Vec<Hunk> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (rest_old, rest_new) = (&old[start..], &new[start..]);
    let end = rest_old.iter().rev().zip(rest_new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (own, next) = (&rest_old[..rest_old.len() - end], &rest_new[..rest_new.len() - end]);
    if own.is_empty() && next.is_empty() {
        return Vec::new();
    }
    if own.len().saturating_mul(next.len()) > MOST_ALIGNED {
        return vec![Hunk { old: start..start + own.len(), new: start..start + next.len() }];
    }
    // Lengths of the longest common subsequences of the rests.
    let width = next.len() + 1;
    let mut lengths = vec![0_u32; (own.len() + 1) * width];
    for a in (0..own.len()).rev() {
        for b in (0..next.len()).rev() {
            lengths[a * width + b] = match own[a] == next[b] {
                true => lengths[(a + 1) * width + b + 1] + 1,
                false => lengths[(a + 1) * width + b].max(lengths[a * width + b + 1]),
            };
        }
    }
    let (mut found, mut a, mut b) = (Vec::new(), 0, 0);
    while a < own.len() || b < next.len() {
        let (from_a, from_b) = (a, b);
        while (a < own.len() || b < next.len()) && !(a < own.len() && b < next.len() && own[a] == next[b]) {
            let goes_on_in_new =
                a == own.len() || b < next.len() && lengths[a * width + b + 1] > lengths[(a + 1) * width + b];
            if goes_on_in_new { b += 1 } else { a += 1 }
        }
        if (from_a, from_b) != (a, b) {
            found.push(Hunk { old: start + from_a..start + a, new: start + from_b..start + b });
        }
        (a, b) = ((a + 1).min(own.len()), (b + 1).min(next.len()));
    }
    found
}

fn named(name: &str, value: &str) -> String {
    if value.is_empty() { name.to_owned() } else { format!("{name} {value}") }
}

/// Returns `old → new`.
fn arrow(old: &str, new: &str) -> String {
    let shown = |text: &str| if text.is_empty() { "(none)".to_owned() } else { text.to_owned() };
    format!("{} → {}", shown(old), shown(new))
}

/// Returns `old → new`, without secrets.
fn hidden(name: &str, old: &str, new: &str) -> String {
    let (old, new) = (shown(name, old), shown(name, new));
    if old == new { format!("{old} (another secret)") } else { arrow(&old, &new) }
}

/// Returns a value without the secrets in it.
fn shown(name: &str, value: &str) -> String {
    if SECRET.contains(&name) {
        return "…".to_owned();
    }
    let mut words: Vec<&str> = value.split(' ').collect();
    for at in 1..words.len() {
        if SECRET.contains(&words[at - 1]) {
            words[at] = "…";
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::environment::Environment;
    use config::{InputFile, LoadOptions};

    fn read(text: &str) -> Document {
        let file = InputFile { name: "a.cfg".to_owned(), bytes: text.into() };
        config::load(&[file], Environment::new(), &LoadOptions::default()).document
    }

    fn between(old: &str, new: &str) -> Vec<String> {
        changes(&read(old), &read(new))
    }

    #[test]
    fn what_means_the_same_is_no_change() {
        let old = "global\n maxconn 10\nfrontend www\n bind :80\nbackend app\n server a 127.0.0.1:1 weight 3 check\n";
        let new = "# a comment\nbackend app\n  server   a 127.0.0.1:1 check weight 3\n\nfrontend www\n bind :80\nglobal\n maxconn 10\n";
        assert_eq!(between(old, new), [] as [&str; 0]);
    }

    #[test]
    fn changes_are_named() {
        let rows: &[(&str, &str, &[&str])] = &[
            ("global\n maxconn 10\n", "global\n maxconn 20\n", &["global: maxconn 10 → 20"]),
            (
                "backend app\n server app1 127.0.0.1:1 weight 30 check\n",
                "backend app\n server app1 127.0.0.2:1 weight 31 backup inter 2s\n",
                &[
                    "server app/app1: address 127.0.0.1:1 → 127.0.0.2:1, weight 30 → 31, check removed, backup added, inter 2s added",
                ],
            ),
            (
                "backend app\n server a 127.0.0.1:1\n server b 127.0.0.1:2\n",
                "backend app\n server b 127.0.0.1:2\n server a 127.0.0.1:1\n server c 127.0.0.1:3\n",
                &["server app/c added", "backend app: order of servers"],
            ),
            (
                "backend a\n mode http\nbackend b\n",
                "backend b\nbackend c\n",
                &["backend a removed (1 line)", "backend c added (0 lines)"],
            ),
            (
                "frontend www\n bind :80\n bind :443 ssl crt a.pem crt b.pem\n",
                "frontend www\n bind :81\n bind :443 ssl crt a.pem crt c.pem\n",
                &[
                    "frontend www: bind :80 removed",
                    "frontend www: bind :443 crt a.pem b.pem → a.pem c.pem",
                    "frontend www: bind :81 added",
                ],
            ),
            (
                "frontend www\n use_backend a if x\n use_backend b if y\n use_backend c if z\n",
                "frontend www\n use_backend a if x\n use_backend b if !y\n use_backend c if z\n use_backend d\n",
                &[
                    "frontend www: use_backend (number 2) b if y → b if !y",
                    "frontend www: use_backend d added (number 4)",
                ],
            ),
            (
                "frontend www\n http-request deny if a\n",
                "frontend www\n http-request deny if b\n",
                &["frontend www: http-request deny if a → deny if b"],
            ),
            (
                "defaults\n timeout client 10s\n option httplog\n",
                "defaults\n timeout client 20s\n no option httplog\n option dontlognull\n",
                &[
                    "defaults: timeout client 10s → 20s",
                    "defaults: option httplog (none) → (no)",
                    "defaults: option dontlognull added",
                ],
            ),
            (
                "defaults a\n mode http\ndefaults b\n mode http\nbackend x from a\n",
                "defaults a\n mode http\ndefaults b\n mode http\nbackend x from b\n",
                &["backend x: arguments from a → from b"],
            ),
            (
                "defaults\n mode http\nbackend x\ndefaults\n mode tcp\n",
                "defaults\n mode http\ndefaults\n mode tcp\nbackend x\n",
                &["backend x: defaults defaults → defaults (number 2)"],
            ),
            (
                "userlist u\n user a password abc groups g\n",
                "userlist u\n user a password def groups g\n",
                &["userlist u: user a password … groups g (another secret)"],
            ),
            (
                "listen s\n stats auth a:b\n",
                "listen s\n stats auth a:c\n",
                &["listen s: stats auth … (another secret)"],
            ),
            (
                "global\n stats socket /a level admin\n",
                "global\n stats socket /a level user\n stats socket /b\n",
                &["global: stats socket /a level admin → user", "global: stats socket /b added"],
            ),
            (
                "frontend www\n acl x path /a\n acl x path /b\n",
                "frontend www\n acl x path /b\n",
                &["frontend www: acl x: line path /a removed (number 1)"],
            ),
        ];
        for (old, new, wanted) in rows {
            let found = between(old, new);
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            assert_eq!(found, *wanted, "{old} -> {new}");
        }
    }

    #[test]
    fn lists_are_aligned() {
        let list = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        for (old, new, wanted) in [
            ("", "", vec![]),
            ("abc", "abc", vec![]),
            ("abc", "axc", vec![(1..2, 1..2)]),
            ("abc", "bc", vec![(0..1, 0..0)]),
            ("abcd", "bxd", vec![(0..1, 0..0), (2..3, 1..2)]),
            ("ab", "ba", vec![(0..1, 0..0), (2..2, 1..2)]),
        ] {
            let wanted: Vec<Hunk> = wanted.into_iter().map(|(old, new)| Hunk { old, new }).collect();
            assert_eq!(hunks(&list(old), &list(new)), wanted, "{old} {new}");
        }
        let (long, other) = (vec!["a".to_owned(); 3000], vec!["b".to_owned(); 3000]);
        assert_eq!(hunks(&long, &other), [Hunk { old: 0..3000, new: 0..3000 }]);
    }
}
