//! Mails about servers ("email-alert"). Must never look at a `mailers` section.

use super::{ProxyContext, ProxyKeyword, supported};
use crate::document::Line;
use crate::keyword::place::places::ANY;
use crate::span::Spanned;
use crate::spec::{EmailAlertSpec, LogLevel};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(ANY, "email-alert from", "<address>", "Sender of mails about servers.", from),
    supported(ANY, "email-alert level", "<level>", "Least severe message worth a mail.", level),
    supported(ANY, "email-alert mailers", "<section>", "Mail servers to use.", mailers),
    supported(ANY, "email-alert myhostname", "<name>", "Host name used towards the mail server.", hostname),
    supported(ANY, "email-alert to", "<address>", "Receiver of mails about servers.", to),
];

/// Stores one of the texts. Characters that could end a line of the SMTP dialogue are rejected.
fn text(
    context: &mut ProxyContext<'_>,
    line: &Line,
    field: impl FnOnce(&mut EmailAlertSpec) -> &mut Option<Spanned<String>>,
) {
    let Some(word) = line.words.get(2) else {
        // As in HAProxy: an empty text, which counts as written.
        *field(&mut context.draft.spec.email_alert) = Some(Spanned::new(String::new(), line.span(1)));
        return;
    };
    if word.text.chars().any(|found| found.is_control() || matches!(found, '<' | '>')) {
        let message = format!("email-alert {} : it holds a character that no mail server may be sent.", line.text(1));
        return context.report.alert(word.span, message);
    }
    *field(&mut context.draft.spec.email_alert) = Some(Spanned::new(word.text.clone(), word.span));
}

fn from(context: &mut ProxyContext<'_>, line: &Line) {
    text(context, line, |alert| &mut alert.from);
}

fn to(context: &mut ProxyContext<'_>, line: &Line) {
    text(context, line, |alert| &mut alert.to);
}

fn mailers(context: &mut ProxyContext<'_>, line: &Line) {
    text(context, line, |alert| &mut alert.mailers);
}

fn hostname(context: &mut ProxyContext<'_>, line: &Line) {
    text(context, line, |alert| &mut alert.hostname);
}

fn level(context: &mut ProxyContext<'_>, line: &Line) {
    match LogLevel::named(line.text(2)) {
        Some(level) => context.draft.spec.email_alert.level = Some(Spanned::new(level, line.span(2))),
        None => {
            let message = format!("unknown log level '{}' after '{}'", line.text(1), line.text(2));
            context.report.alert(line.span(2), message);
        }
    }
}
