//! Responses defined by rules: the common arguments of `return`, `deny` and `tarpit`. Must never send one.

use crate::program::Page;
use crate::rule::described::{Answer, Body};
use crate::rule::parse::{Parsing, RuleError, Words};
use crate::rule::response::Reply;
use config::document::Word;
use config::keyword::error_page_fault;
use config::text::{from_bytes, to_bytes};
use expression::log_format::{LogFormat, Purpose};
use std::sync::Arc;

/// The parsed arguments.
#[derive(Default)]
struct ReplyArguments {
    status: Option<u16>,
    content_type: Option<String>,
    /// The argument that defines the content, and the content.
    body: Option<(&'static str, Body)>,
    /// `errorfiles`: resolved when the status is known.
    section: Option<String>,
    fields: Vec<(Box<[u8]>, LogFormat)>,
}

/// The arguments that define the content.
const BODIES: &[&str] = &["default-errorfiles", "errorfile", "errorfiles", "file", "lf-file", "string", "lf-string"];

/// Parses the arguments of `return`.
pub(super) fn read(words: &mut Words<'_>, parsing: &Parsing<'_>, default: u16) -> Result<Answer, RuleError> {
    let mut written = ReplyArguments::default();
    arguments(words, parsing, &mut written)?;
    finish(written, parsing, default)
}

/// Parses the arguments of `deny` and `tarpit`: without any, or with only `deny_status`, the proxy's error page is
/// used.
pub(super) fn read_refusal(words: &mut Words<'_>, parsing: &Parsing<'_>, default: u16) -> Result<Answer, RuleError> {
    let mut written = ReplyArguments::default();
    if words.peek_text() == "deny_status" {
        status(words, &mut written)?;
    } else if !words.peek_text().is_empty() {
        return read(words, parsing, default);
    }
    if words.peek().is_some() {
        arguments(words, parsing, &mut written)?;
    } else {
        written.body = Some(("default-errorfiles", Body::Default));
    }
    finish(written, parsing, default)
}

/// Parses an `http-error` line. `None` if it removes a previous definition, or uses a page of a section, which is
/// resolved elsewhere.
///
/// # Errors
/// The line is invalid.
pub(crate) fn error_answer(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Option<Page>, RuleError> {
    let mut written = ReplyArguments::default();
    arguments(words, parsing, &mut written)?;
    if let Some(extra) = words.peek() {
        return Err(RuleError::at(Some(extra), format!("unknown keyword '{}'.", extra.text)));
    }
    written.section = None;
    let answer = finish(written, parsing, 200)?;
    Ok(match answer.body {
        Body::Default => None,
        Body::Page(text) => Some(Page::Text(text)),
        _ => Some(Page::Described(Arc::new(answer))),
    })
}

fn status(words: &mut Words<'_>, written: &mut ReplyArguments) -> Result<(), RuleError> {
    words.take();
    let value = words.expect("'status' expects <status_code> as argument")?;
    let digits = value.text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u32 = value.text[..digits].parse().unwrap_or(0);
    let found = u16::try_from(number).ok().filter(|status| (200..=599).contains(status));
    let wrong = || RuleError::at(Some(value), format!("Unexpected status code '{number}'"));
    written.status = Some(found.ok_or_else(wrong)?);
    Ok(())
}

fn arguments(words: &mut Words<'_>, parsing: &Parsing<'_>, written: &mut ReplyArguments) -> Result<(), RuleError> {
    while let Some(word) = words.peek() {
        match word.text.as_str() {
            "status" | "deny_status" => status(words, written)?,
            "content-type" => {
                words.take();
                written.content_type = Some(words.expect("'content-type' expects <ctype> as argument")?.text.clone());
            }
            "hdr" => {
                words.take();
                let name = words.expect("'hdr' expects <name> and <value> as arguments")?;
                let format = words.expect("'hdr' expects <name> and <value> as arguments")?;
                let (text, format) = (field_name(name), parsing.format(format)?);
                // These fields depend on the body.
                if matches!(&*text, b"content-length" | b"content-type" | b"transfer-encoding") {
                    parsing.warn(format!("header '{}' always ignored by the http reply.", name.text));
                } else {
                    written.fields.push((text, format));
                }
            }
            text => {
                let Some(name) = BODIES.iter().find(|name| **name == text) else { break };
                words.take();
                if let Some((before, _)) = written.body {
                    let message = format!("unexpected '{name}' argument, '{before}' already defined");
                    return Err(RuleError::at(Some(word), message));
                }
                body(name, words, parsing, written)?;
            }
        }
    }
    Ok(())
}

/// Returns the name of a field in lower case, with line ends replaced by spaces.
fn field_name(word: &Word) -> Box<[u8]> {
    let ends = |byte: &u8| matches!(byte, b'\r' | b'\n' | 0);
    let lower = to_bytes(&word.text).to_ascii_lowercase();
    lower.into_iter().map(|byte| if ends(&byte) { b' ' } else { byte }).collect()
}

fn body(
    name: &'static str,
    words: &mut Words<'_>,
    parsing: &Parsing<'_>,
    written: &mut ReplyArguments,
) -> Result<(), RuleError> {
    if name == "default-errorfiles" {
        written.body = Some((name, Body::Default));
        return Ok(());
    }
    let what = match name {
        "errorfiles" => "<name>",
        "file" | "lf-file" => "<file>",
        "string" => "<str>",
        _ => "<fmt>",
    };
    let value = words.expect(&format!("'{name}' expects {what} as argument"))?;
    let path = &value.text;
    let content = || {
        let opening = |_| RuleError::at(Some(value), format!("error opening file '{path}'"));
        parsing.names.read_file(path).map_err(opening)
    };
    let body = match name {
        "errorfile" => {
            let content = content()?;
            if let Some(fault) = error_page_fault(&content) {
                return Err(RuleError::at(Some(value), format!("'{path}': {fault}")));
            }
            Body::Page(Arc::new(Reply::new(content)))
        }
        "errorfiles" => {
            written.section = Some(path.clone());
            Body::Default
        }
        "file" => Body::Bytes(content()?.into()),
        "lf-file" => Body::Format(parsing.format_of(&from_bytes(&content()?), Purpose::Text, value)?),
        "string" => Body::Bytes(to_bytes(path).into_owned().into()),
        _ => Body::Format(parsing.text_format(value)?),
    };
    written.body = Some((name, body));
    Ok(())
}

fn finish(written: ReplyArguments, parsing: &Parsing<'_>, default: u16) -> Result<Answer, RuleError> {
    let ReplyArguments { status, content_type, body, section, mut fields } = written;
    let status = status.unwrap_or(default);
    let (name, mut body) = body.unwrap_or(("", Body::Empty));
    let is_page = matches!(name, "default-errorfiles" | "errorfile" | "errorfiles");
    // A separate file may be used for any status.
    if matches!(name, "default-errorfiles" | "errorfiles") && wire::http::error_pages::page(status).is_none() {
        let message = format!("status code '{status}' not handled by default with '{name}' argument.");
        return Err(RuleError::new(message));
    }
    if let Some(section) = &section {
        let unknown = || RuleError::new(format!("unknown http-errors section '{section}'"));
        let pages = parsing.names.error_pages(section).ok_or_else(unknown)?;
        match pages.into_iter().find(|page| page.0 == status) {
            Some((_, content)) => body = Body::Page(Arc::new(Reply::new(content))),
            None => {
                body = Body::Empty;
                parsing.warn(format!(
                    "status '{status}' referenced by an http reply not declared in http-errors section '{section}'."
                ));
            }
        }
    }
    let is_empty = match &body {
        Body::Bytes(bytes) => bytes.is_empty(),
        Body::Format(_) => false,
        Body::Default | Body::Empty | Body::Page(_) | Body::Written(..) => true,
    };
    if is_page {
        if let Some(kind) = &content_type {
            parsing.warn(format!("content-type '{kind}' ignored by the http reply when used with an errorfile."));
        }
        if !fields.is_empty() {
            parsing.warn("hdr parameters ignored by the http reply when used with an errorfile.");
            fields.clear();
        }
    } else if is_empty {
        if let Some(kind) = &content_type {
            let why = if name.is_empty() {
                "because neither errorfile nor payload defined"
            } else {
                "when used with an empty payload"
            };
            parsing.warn(format!("content-type '{kind}' ignored by the http reply {why}."));
        }
    } else if matches!(status, 204 | 304) {
        return Err(RuleError::new(format!("No body expected for {status} responses")));
    } else if content_type.is_none() {
        return Err(RuleError::new(match body {
            Body::Format(_) => "a content type must be defined with a log-format payload",
            _ => "a content type must be defined when non-empty payload is configured",
        }));
    }
    let content_type = content_type.map(|kind| to_bytes(&kind).into_owned().into());
    Ok(Answer { status, content_type, body, fields }.written())
}
