//! Tests of the layout of messages.

use super::*;
use crate::document::SourceFile;

/// Renders a diagnostic about the first occurrence of `word` in `line`.
fn render(line: &str, word: &str, change: impl FnOnce(Diagnostic) -> Diagnostic) -> String {
    render_bytes(line.as_bytes(), line.find(word).unwrap(), word.len(), change)
}

fn render_bytes(line: &[u8], start: usize, length: usize, change: impl FnOnce(Diagnostic) -> Diagnostic) -> String {
    let text = [b"global\n", line, b"\n"].concat();
    let sources = Sources(vec![SourceFile::new("a.cfg", text)]);
    let span = Span { file: 0, line: 2, start: start as u32, end: (start + length) as u32 };
    let mut out = String::new();
    change(Diagnostic::alert(span, "oops")).render(&sources, 7, &mut out);
    out
}

fn plain(line: &str, word: &str) -> String {
    let out = render(line, word, |diagnostic| diagnostic);
    out.strip_prefix("[ALERT]    (7) : config : parsing [a.cfg:2] : oops\n").unwrap().to_owned()
}

#[test]
fn forms() {
    let render = |form| render("    maxcon 5", "maxcon", |diagnostic| diagnostic.with_form(form).with_hint("help"));
    let rest = "  maxcon 5\n  ^^^^^^\n  hint: help\n";
    assert_eq!(render(Form::Parsing), format!("[ALERT]    (7) : config : parsing [a.cfg:2] : oops\n{rest}"));
    assert_eq!(render(Form::ParsingTight), format!("[ALERT]    (7) : config : parsing [a.cfg:2]: oops\n{rest}"));
    assert_eq!(render(Form::Placed), format!("[ALERT]    (7) : config : [a.cfg:2] : oops\n{rest}"));
    assert_eq!(render(Form::Unfit), format!("[ALERT]    (7) : parsing [a.cfg:2] : oops\n{rest}"));
    assert_eq!(render(Form::LatePlaced), format!("[ALERT]    (7) : [a.cfg:2] : oops\n{rest}"));
    assert_eq!(render(Form::Config), format!("[ALERT]    (7) : config : oops\n  [a.cfg:2]\n{rest}"));
    assert_eq!(render(Form::Bare), format!("[ALERT]    (7) : oops\n  [a.cfg:2]\n{rest}"));
}

#[test]
fn tags_are_aligned() {
    for (severity, tag) in [
        (Severity::Alert, "[ALERT]    (7) : config : hm\n"),
        (Severity::Warning, "[WARNING]  (7) : config : hm\n"),
        (Severity::Notice, "[NOTICE]   (7) : config : hm\n"),
        (Severity::Diag, "[DIAG]     (7) : config : hm\n"),
    ] {
        let mut out = String::new();
        Diagnostic::general(severity, "hm").render(&Sources::default(), 7, &mut out);
        assert_eq!(out, tag);
    }
}

#[test]
fn carets_stand_under_the_word() {
    assert_eq!(plain("\tbind\t:80 frob", "frob"), "  bind :80 frob\n           ^^^^\n");
    assert_eq!(plain("  héllo wörld x", "x"), "  héllo wörld x\n              ^\n");
    assert_eq!(plain("  日本 x", "x"), "  日本 x\n       ^\n");
    assert_eq!(plain("  e\u{301} x", "x"), "  e\u{301} x\n    ^\n");
    assert_eq!(plain("  日本 x", "日本"), "  日本 x\n  ^^^^\n");
}

#[test]
fn nothing_at_the_end_of_a_line_has_a_caret_too() {
    let out = render_bytes(b"  bind", 6, 0, |diagnostic| diagnostic);
    assert!(out.ends_with("\n  bind\n      ^\n"), "{out}");
    let out = render_bytes(b"  bind", 7, 3, |diagnostic| diagnostic);
    assert!(out.ends_with("\n  bind\n      ^\n"), "{out}");
}

#[test]
fn a_line_as_a_whole_is_not_shown() {
    assert_eq!(render_bytes(b"  bind", 0, 0, |d| d), "[ALERT]    (7) : config : parsing [a.cfg:2] : oops\n");
    assert_eq!(render_bytes(b"   \t ", 1, 2, |d| d), "[ALERT]    (7) : config : parsing [a.cfg:2] : oops\n");
}

#[test]
fn long_lines_are_cut_around_the_word() {
    let line = format!("  acl x path {}WRONG{}", "abc ".repeat(100), " def".repeat(100));
    let out = plain(&line, "WRONG");
    let rows: Vec<&str> = out.lines().collect();
    assert!(rows[0].starts_with("  ...") && rows[0].ends_with("...") && rows[0].chars().count() <= 80, "{out}");
    assert_eq!(rows[0].find("WRONG"), rows[1].find("^^^^^"), "{out}");
    assert_eq!(rows[1].trim_start(), "^^^^^");

    let line = format!("  acl {}", "abc ".repeat(100));
    let out = plain(&line, "acl");
    assert!(out.starts_with("  acl abc abc") && out.contains("...\n  ^^^\n"), "{out}");

    let line = format!("  {}", "x".repeat(1000));
    let out = plain(&line, &line[2..]);
    assert!(out.lines().all(|row| row.chars().count() <= 80), "{out}");

    let line = format!("  {} end", "x".repeat(1000));
    let out = plain(&line, "end");
    assert!(out.contains("xxx end\n") && out.lines().nth(1).unwrap().ends_with(" ^^^"), "{out}");
}

#[test]
fn nothing_in_a_line_acts_on_the_terminal() {
    let out = render_bytes(b"  a\x01\x1b[31m\x7f\xff \xe2\x80\xae x\r", 16, 1, |diagnostic| Diagnostic {
        message: "\x1b[2J\x07 \u{202e} \u{EFE9}\tz\nsecond\r".into(),
        ..diagnostic
    });
    let expected = "[ALERT]    (7) : config : parsing [a.cfg:2] : \\x1b[2J\\x07 \\u{202e} \\xe9\\tz\n   | second\\r\n  \
                    a??[31m?? ? x\n              ^\n";
    assert_eq!(out, expected);
}

#[test]
fn lines_of_a_message_are_indented_once() {
    let mut out = String::new();
    Diagnostic::general(Severity::Warning, "a\nb\n   | c\n").render(&Sources::default(), 7, &mut out);
    assert_eq!(out, "[WARNING]  (7) : config : a\n   | b\n   | c\n");
}

#[test]
fn long_messages_are_cut() {
    let out = render("x", "x", |diagnostic| Diagnostic { message: "é".repeat(1_000_000), ..diagnostic });
    assert!(out.len() < 5000);
    assert!(out.contains("é...\n"));
}
