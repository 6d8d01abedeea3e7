//! The forms in which findings are printed: text for people, JSON for programs. Must never select findings.

use crate::Finding;
use config::document::Sources;
use config::span::Span;
use serde::Serialize;

/// Returns the findings as text: file, line, rule and reason, the source line with the words marked, and advice.
pub fn text(findings: &[Finding], sources: &Sources) -> String {
    let mut out = String::new();
    for finding in findings {
        let Finding { rule, span, message, hint } = finding;
        out.push_str(&format!("{}:{}: {rule}: {message}.\n", file_name(sources, *span), span.line));
        if let Some(line) = sources.line(*span) {
            config::diagnostic::write_excerpt(line, *span, &mut out);
        }
        if let Some(hint) = hint {
            out.push_str(&format!("  hint: {hint}\n"));
        }
    }
    out
}

/// The document that programs read.
#[derive(Serialize)]
struct Report<'a> {
    findings: Vec<Row<'a>>,
}

/// A finding in that document.
#[derive(Serialize)]
struct Row<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    end_column: u32,
    rule: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
}

/// Returns the findings as one JSON object on one line. Columns are bytes of the line, from 1; the last one is that after
/// the words.
pub fn json(findings: &[Finding], sources: &Sources) -> String {
    let rows = findings.iter().map(|finding| Row {
        file: file_name(sources, finding.span),
        line: finding.span.line,
        column: finding.span.start + 1,
        end_column: finding.span.end + 1,
        rule: finding.rule,
        message: &finding.message,
        hint: finding.hint,
    });
    let report = Report { findings: rows.collect() };
    // Texts and numbers are always representable.
    serde_json::to_string(&report).map(|text| text + "\n").unwrap_or_default()
}

fn file_name(sources: &Sources, span: Span) -> &str {
    sources.file(span).map_or("", |file| &file.name)
}
