//! Updates of OCSP responses (section 3.1, "ocsp-update.*").

use super::super::GlobalContext;
use crate::address::{self, AddressRules};
use crate::diagnostic::Severity;
use crate::document::Line;
use crate::keyword::argument::leading_number;
use crate::span::Spanned;

/// `ocsp-update.mode`, `ocsp-update.disable`.
pub(super) fn switch(context: &mut GlobalContext<'_>, line: &Line) {
    let is_on = match line.text(1) {
        word @ ("on" | "off") => word == "on",
        _ => {
            let message = format!("'{}' : expecting <on|off>", line.keyword());
            return context.report.warning(line.span(1), message);
        }
    };
    let place = &mut context.spec.tls.ocsp;
    match line.keyword() {
        "ocsp-update.disable" => place.is_disabled = is_on,
        _ => place.is_usual = is_on,
    }
}

/// `ocsp-update.mindelay`, `ocsp-update.maxdelay` and their older names.
pub(super) fn delay(context: &mut GlobalContext<'_>, line: &Line) {
    let keyword = line.keyword();
    if line.text(1).is_empty() {
        return context.report.alert(line.span(1), format!("'{keyword}' expects an integer argument."));
    }
    let Ok(seconds) = u32::try_from(leading_number(line.text(1)).0) else {
        return context.report.alert(line.span(1), format!("'{keyword}' expects a positive numeric value."));
    };
    let ocsp = &mut context.spec.tls.ocsp;
    if keyword.ends_with("maxdelay") {
        if seconds < ocsp.least {
            let message = format!("'{keyword}' can not be lower than tune.ssl.ocsp-update.mindelay.");
            return context.report.alert(line.span(1), message);
        }
        ocsp.most = seconds;
    } else {
        if seconds > ocsp.most {
            let message = format!("'{keyword}' can not be higher than tune.ssl.ocsp-update.maxdelay.");
            return context.report.alert(line.span(1), message);
        }
        ocsp.least = seconds;
    }
}

/// `ocsp-update.httpproxy`.
pub(super) fn proxy(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, line.keyword()) {
        return;
    }
    let text = line.text(1);
    let rules = AddressRules { port_required: false, port_offset: false, ..AddressRules::SERVER };
    match address::parse(text, &rules, context.around.environment) {
        Ok(address) => context.spec.tls.ocsp.proxy = Some(Spanned::new(address, line.span(1))),
        Err(error) => {
            let message = format!("ocsp-update: Failed to parse destination address in {error}");
            context.report.late(Severity::Alert, line.span(1), message);
        }
    }
}
