//! Settings of OpenSSL itself (section 3.1). Weir uses the algorithms of rustls and AWS-LC: settings that match their
//! properties are accepted, any other is an error.

use super::GlobalContext;
use crate::document::Line;

/// OpenSSL's security level of Weir's weakest algorithm: no key and no digest is weaker.
const LEVEL: u32 = 2;

pub(super) fn security_level(context: &mut GlobalContext<'_>, line: &Line) {
    match (line.text(1), line.text(1).parse::<u32>()) {
        ("", _) => context.report.alert(line.span(1), "'ssl-security-level' : missing value"),
        (_, Ok(0..=LEVEL)) => {}
        (level, Ok(3..=5)) => {
            let message = format!(
                "'ssl-security-level' : level {level} is not supported by Weir, whose algorithms are those of level {LEVEL}: \
                 choose them with 'ciphers', 'curves' and 'sigalgs'."
            );
            context.report.alert(line.span(1), message);
        }
        _ => context.report.alert(line.span(1), "'ssl-security-level' : expects a value between 0 and 5"),
    }
}

pub(super) fn provider(context: &mut GlobalContext<'_>, line: &Line) {
    match line.text(1) {
        "default" | "base" => {}
        "" => {
            let message = "global statement 'ssl-provider' expects a valid engine provider name as an argument.";
            context.report.alert(line.span(1), message);
        }
        name => context.report.alert(line.span(1), format!("ssl-provider {name}: unknown provider")),
    }
}

pub(super) fn properties(context: &mut GlobalContext<'_>, line: &Line) {
    let query = line.text(1);
    if query.is_empty() {
        let message = "global statement 'ssl-propquery' expects a property string as an argument.";
        context.report.alert(line.span(1), message);
        return;
    }
    // A clause with a question mark is optional.
    let is_met = |clause: &str| clause.starts_with('?') || matches!(clause, "provider=default" | "fips=no" | "-fips");
    if let Some(clause) = query.split(',').map(str::trim).find(|clause| !is_met(clause)) {
        let message = format!("'ssl-propquery' : no algorithm of Weir has the property '{clause}'.");
        context.report.alert(line.span(1), message);
    }
}
