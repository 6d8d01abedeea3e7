//! The internal HTTP client (section 3.4).

use super::{GlobalContext, GlobalKeyword, supported};
use crate::document::Line;
use crate::keyword::argument::leading_number;
use crate::span::Spanned;
use crate::units::{self, TimeError};

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported(
        "httpclient.resolvers.disabled",
        "{ on | off }",
        "Disables name resolution for the internal client.",
        disabled,
    ),
    supported("httpclient.resolvers.id", "<name>", "Resolvers section for the internal client.", section),
    supported(
        "httpclient.resolvers.prefer",
        "{ ipv4 | ipv6 }",
        "Preferred address family of the internal client.",
        prefer,
    ),
    supported("httpclient.retries", "<number>", "Retries of the internal client.", retries),
    supported("httpclient.ssl.ca-file", "<file>", "CA file of the internal client.", ca_file),
    supported(
        "httpclient.ssl.verify",
        "{ none | required }",
        "Whether the internal client verifies certificates.",
        verify,
    ),
    supported("httpclient.timeout.connect", "<time>", "Connection timeout of the internal client.", connect_timeout),
];

fn disabled(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, line.keyword()) {
        return;
    }
    match line.text(1) {
        word @ ("on" | "off") => context.spec.http_client.resolves_nothing = word == "on",
        word => {
            let message = format!("'{}' expects either 'on' or 'off' but got '{word}'.", line.keyword());
            context.report.alert(line.span(1), message);
        }
    }
}

fn section(context: &mut GlobalContext<'_>, line: &Line) {
    if !context.report.too_many(line, 2, line.keyword()) {
        context.spec.http_client.resolvers = Some(Spanned::new(line.text(1).to_owned(), line.span(1)));
    }
}

fn prefer(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, line.keyword()) {
        return;
    }
    match line.text(1) {
        word @ ("ipv4" | "ipv6") => context.spec.http_client.prefers_ipv4 = word == "ipv4",
        _ => {
            let message = format!("'{}' expects 'ipv4' or 'ipv6' as argument.", line.keyword());
            context.report.alert(line.span(1), message);
        }
    }
}

fn retries(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, line.keyword()) {
        return;
    }
    if line.text(1).is_empty() {
        return context.report.alert(line.span(1), format!("'{}' expects an integer argument.", line.keyword()));
    }
    let number = leading_number(line.text(1)).0;
    context.spec.http_client.retries = Some(u32::try_from(number).unwrap_or(0));
}

fn ca_file(context: &mut GlobalContext<'_>, line: &Line) {
    if !context.report.too_many(line, 2, line.keyword()) {
        context.spec.http_client.ca_file = Some(Spanned::new(line.text(1).to_owned(), line.span(1)));
    }
}

fn verify(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, line.keyword()) {
        return;
    }
    match line.text(1) {
        word @ ("none" | "required") => context.spec.http_client.trusts_servers = word == "none",
        _ => {
            let message = format!("'{}' expects 'none' or 'required' as argument.", line.keyword());
            context.report.alert(line.span(1), message);
        }
    }
}

fn connect_timeout(context: &mut GlobalContext<'_>, line: &Line) {
    let keyword = line.keyword();
    if context.report.too_many(line, 2, keyword) {
        return;
    }
    let text = line.text(1);
    if text.is_empty() {
        return context.report.alert(line.span(1), format!("'{keyword}' expects an integer argument."));
    }
    match units::milliseconds(text) {
        Ok(time) => context.spec.http_client.connect_timeout = Some(time.value),
        Err(TimeError::Unexpected(found)) => {
            context.report.alert(line.span(1), format!("unexpected character '{found}' in '{keyword}'"));
        }
        Err(TimeError::Empty | TimeError::Overflow) => {
            let message = format!(
                "timer overflow in argument '{text}' to '{keyword}' (maximum value is 2147483647 ms or ~24.8 days)"
            );
            context.report.alert(line.span(1), message);
        }
    }
}
