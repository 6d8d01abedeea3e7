//! Replacements that refer to groups which their regular expression does not have. Must never compile an expression.

use crate::finding::Findings;
use crate::model::{Model, Proxy, StatementKind};
use crate::rule::Rule;
use config::span::Span;

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[Rule {
    name: "missing-group",
    doc: "a replacement refers to a group that the regular expression does not have, which is always empty",
    check: missing_group,
}];

/// Actions whose arguments are a regular expression and a replacement, after this number of other arguments.
const REPLACING: &[(&str, usize)] =
    &[("replace-header", 1), ("replace-value", 1), ("replace-path", 0), ("replace-pathq", 0), ("replace-uri", 0)];

fn missing_group(model: &Model<'_>, findings: &mut Findings) {
    for proxy in &model.proxies {
        in_actions(proxy, findings);
        let calls = proxy.samples.iter().flat_map(|sample| sample.calls.iter().map(|call| (call, sample.span)));
        for (call, span) in calls.filter(|(call, _)| call.name == "regsub") {
            if let Some([pattern, replacement, ..]) = call.arguments.as_deref() {
                compare(pattern, replacement, span, findings);
            }
        }
    }
}

fn in_actions(proxy: &Proxy<'_>, findings: &mut Findings) {
    for statement in proxy.statements.iter().filter(|statement| matches!(statement.kind, StatementKind::Rule(_))) {
        let Some((_, before)) = REPLACING.iter().find(|row| row.0 == statement.action()) else { continue };
        if let (Some(pattern), Some(replacement)) = (statement.words.get(1 + before), statement.words.get(2 + before)) {
            compare(&pattern.text, &replacement.text, replacement.span, findings);
        }
    }
}

fn compare(pattern: &str, replacement: &str, span: Span, findings: &mut Findings) {
    let Some(groups) = count_groups(pattern) else { return };
    let Some(group) = references(replacement).filter(|group| *group > groups).max() else { return };
    let has = match groups {
        0 => "no group".to_owned(),
        1 => "one group".to_owned(),
        many => format!("{many} groups"),
    };
    findings.add(span, format!("'\\{group}' is always empty: the regular expression has {has}"));
}

/// Returns the groups that a replacement refers to: a backslash with a digit.
fn references(replacement: &str) -> impl Iterator<Item = usize> {
    let mut escaped = false;
    replacement.chars().filter_map(move |letter| {
        if std::mem::take(&mut escaped) {
            return letter.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
        }
        escaped = letter == '\\';
        None
    })
}

/// Returns the number of groups of a regular expression; `None` if its syntax gives groups numbers in another way.
fn count_groups(pattern: &str) -> Option<usize> {
    let mut groups = 0;
    let mut letters = pattern.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                let (_, escaped) = letters.next()?;
                if escaped == 'Q' {
                    return None;
                }
            }
            '[' => skip_class(&mut letters),
            '(' => {
                let rest = &pattern[at + 1..];
                if rest.starts_with("?|") || rest.starts_with("*") {
                    return None;
                }
                let is_named = ["?<", "?P<", "?'"].iter().any(|start| rest.starts_with(start));
                let looks_behind = rest.starts_with("?<=") || rest.starts_with("?<!");
                groups += usize::from(!rest.starts_with('?') || (is_named && !looks_behind));
            }
            _ => {}
        }
    }
    Some(groups)
}

/// Skips the rest of a character class.
fn skip_class(letters: &mut std::str::CharIndices<'_>) {
    let mut is_first = true;
    while let Some((_, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '^' if is_first => continue,
            ']' if !is_first => return,
            '[' if letters.as_str().starts_with(':') => {
                // A class such as [:alpha:] ends with a bracket of its own.
                while letters.next().is_some_and(|(_, inside)| inside != ']') {}
            }
            _ => {}
        }
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_counted() {
        let rows: &[(&str, Option<usize>)] = &[
            ("", Some(0)),
            ("(a)(b)", Some(2)),
            ("(a(b))", Some(2)),
            (r"\(a\)(b)", Some(1)),
            ("(?:a)(b)", Some(1)),
            ("(?<n>a)(?P<m>b)(?'o'c)", Some(3)),
            ("(?=a)(?!b)(?<=c)(?<!d)", Some(0)),
            ("[(](a)", Some(1)),
            ("[](](a)", Some(1)),
            ("[^](](a)", Some(1)),
            ("[[:alpha:](](a)", Some(1)),
            (r"[\](](a)", Some(1)),
            ("(?|(a)|(b))", None),
            (r"\Q(\E(a)", None),
            ("(?i)(a)", Some(1)),
        ];
        for (pattern, expected) in rows {
            assert_eq!(count_groups(pattern), *expected, "{pattern}");
        }
    }

    #[test]
    fn references_are_found() {
        let rows: &[(&str, &[usize])] = &[("", &[]), (r"\1/\2", &[1, 2]), (r"\\1", &[]), (r"a\x\0", &[0]), (r"\", &[])];
        for (text, expected) in rows {
            assert_eq!(references(text).collect::<Vec<_>>(), *expected, "{text}");
        }
    }
}
