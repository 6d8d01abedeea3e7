//! Actions that change a message's head: `set-header` and others, the parts of the start line, the log level. Must
//! never perform one.

use super::{Action, Row, row};
use crate::rule::edit::{Edit, NameMatch, Replacement};
use crate::rule::normalize::Normalizer;
use crate::rule::parse::{Parsing, RuleError, Words};
use config::spec::LogLevel;
use config::text::to_bytes;
use expression::Expression;
use expression::pattern::{Method, Regex};

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[
    row("add-header", |words, parsing| {
        let (name, format) = name_and_format(words, parsing)?;
        Ok(Action::Edit(Edit::AddHeader(name, format)))
    }),
    row("set-header", |words, parsing| {
        let (name, format) = name_and_format(words, parsing)?;
        Ok(Action::Edit(Edit::SetHeader(name, format)))
    }),
    row("del-header", delete_header),
    row("add-headers-bin", |words, parsing| fields(words, parsing, Edit::AddFields)),
    row("set-headers-bin", |words, parsing| fields(words, parsing, Edit::SetFields)),
    row("del-headers-bin", delete_fields),
    row("replace-header", |words, parsing| {
        let (name, replacement) = name_and_replacement(words, parsing)?;
        Ok(Action::Edit(Edit::ReplaceHeader(name, replacement)))
    }),
    row("replace-value", |words, parsing| {
        let (name, replacement) = name_and_replacement(words, parsing)?;
        Ok(Action::Edit(Edit::ReplaceValue(name, replacement)))
    }),
    row("set-method", |words, parsing| line_part(words, parsing, Edit::SetMethod)),
    row("set-path", |words, parsing| line_part(words, parsing, Edit::SetPath)),
    row("set-pathq", |words, parsing| line_part(words, parsing, Edit::SetPathAndQuery)),
    row("set-query", |words, parsing| line_part(words, parsing, Edit::SetQuery)),
    row("set-uri", |words, parsing| line_part(words, parsing, Edit::SetUri)),
    row("replace-path", |words, parsing| target_part(words, parsing, Edit::ReplacePath)),
    row("replace-pathq", |words, parsing| target_part(words, parsing, Edit::ReplacePathAndQuery)),
    row("replace-uri", |words, parsing| target_part(words, parsing, Edit::ReplaceUri)),
    row("replace-body", replace_body),
    row("normalize-uri", normalize_uri),
    row("strict-mode", strict_mode),
    // HAProxy accepts any word as a number.
    row("set-nice", |words, _| words.expect("expects exactly 1 argument (integer value)").map(|_| Action::Nothing)),
    row("disable-l7-retry", |_, _| Ok(Action::DisableRetry)),
    row("set-status", set_status),
    row("set-log-level", set_log_level),
];

/// Returns the name of a header field in lower case.
fn name(text: &str) -> Box<[u8]> {
    to_bytes(text).to_ascii_lowercase().into()
}

fn name_and_format(
    words: &mut Words<'_>,
    parsing: &Parsing<'_>,
) -> Result<(Box<[u8]>, expression::log_format::LogFormat), RuleError> {
    const USAGE: &str = "expects exactly 2 arguments";
    let field = words.expect(USAGE)?;
    let format = words.expect(USAGE)?;
    parsing.doubt_name(&field.text);
    Ok((name(&field.text), parsing.format(format)?))
}

fn name_and_replacement(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<(Box<[u8]>, Replacement), RuleError> {
    const USAGE: &str = "expects exactly 3 arguments";
    let field = words.expect(USAGE)?;
    let pattern = words.expect(USAGE)?;
    let format = words.expect(USAGE)?;
    let regex = Regex::new(&pattern.text, false).map_err(|why| RuleError::at(Some(pattern), why))?;
    parsing.names.lists().borrow_mut().note(parsing.names.line(), &regex);
    Ok((name(&field.text), Replacement { regex, format: parsing.format(format)? }))
}

fn line_part(
    words: &mut Words<'_>,
    parsing: &Parsing<'_>,
    edit: fn(expression::log_format::LogFormat) -> Edit,
) -> Result<Action, RuleError> {
    let format = words.expect("expects exactly 1 argument <format>")?;
    Ok(Action::Edit(edit(parsing.format(format)?)))
}

fn target_part(
    words: &mut Words<'_>,
    parsing: &Parsing<'_>,
    edit: fn(Replacement) -> Edit,
) -> Result<Action, RuleError> {
    Ok(Action::Edit(edit(replacement(words, parsing)?)))
}

fn replace_body(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    Ok(Action::ReplaceBody(Box::new(replacement(words, parsing)?)))
}

fn replacement(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Replacement, RuleError> {
    const USAGE: &str = "expects exactly 2 arguments <match-regex> and <replace-format>";
    let pattern = words.expect(USAGE)?;
    let format = words.expect(USAGE)?;
    if let Some(extra) = words.peek() {
        return Err(RuleError::at(Some(extra), USAGE));
    }
    let broken = |why| RuleError::at(Some(pattern), format!("failed to parse the regex : {why}"));
    let regex = Regex::new(&pattern.text, false).map_err(broken)?;
    parsing.names.lists().borrow_mut().note(parsing.names.line(), &regex);
    Ok(Replacement { regex, format: parsing.format(format)? })
}

fn normalize_uri(words: &mut Words<'_>, _: &Parsing<'_>) -> Result<Action, RuleError> {
    let word = words.expect("missing argument <normalizer>")?;
    let name = word.text.as_str();
    let mut option = |known: &str| match words.peek() {
        Some(found) if found.text == known => Ok(words.take().is_some()),
        Some(found) => {
            let message = format!("unknown argument '{}' for '{name}' normalizer", found.text);
            Err(RuleError::at(Some(found), message))
        }
        None => Ok(false),
    };
    let normalizer = match name {
        "fragment-encode" => Normalizer::FragmentEncode,
        "fragment-strip" => Normalizer::FragmentStrip,
        "path-merge-slashes" => Normalizer::MergeSlashes,
        "path-strip-dot" => Normalizer::StripDot,
        "path-strip-dotdot" => Normalizer::StripDotDot(option("full")?),
        "percent-decode-unreserved" => Normalizer::DecodeUnreserved(option("strict")?),
        "percent-to-uppercase" => Normalizer::PercentToUppercase(option("strict")?),
        "query-sort-by-name" => Normalizer::SortQuery,
        other => return Err(RuleError::at(Some(word), format!("unknown normalizer '{other}'"))),
    };
    Ok(Action::Edit(Edit::NormalizeUri(normalizer)))
}

fn strict_mode(words: &mut Words<'_>, _: &Parsing<'_>) -> Result<Action, RuleError> {
    let word = words.expect("expects exactly 1 arguments")?;
    match word.text.as_str() {
        "on" => Ok(Action::SetStrict(true)),
        "off" => Ok(Action::SetStrict(false)),
        other => {
            let message = format!("Unexpected value '{other}'. Only 'on' and 'off' are supported");
            Err(RuleError::at(Some(word), message))
        }
    }
}

fn delete_header(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let field = words.expect("expects at least 1 argument")?;
    let mut method = Method::Str;
    if words.peek_text() == "-m" {
        words.take();
        let word = words.expect("expects a matching method ('str', 'beg', 'end', 'sub' or 'reg') behind '-m'")?;
        method = Method::named(&word.text)
            .filter(|method| matches!(method, Method::Str | Method::Beg | Method::End | Method::Sub | Method::Reg))
            .ok_or_else(|| RuleError::at(Some(word), format!("unsupported matching method '{}'", word.text)))?;
    }
    let regex = if method == Method::Reg {
        let regex = Regex::new(&field.text, true).map_err(|why| RuleError::at(Some(field), why))?;
        parsing.names.lists().borrow_mut().note(parsing.names.line(), &regex);
        Some(regex)
    } else {
        None
    };
    Ok(Action::Edit(Edit::DeleteHeader(NameMatch { method, name: name(&field.text), regex })))
}

fn fields(
    words: &mut Words<'_>,
    parsing: &Parsing<'_>,
    edit: fn(Expression, Box<[u8]>) -> Edit,
) -> Result<Action, RuleError> {
    const USAGE: &str = "expects exactly one argument or three arguments <headers> prefix <pfx>";
    if words.peek().is_none() {
        return Err(RuleError::new(USAGE));
    }
    let expression = parsing.expression(words)?;
    let mut prefix = Box::default();
    if words.peek_text() == "prefix" {
        words.take();
        prefix = to_bytes(&words.expect(USAGE)?.text).into_owned().into();
    }
    Ok(Action::Edit(edit(expression, prefix)))
}

fn delete_fields(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    if words.peek().is_none() {
        return Err(RuleError::new("expects at least 1 argument"));
    }
    let expression = parsing.expression(words)?;
    let mut method = Method::Str;
    if words.peek_text() == "-m" {
        words.take();
        let word = words.expect("-m flag expects exactly 1 argument")?;
        method = match Method::named(&word.text) {
            Some(method @ (Method::Str | Method::Beg | Method::End | Method::Sub)) => method,
            Some(Method::Reg) => {
                let message = "-m reg is unsupported with del-headers-bin due to performance reasons";
                return Err(RuleError::at(Some(word), message));
            }
            _ => {
                let message = format!("-m with unsupported matching method '{}'", word.text);
                return Err(RuleError::at(Some(word), message));
            }
        };
    }
    Ok(Action::Edit(Edit::DeleteFields(expression, method)))
}

fn set_status(words: &mut Words<'_>, _: &Parsing<'_>) -> Result<Action, RuleError> {
    const USAGE: &str = "expects an integer status code between 100 and 999";
    let word = words.expect("expects 1 argument: <status>, or 3 arguments: <status> reason <fmt>")?;
    let status = word.text.parse().ok().filter(|status| (100..=999).contains(status));
    let status = status.ok_or_else(|| RuleError::at(Some(word), USAGE))?;
    let reason = if words.peek_text() == "reason" {
        words.take();
        Some(to_bytes(&words.expect("expects a text behind 'reason'")?.text).into_owned().into())
    } else {
        None
    };
    Ok(Action::Edit(Edit::SetStatus(status, reason)))
}

fn set_log_level(words: &mut Words<'_>, _: &Parsing<'_>) -> Result<Action, RuleError> {
    const USAGE: &str = "expects exactly 1 argument (log level name or 'silent')";
    let word = words.expect(USAGE)?;
    if word.text == "silent" {
        return Ok(Action::SetLogLevel(None));
    }
    let level = LogLevel::named(&word.text).ok_or_else(|| RuleError::at(Some(word), USAGE))?;
    Ok(Action::SetLogLevel(Some(level)))
}
