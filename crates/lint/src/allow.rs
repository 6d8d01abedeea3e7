//! Comments that allow findings: `# lint: allow rule, rule`, at the end of the line that they are about. Owns their syntax.
//! Must never hide a finding of another line.

use crate::Configuration;
use crate::finding::Finding;
use crate::rule::Rule;
use config::document::{Line, SourceFile};
use config::span::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The rule about these comments.
pub(crate) const TABLE: &[Rule] = &[Rule {
    name: NAME,
    doc: "a comment that allows findings names a rule that does not exist, or follows no configuration line",
    // Found together with the comments.
    check: |_, _| {},
}];

const NAME: &str = "unknown-rule";

/// The start of such a comment, after its hash sign.
const START: &str = "lint:";

/// Removes the findings that comments allow, and adds those about the comments themselves. `is_known`: whether a rule of
/// that name exists.
pub(crate) fn apply(found: Vec<Finding>, configuration: Configuration<'_>, is_known: fn(&str) -> bool) -> Vec<Finding> {
    let ends = line_ends(configuration);
    let mut allowed: BTreeSet<(u32, u32, String)> = BTreeSet::new();
    let mut own = Vec::new();
    for (file, source) in configuration.sources.0.iter().enumerate() {
        let Ok(file) = u32::try_from(file) else { break };
        for comment in comments(file, source, &ends) {
            let wrong = |message: String| Finding { rule: NAME, span: comment.span, message, hint: None };
            for name in &comment.names {
                if !comment.follows_words {
                    let message = "the comment is not at the end of a configuration line, so that it allows nothing";
                    own.push(wrong(message.to_owned()));
                    break;
                }
                if is_known(name) {
                    allowed.insert((file, comment.span.line, name.clone()));
                } else {
                    own.push(wrong(format!("there is no rule '{name}' to allow")));
                }
            }
        }
    }
    let is_allowed =
        |finding: &Finding| allowed.contains(&(finding.span.file, finding.span.line, finding.rule.to_owned()));
    let mut kept: Vec<Finding> = found.into_iter().filter(|finding| !is_allowed(finding)).collect();
    kept.extend(own);
    kept.sort_by_key(|finding| finding.span);
    kept
}

/// A comment that allows findings.
struct Comment {
    span: Span,
    names: Vec<String>,
    /// It is at the end of a configuration line.
    follows_words: bool,
}

/// Returns the end of the last word of each line that has words.
fn line_ends(configuration: Configuration<'_>) -> BTreeMap<(u32, u32), u32> {
    let sections = &configuration.document.sections;
    let lines = sections.iter().flat_map(|section| std::iter::once(&section.line).chain(&section.body));
    lines.map(|line: &Line| ((line.file, line.number), line.whole().end)).collect()
}

fn comments<'a>(
    file: u32,
    source: &'a SourceFile,
    ends: &'a BTreeMap<(u32, u32), u32>,
) -> impl Iterator<Item = Comment> + 'a {
    let numbers = 1..=u32::try_from(source.line_count()).unwrap_or(u32::MAX);
    numbers.filter_map(move |number| {
        let line = source.line(number)?;
        let end = ends.get(&(file, number)).copied();
        let words = usize::try_from(end.unwrap_or(0)).unwrap_or(usize::MAX);
        let rest = line.get(words..)?;
        let hash = words + rest.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
        let text = String::from_utf8_lossy(line.get(hash..)?.strip_prefix(b"#")?);
        let list = text.trim().strip_prefix(START)?.trim().strip_prefix("allow")?;
        let (start, end_of_line) = (u32::try_from(hash).ok()?, u32::try_from(line.len()).ok()?);
        let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
        let span = Span { file, line: number, start, end: end_of_line };
        Some(Comment { span, names, follows_words: end.is_some() })
    })
}
