//! Captures: parts of a request and its response that are kept for the log.

use super::{ProxyContext, ProxyKeyword, supported};
use crate::document::Line;
use crate::keyword::argument::leading_number;
use crate::keyword::place::places::{FRONT_DECLARE, FRONT_SECTION};
use crate::spec::CaptureSlotSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(FRONT_SECTION, "capture cookie", "<name> len <length>", "Logs a cookie.", cookie),
    supported(FRONT_SECTION, "capture request header", "<name> len <length>", "Logs a header of the request.", header),
    supported(
        FRONT_SECTION,
        "capture response header",
        "<name> len <length>",
        "Logs a header of the response.",
        header,
    ),
    supported(
        FRONT_DECLARE,
        "declare capture",
        "{ request | response } len <length>",
        "Reserves a place for something to be logged.",
        declare,
    ),
];

fn length(line: &Line, at: usize) -> usize {
    usize::try_from(leading_number(line.text(at)).0).unwrap_or(0)
}

fn cookie(context: &mut ProxyContext<'_>, line: &Line) {
    if line.text(3) != "len" || line.words.len() < 5 {
        let message = "'capture' expects 'cookie' <cookie_name> 'len' <len>.";
        context.report.alert(line.span(line.words.len().min(3)), message);
        return;
    }
    context.draft.spec.captures.cookie = Some((line.text(2).to_owned(), length(line, 4)));
}

fn header(context: &mut ProxyContext<'_>, line: &Line) {
    let way = line.text(1);
    if line.text(4) != "len" || line.words.len() < 6 {
        let message = format!("'capture {way}' expects 'header' <header_name> 'len' <len>.");
        context.report.alert(line.span(line.words.len().min(4)), message);
        return;
    }
    if let Some(extra) = line.words.get(6) {
        let message = format!("'capture {way}' cannot handle unexpected argument '{}'.", extra.text);
        context.report.alert(extra.span, message);
        return;
    }
    let slot = CaptureSlotSpec { name: Some(line.text(3).to_owned()), length: length(line, 5), span: line.span(0) };
    let captures = &mut context.draft.spec.captures;
    if way == "request" { captures.request.push(slot) } else { captures.response.push(slot) }
}

fn declare(context: &mut ProxyContext<'_>, line: &Line) {
    let message = match (line.text(2), line.text(3), line.words.get(4)) {
        ("request" | "response", "len", Some(word)) if leading_number(&word.text).1 => match length(line, 4) {
            0 => "length must be > 0".to_owned(),
            length => {
                let slot = CaptureSlotSpec { name: None, length, span: line.span(0) };
                let captures = &mut context.draft.spec.captures;
                if line.text(2) == "request" {
                    captures.request.push(slot)
                } else {
                    captures.response.push(slot)
                }
                return;
            }
        },
        ("request" | "response", "len", Some(word)) => {
            format!("'declare capture': cannot parse the length '{}'.", word.text)
        }
        ("request" | "response", "len", None) => {
            "'declare capture': 'len' requires a numeric value that represents the capture length".to_owned()
        }
        ("request" | "response", ..) => "'declare capture' requires a capture length ('len')".to_owned(),
        _ => "'declare capture' requires a direction ('request' or 'response')".to_owned(),
    };
    context.report.alert(line.span(line.words.len().min(2)), message);
}
