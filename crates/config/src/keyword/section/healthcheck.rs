//! A health check that servers refer to (section 12.9): the type and the rules that a proxy would have. Must never
//! access a server.

use super::{SectionContext, SectionKeyword, supported};
use crate::document::Line;
use crate::keyword::{check_method, is_name_character};
use crate::span::Spanned;
use crate::spec::{CheckMethod, CheckSpec, HealthcheckSpec, ProtocolCheck, RuleLineSpec};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("http-check", "<step> [<argument>...]", "A step of an HTTP check.", http),
    supported("tcp-check", "<step> [<argument>...]", "A step of a TCP check.", tcp),
    supported("type", "<type> [<argument>...]", "Type of check.", kind),
];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let name = line.text(1);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in 'healthcheck' name '{name}'.");
        context.report.alert(line.span(1), message);
        return false;
    }
    if let Some(other) = context.content.healthchecks.iter().find(|other| other.name.value == name) {
        let place = context.around.place(other.name.span);
        let message = format!("healthcheck section '{name}' already exists (declared at {place}).");
        context.report.alert(line.span(1), message);
        return false;
    }
    let name = Spanned::new(name.to_owned(), line.span(1));
    context.content.healthchecks.push(HealthcheckSpec { name, check: CheckSpec::default(), typed: false });
    true
}

fn kind(context: &mut SectionContext<'_>, line: &Line) {
    let Some(section) = context.content.healthchecks.last_mut() else { return };
    if std::mem::replace(&mut section.typed, true) {
        context.report.alert(line.span(0), "healthcheck type already defined.");
        return;
    }
    if line.text(1).is_empty() {
        return context.report.alert(line.span(1), "'type' expects a healthcheck type.");
    }
    // `external-check` is available in backends only.
    let method = match line.text(1) {
        "external-check" => None,
        _ => check_method::read(line, context.around, &mut context.report),
    };
    match method {
        Some(method) => {
            let others = [("http-check", !section.check.http.is_empty()), ("tcp-check", !section.check.tcp.is_empty())];
            let used = rules(&method);
            if let Some((kind, _)) = others.iter().find(|(kind, written)| *written && used != Some(*kind)) {
                let message = format!("cannot set '{}' type with '{kind}' rules", line.text(1));
                return context.report.alert(line.span(1), message);
            }
            section.check.method = method;
        }
        // Errors of these types have been reported.
        None if KNOWN.contains(&line.text(1)) => {}
        None => {
            let message = format!("unknown healthcheck type '{}' (expects '{}').", line.text(1), KNOWN.join("', '"));
            context.report.alert(line.span(1), message);
        }
    }
}

/// Every type.
const KNOWN: [&str; 10] = [
    "tcp-check",
    "httpchk",
    "ssl-hello-chk",
    "smtpchk",
    "pgsql-check",
    "redis-check",
    "mysql-check",
    "ldap-check",
    "spop-check",
    "grpc-check",
];

/// Returns the rules that define the steps of such a check; `None` if the steps are built in.
fn rules(method: &CheckMethod) -> Option<&'static str> {
    match method {
        CheckMethod::Tcp => Some("tcp-check"),
        CheckMethod::Http(_) => Some("http-check"),
        _ => None,
    }
}

/// Whether a rule of this kind fits the type of the check; reports an error if not.
fn fits(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let Some(section) = context.content.healthchecks.last().filter(|section| section.typed) else { return true };
    let name = match &section.check.method {
        method if rules(method) == Some(line.text(0)) => return true,
        CheckMethod::Tcp => "TCP",
        CheckMethod::Http(_) => "HTTP",
        CheckMethod::Protocol(check) => match check {
            ProtocolCheck::Redis => "REDIS",
            ProtocolCheck::Smtp { .. } => "SMTP",
            ProtocolCheck::Postgres { .. } => "PGSQL",
            ProtocolCheck::Ldap => "LDAP",
            ProtocolCheck::Mysql { .. } => "MYSQL",
            ProtocolCheck::SslHello => "SSL3",
            ProtocolCheck::Spop => "SPOP",
            ProtocolCheck::Grpc { .. } => "GRPC",
        },
        // An unknown type, which has been reported.
        _ => return true,
    };
    let message = format!("unable to configure '{}' rule for '{name}' healthcheck", line.text(0));
    context.report.alert(line.span(0), message);
    false
}

/// Steps of a script; their arguments are parsed when the script is compiled.
const STEPS: [&str; 10] = [
    "comment",
    "connect",
    "expect",
    "send",
    "send-lf",
    "send-binary",
    "send-binary-lf",
    "set-var",
    "set-var-fmt",
    "unset-var",
];

fn rule(context: &mut SectionContext<'_>, line: &Line) -> Option<RuleLineSpec> {
    let step = line.text(1).split('(').next().unwrap_or_default();
    let binary = step.starts_with("send-") && line.text(0) == "http-check";
    if binary || !STEPS.contains(&step) {
        let message = format!("unknown keyword '{} {}' in healthcheck section.", line.text(0), line.text(1));
        context.report.alert(line.span(1), message);
        return None;
    }
    Some(context.around.rule_line(line, 1))
}

fn http(context: &mut SectionContext<'_>, line: &Line) {
    if !fits(context, line) {
        return;
    }
    let flag = line.text(1).to_owned();
    if matches!(flag.as_str(), "disable-on-404" | "send-state") {
        if !context.report.too_many(line, 2, "http-check")
            && let Some(section) = context.content.healthchecks.last_mut()
        {
            let check = &mut section.check;
            *(if flag == "send-state" { &mut check.send_state } else { &mut check.disable_on_404 }) = true;
        }
        return;
    }
    if let Some(rule) = rule(context, line)
        && let Some(section) = context.content.healthchecks.last_mut()
    {
        section.check.push_http(rule);
    }
}

fn tcp(context: &mut SectionContext<'_>, line: &Line) {
    if !fits(context, line) {
        return;
    }
    let rule = rule(context, line);
    if let Some(section) = context.content.healthchecks.last_mut() {
        section.check.tcp.extend(rule);
    }
}
