//! The English of comments and documents: phrases that a reader has to translate back into the terms of HAProxy's manual, the RFCs
//! or Rust. Their number by crate only shrinks.

use crate::{shrinking, tree};
use regex_lite::Regex;
use std::collections::BTreeMap;
use std::path::Path;

/// Phrases, by crate or document. Those that are not listed have none.
const PHRASES: &[(&str, usize)] = &[("docs", 6), ("engine", 3), ("policy", 3), ("tls", 3)];

/// What is counted, each with a better word in its name.
const PATTERNS: &[(&str, &str)] = &[
    ("behind (after, following)", r"\bbehind\b"),
    ("tell (return, report, log, advertise)", r"\b(tell|tells|told|telling)\b"),
    ("nobody, whoever (the passive)", r"\b(nobody|whoever|somebody|anybody|no one)\b"),
    ("so many (the number of)", r"\bso (many|much|long|often)\b"),
    ("what becomes (the result)", r"\b[Ww]hat (becomes|goes|went|has come|comes|came|stands|lies|begins|is at hand)\b"),
    (
        "stands, lies, lives (is, is stored)",
        r"\b(stands|stand|lies|lives) (in|on|at|there|here|behind|beside|between|for)\b",
    ),
    ("for want of (because there is no)", r"\b(for want of|of one mind|had better|as far as the others know)\b"),
    ("who does (the noun)", r"\b(who|whom|whose) (does|has|asks|wants|knows|reads|calls|holds|gets|takes)\b"),
    ("any more, meanwhile (no longer, until then)", r"\b(any more|in the meantime)\b"),
    ("a doc comment that begins with What", r"^\s*//[/!] What\b"),
];

/// A proxy behind a proxy is not a matter of order.
const BEHIND_A_PROXY: &str = r"\bbehind (a|an|the|another|other|one|this|such a|it a) ?(reverse |other )?(proxy|proxies|balancer|balancers|NAT|firewall|CDN)";

#[test]
fn phrases_only_shrink() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let counter = Counter::new();
    let documents = tree::files("")
        .into_iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "md") && !file.ends_with("CHANGELOG.md"));
    for file in tree::rust_files().into_iter().chain(documents) {
        if file
            .components()
            .any(|part| ["tests", "fixtures", "corpus"].iter().any(|folder| part.as_os_str() == *folder))
        {
            continue;
        }
        let is_document = file.extension().is_some_and(|extension| extension == "md");
        for (number, line) in tree::read(&file).lines().enumerate() {
            if is_document || line.trim_start().starts_with("//") {
                let places = counter.phrases(line).map(|name| format!("{}:{}: {name}", file.display(), number + 1));
                found.entry(owner(&file)).or_default().extend(places);
            }
        }
    }
    shrinking::check("phrases", PHRASES, &found);
}

/// The crate or the folder of documents that a file belongs to.
fn owner(file: &Path) -> String {
    let mut parts = file.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let first = parts.next().unwrap_or_default();
    if first == "crates" { shrinking::crate_of(file) } else { first }
}

/// The patterns, ready for use.
struct Counter {
    code: Regex,
    proxies: Regex,
    patterns: Vec<(&'static str, Regex)>,
}

impl Counter {
    fn new() -> Self {
        let made = |pattern: &str| Regex::new(pattern).expect("a pattern");
        let patterns = PATTERNS.iter().map(|(name, pattern)| (*name, made(pattern))).collect();
        Self { code: made("`[^`]*`"), proxies: made(BEHIND_A_PROXY), patterns }
    }

    /// Names of the patterns that a line matches.
    fn phrases(&self, line: &str) -> impl Iterator<Item = &'static str> {
        let bare = self.code.replace_all(line, "`").into_owned();
        let bare = self.proxies.replace_all(&bare, "").into_owned();
        self.patterns.iter().filter(move |(_, pattern)| pattern.is_match(&bare)).map(|(name, _)| *name)
    }
}

#[test]
fn phrases_are_found_outside_of_code() {
    let counter = Counter::new();
    let rows = [
        ("/// What it is.", 1),
        ("/// Whatever it is, what stands behind it is told.", 4),
        ("// a server behind a proxy, `behind` a name", 0),
        ("/// Returns the rest.", 0),
    ];
    for (line, expected) in rows {
        assert_eq!(counter.phrases(line).count(), expected, "{line}");
    }
}
