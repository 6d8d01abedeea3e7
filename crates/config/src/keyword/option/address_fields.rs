//! Options that pass the addresses of a request on to servers: `forwardfor`, `originalto`, `forwarded`. Owns their
//! arguments; must never read another option's.

use super::switched;
use crate::diagnostic::{Diagnostic, Form};
use crate::document::{Line, Word};
use crate::keyword::negation::Negation;
use crate::keyword::proxy::ProxyContext;
use crate::spec::{ForwardForSpec, ForwardedExpressionSpec, ForwardedPart, ForwardedSpec, OriginalToSpec};
use std::net::{IpAddr, Ipv4Addr};

/// `option forwardfor`.
pub(super) fn forwardfor(context: &mut ProxyContext<'_>, line: &Line) {
    let mut forwardfor = ForwardForSpec { except: None, header: None, if_none: false };
    let mut at = 2;
    while let Some(word) = line.words.get(at) {
        match word.text.as_str() {
            "except" => match except(context, line, at, "forwardfor") {
                Some(network) => forwardfor.except = Some(network),
                None => return,
            },
            "header" => match header(context, line, at, "forwardfor") {
                Some(name) => forwardfor.header = Some(name),
                None => return,
            },
            "if-none" => {
                forwardfor.if_none = true;
                at += 1;
                continue;
            }
            _ => {
                let message = "'option forwardfor' only supports optional values: 'except', 'header' and 'if-none'.";
                context.report.alert(word.span, message);
                return;
            }
        }
        at += 2;
    }
    context.draft.spec.forwardfor = Some(forwardfor);
}

/// `option originalto`.
pub(super) fn originalto(context: &mut ProxyContext<'_>, line: &Line) {
    let mut originalto = OriginalToSpec { except: None, header: None };
    let mut at = 2;
    while let Some(word) = line.words.get(at) {
        match word.text.as_str() {
            "except" => match except(context, line, at, "originalto") {
                Some(network) => originalto.except = Some(network),
                None => return,
            },
            "header" => match header(context, line, at, "originalto") {
                Some(name) => originalto.header = Some(name),
                None => return,
            },
            _ => {
                let message = "'option originalto' only supports optional values: 'except' and 'header'.";
                context.report.alert(word.span, message);
                return;
            }
        }
        at += 2;
    }
    context.draft.spec.http.originalto = Some(originalto);
}

/// Parses the network after `except`, which is the word at `at`.
fn except(context: &mut ProxyContext<'_>, line: &Line, at: usize, option: &str) -> Option<(IpAddr, u8)> {
    let found = network(line.text(at + 1));
    if found.is_none() {
        let message = format!("'option {option} except' expects <address>[/mask] as argument.");
        context.report.alert(line.span(at + 1), message);
    }
    found
}

/// Returns the name after `header`, which is the word at `at`.
fn header(context: &mut ProxyContext<'_>, line: &Line, at: usize, option: &str) -> Option<String> {
    let found = line.words.get(at + 1).map(|word| word.text.clone());
    if found.is_none() {
        let message = format!("'option {option} header' expects <header_name> as argument.");
        context.report.alert(line.span(at + 1), message);
    }
    found
}

/// `option forwarded`: without arguments it is `proto for`.
pub(super) fn forwarded(context: &mut ProxyContext<'_>, line: &Line) {
    context.draft.spec.http.forwarded_expressions.clear();
    if context.negation == Negation::No {
        context.draft.spec.http.forwarded = None;
        return;
    }
    if line.words.len() == 2 && switched(context, line).is_ok() {
        let usual = ForwardedSpec { proto: true, r#for: true, ..ForwardedSpec::default() };
        context.draft.spec.http.forwarded = Some(usual);
        return;
    }
    let mut forwarded = ForwardedSpec::default();
    let mut at = 2;
    while let Some(word) = line.words.get(at) {
        let parameter = match word.text.as_str() {
            "proto" => &mut forwarded.proto,
            "host" | "host-expr" => &mut forwarded.host,
            "by" | "by-expr" => &mut forwarded.by,
            "by_port" | "by_port-expr" => &mut forwarded.by_port,
            "for" | "for-expr" => &mut forwarded.r#for,
            "for_port" | "for_port-expr" => &mut forwarded.for_port,
            _ => {
                context.report.alert(word.span, UNKNOWN_PARAMETER);
                return;
            }
        };
        *parameter = true;
        at += 1;
        if let Some(part) = word.text.strip_suffix("-expr") {
            if !expression(context, line, word, part, at) {
                return;
            }
            at += 1;
        }
    }
    for (port, node, name) in [(forwarded.by_port, forwarded.by, "by"), (forwarded.for_port, forwarded.r#for, "for")] {
        if port && !node {
            let message = format!(
                "'option forwarded' : '{name}_port-expr' will be ignored because both '{name}' and '{name}-expr' are \
                 unset"
            );
            context.report.warning(line.span(1), message);
        }
    }
    context.draft.spec.http.forwarded = Some(forwarded);
}

const UNKNOWN_PARAMETER: &str = "'option forwarded' only supports optional values: 'proto', 'host', 'host-expr', 'by', \
     'by-expr', 'by_port', 'by_port-expr', 'for', 'for-expr', 'for_port' and 'for_port-expr'.";

/// Reads the expression at `at`, which follows the word for that part. Returns false if there is none.
fn expression(context: &mut ProxyContext<'_>, line: &Line, word: &Word, part: &str, at: usize) -> bool {
    if line.words.get(at).is_none() {
        let message = format!("'{}' expects <expr> as argument.", word.text);
        context.report.push(Diagnostic::alert(line.span(at), message).with_form(Form::ParsingTight));
        return false;
    }
    let part = match part {
        "host" => ForwardedPart::Host,
        "by" => ForwardedPart::By,
        "by_port" => ForwardedPart::ByPort,
        "for" => ForwardedPart::For,
        _ => ForwardedPart::ForPort,
    };
    let mut line = context.around.rule_line(line, at);
    line.words.truncate(1);
    let expressions = &mut context.draft.spec.http.forwarded_expressions;
    // The last expression for a part applies.
    expressions.retain(|known| known.part != part);
    expressions.push(ForwardedExpressionSpec { part, line });
    true
}

/// Parses an address and returns it with its prefix length; a mask in dotted form is accepted if it is one run of ones.
fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let length = match mask {
        None => bits,
        Some(mask) => match mask.parse::<u8>() {
            Ok(length) => length,
            Err(_) => {
                let mask = u32::from(mask.parse::<Ipv4Addr>().ok()?);
                u8::try_from(mask.leading_ones()).ok().filter(|_| mask.count_ones() == mask.leading_ones())?
            }
        },
    };
    (length <= bits).then_some((address, length))
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn networks() {
        let rows = [
            ("127.0.0.1", Some(("127.0.0.1", 32))),
            ("127.0.0.0/8", Some(("127.0.0.0", 8))),
            ("10.0.0.0/255.255.0.0", Some(("10.0.0.0", 16))),
            ("10.0.0.0/255.0.255.0", None),
            ("::1", Some(("::1", 128))),
            ("2001:db8::/32", Some(("2001:db8::", 32))),
            ("::1/129", None),
            ("10.0.0.0/33", None),
            ("x", None),
            ("", None),
        ];
        for (text, expected) in rows {
            let expected = expected.map(|(address, length)| (address.parse().unwrap(), length));
            assert_eq!(network(text), expected, "{text}");
        }
    }
}
