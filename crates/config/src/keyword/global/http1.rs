//! HTTP/1 and statuses (section 3.1): spellings of header names, statuses that count as errors, tolerance. Owns the
//! sets of status codes; must never depend on their use.

use super::{GlobalContext, GlobalKeyword, supported};
use crate::diagnostic::{Diagnostic, Form, Severity};
use crate::document::Line;
use crate::span::{Span, Spanned};
use crate::spec::StatusCodes;
use crate::text;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("http-err-codes", "[+-]<range>[,...] [...]", "Status codes counted as HTTP errors.", http_err_codes),
    supported("http-fail-codes", "[+-]<range>[,...] [...]", "Status codes counted as HTTP failures.", http_fail_codes),
    supported(
        "h1-case-adjust",
        "<from> <to>",
        "Case of a header name for non-compliant HTTP/1 applications.",
        h1_case_adjust,
    ),
    supported(
        "h1-case-adjust-file",
        "<file>",
        "File with the case of header names for non-compliant HTTP/1 applications.",
        h1_case_adjust_file,
    ),
    supported(
        "h1-accept-payload-with-any-method",
        "",
        "Accepts a body with GET, HEAD and DELETE from HTTP/1.0 clients.",
        accept_payload,
    ),
    supported(
        "h1-do-not-close-on-insecure-transfer-encoding",
        "",
        "Keeps the connection after a message with both Transfer-Encoding and Content-Length.",
        keep_insecure,
    ),
];

fn http_err_codes(context: &mut GlobalContext<'_>, line: &Line) {
    let codes = context.spec.http.err_codes.unwrap_or_else(StatusCodes::errors);
    context.spec.http.err_codes = Some(status_codes(context, line, codes));
}

fn http_fail_codes(context: &mut GlobalContext<'_>, line: &Line) {
    let codes = context.spec.http.fail_codes.unwrap_or_else(StatusCodes::failures);
    context.spec.http.fail_codes = Some(status_codes(context, line, codes));
}

/// Reason why a range is invalid.
enum BadRange {
    /// Malformed at this byte.
    Form(usize),
    Order,
}

/// Applies the line's arguments to a set.
fn status_codes(context: &mut GlobalContext<'_>, line: &Line, mut codes: StatusCodes) -> StatusCodes {
    let name = line.keyword();
    if line.words.len() < 2 {
        context.report.alert(line.span(1), format!("Missing status codes range for '{name}'."));
    }
    for word in line.arguments() {
        let message = match apply(&word.text, &mut codes) {
            Ok(()) => continue,
            Err(BadRange::Form(at)) => format!(
                "Invalid status codes range '{}' in '{name}' at position {at}. Ranges must be in the form \
                 [+-]{{low[-{{high}}]}}[,...].",
                word.text
            ),
            Err(BadRange::Order) => format!(
                "Invalid status codes range '{}' in '{name}'.\n Codes must be between 100 and 599 and ranges in \
                 ascending order.",
                word.text
            ),
        };
        context.report.alert(word.span, message);
        break;
    }
    codes
}

/// Applies one argument: comma-separated ranges, optionally preceded by one `+` or `-` for all of them.
fn apply(text: &str, codes: &mut StatusCodes) -> Result<(), BadRange> {
    let bytes = text.as_bytes();
    let (mut at, inside) = match bytes.first() {
        Some(b'+') => (1, true),
        Some(b'-') => (1, false),
        _ => (0, true),
    };
    let mut changed = if at == 0 { StatusCodes::default() } else { *codes };
    loop {
        let low = code(bytes, &mut at)?;
        let high = if bytes.get(at) == Some(&b'-') {
            at += 1;
            code(bytes, &mut at)?
        } else {
            low
        };
        if low < StatusCodes::FIRST || high > StatusCodes::LAST || low > high {
            return Err(BadRange::Order);
        }
        changed.set(low, high, inside);
        match bytes.get(at) {
            None => break,
            Some(b',') => at += 1,
            Some(_) => return Err(BadRange::Form(at)),
        }
    }
    *codes = changed;
    Ok(())
}

/// Parses a number at `at`, and advances `at` past it.
fn code(bytes: &[u8], at: &mut usize) -> Result<u16, BadRange> {
    let digits = bytes[*at..].iter().take_while(|byte| byte.is_ascii_digit());
    let (number, count) = digits.fold((0_u16, 0), |(number, count), digit| {
        (number.saturating_mul(10).saturating_add(u16::from(digit - b'0')), count + 1)
    });
    if count == 0 {
        return Err(BadRange::Form(*at));
    }
    *at += count;
    Ok(number)
}

fn h1_case_adjust(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 3, "h1-case-adjust") {
        return;
    }
    let (from, to) = (line.text(1), line.text(2));
    if from.is_empty() || to.is_empty() {
        context.report.alert(line.span(line.words.len()), "'h1-case-adjust' expects <from> and <to> as argument.");
        return;
    }
    if let Err(message) = add_spelling(&mut context.spec.http.case_adjust, from, to) {
        context.report.alert(line.span(1), message);
    }
}

/// Only the last file applies, so it is read when the whole section is known.
fn h1_case_adjust_file(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "h1-case-adjust-file") {
        return;
    }
    match line.words.get(1) {
        Some(word) => context.spec.http.case_adjust_file = Some(Spanned::new(word.text.clone(), word.span)),
        None => context.report.alert(line.span(1), "'h1-case-adjust-file' expects <file> as argument."),
    }
}

/// Adds one pair. Names are compared case-insensitively; names to adjust are lower case, so a pair whose first name is
/// not lower case never matches, as in HAProxy.
fn add_spelling(pairs: &mut Vec<(String, String)>, from: &str, to: &str) -> Result<(), String> {
    if !from.eq_ignore_ascii_case(to) {
        return Err("<from> and <to> must not differ except the case".into());
    }
    if pairs.iter().any(|pair| pair.0 == from) {
        return Err(format!("duplicate entry '{from}'"));
    }
    pairs.push((from.to_owned(), to.to_owned()));
    Ok(())
}

/// Maximum size of the file of spellings, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// Reads the file of `h1-case-adjust-file`, if configured.
pub(crate) fn read_case_adjust_file(context: &mut GlobalContext<'_>) {
    let Some(Spanned { value: path, span }) = context.spec.http.case_adjust_file.clone() else { return };
    match context.around.read_file(&path, span, LARGEST_FILE) {
        Ok(content) => take_spellings(context, &path, span, &text::from_bytes(&content)),
        Err(_) => late(context, span, format!("h1-headers-case-adjust-file '{path}': failed to open file.")),
    }
}

fn take_spellings(context: &mut GlobalContext<'_>, path: &str, span: Span, content: &str) {
    for (index, line) in content.lines().enumerate() {
        let mut words = line.split([' ', '\t', '\r']).filter(|word| !word.is_empty());
        let Some(from) = words.next().filter(|_| !line.starts_with('#')) else { continue };
        let to: Vec<&str> = words.collect();
        let result = match to.as_slice() {
            [] => Err("expect <to>".to_owned()),
            [to] => add_spelling(&mut context.spec.http.case_adjust, from, to),
            _ => Err("<from> and <to> must not differ except the case".to_owned()),
        };
        if let Err(message) = result {
            let message = format!("h1-headers-case-adjust-file '{path}' : {message} at line {}.", index + 1);
            late(context, span, message);
            return;
        }
    }
}

fn late(context: &mut GlobalContext<'_>, span: Span, message: String) {
    context.report.push(Diagnostic::new(Severity::Alert, span, message).with_form(Form::Bare));
}

fn accept_payload(context: &mut GlobalContext<'_>, line: &Line) {
    if !context.report.too_many(line, 1, line.keyword()) {
        context.spec.http.accept_payload_with_any_method = true;
    }
}

fn keep_insecure(context: &mut GlobalContext<'_>, line: &Line) {
    if !context.report.too_many(line, 1, line.keyword()) {
        context.spec.http.keep_insecure_transfer_encoding = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_replace_add_and_take_away() {
        let rows: &[(&[&str], &str)] = &[
            (&["400"], "400-400"),
            (&["400,402-444,446-480,490"], "400-400,402-444,446-480,490-490"),
            (&["400-499", "-450", "+500"], "400-449,451-500"),
            (&["-450-459"], "400-449,460-499"),
            (&["+501,505"], "400-499,501-501,505-505"),
        ];
        for (arguments, expected) in rows {
            let mut codes = StatusCodes::errors();
            for argument in *arguments {
                assert!(apply(argument, &mut codes).is_ok(), "{argument}");
            }
            assert_eq!(format!("{codes:?}"), *expected, "{arguments:?}");
        }
    }

    #[test]
    fn bad_ranges_say_where_and_change_nothing() {
        let rows = [
            ("99", None),
            ("600", None),
            ("400-300", None),
            ("99999999", None),
            ("400-", Some(4)),
            ("x", Some(0)),
            ("400,", Some(4)),
            (",400", Some(0)),
            ("+", Some(1)),
            ("++400", Some(1)),
            ("400x", Some(3)),
            ("400--450", Some(4)),
            ("400-450-460", Some(7)),
            ("401,x", Some(4)),
        ];
        for (text, position) in rows {
            let mut codes = StatusCodes::errors();
            let found = match apply(text, &mut codes) {
                Err(BadRange::Form(at)) => Some(at),
                Err(BadRange::Order) => None,
                Ok(()) => panic!("{text}"),
            };
            assert_eq!(found, position, "{text}");
            assert_eq!(codes, StatusCodes::errors(), "{text}");
        }
    }
}
