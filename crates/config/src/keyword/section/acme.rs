//! ACME servers that issue certificates (section 12.8).

use super::{SectionContext, SectionKeyword, supported};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::span::Spanned;
use crate::spec::{AcmeChallenge, AcmeMac, AcmeReady, AcmeSpec};
use crate::units;

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("account-key", "<file>", "Key of the account.", account_key),
    supported("acme-vars", "<text>", "Variables passed to programs that set DNS records.", words),
    supported("bits", "<number>", "Size of RSA keys.", bits),
    supported("challenge", "{ http-01 | dns-01 | dns-persist-01 }", "Type of challenge.", challenge),
    supported(
        "challenge-ready",
        "<condition>[,<condition>...]",
        "Conditions under which a challenge is ready.",
        challenge_ready,
    ),
    supported("contact", "<mail>", "Address of the account.", words),
    supported("curves", "<curve>", "Curve of elliptic keys.", curves),
    supported("directory", "<url>", "The server's directory.", words),
    supported("dns-delay", "<time>", "Interval of the checks for a DNS record.", times),
    supported("dns-timeout", "<time>", "Maximum time to wait for a DNS record.", times),
    supported("eab-key-id", "<file>", "File with the key id of external account binding.", words),
    supported("eab-mac-alg", "{ HS256 | HS384 | HS512 }", "Algorithm of external account binding.", mac_algorithm),
    supported("eab-mac-key", "<file>", "File with the key of external account binding.", words),
    supported("keytype", "{ RSA | ECDSA }", "Type of keys.", keytype),
    supported("map", "<map>", "Map in which challenges are stored.", words),
    supported("profile", "<name>", "Requested certificate profile.", words),
    supported("provider-name", "<text>", "DNS provider passed to programs that set DNS records.", words),
    supported("reuse-key", "{ on | off }", "Keeps the key when a certificate is renewed.", reuse_key),
    supported("shared-store", "<store>", "Store over which nodes share orders and certificates (Weir only).", words),
];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let tight = |span, message: &str| Diagnostic::alert(span, message).with_form(Form::ParsingTight);
    if !context.around.experimental.permits() {
        let message = "section 'acme' is experimental, must be allowed via a global 'expose-experimental-directives'";
        context.report.push(tight(line.span(0), message));
        return false;
    }
    let name = line.text(1);
    if name.is_empty() {
        context.report.push(tight(line.span(1), "section 'acme' requires an ID argument."));
        return false;
    }
    if context.report.too_many(line, 2, "acme") {
        return false;
    }
    if let Some(other) = context.content.acme.iter().find(|other| other.name == name) {
        let message = format!("acme section '{name}' already exists ({}).", context.around.place(other.span));
        context.report.push(tight(line.span(1), &message));
        return false;
    }
    context.content.acme.push(AcmeSpec::new(line.whole(), name));
    true
}

/// Returns the open section, and the argument after a line's keyword; reports `missing` if there is none.
fn argument<'a>(
    context: &'a mut SectionContext<'_>,
    line: &Line,
    missing: &str,
) -> Option<(&'a mut AcmeSpec, Spanned<String>)> {
    if context.report.too_many(line, 2, line.keyword()) {
        return None;
    }
    if line.text(1).is_empty() {
        refuse(context, line, &format!("keyword '{}' in 'acme' section requires {missing}", line.keyword()));
        return None;
    }
    let value = Spanned::new(line.text(1).to_owned(), line.span(1));
    context.content.acme.last_mut().map(|section| (section, value))
}

fn refuse(context: &mut SectionContext<'_>, line: &Line, message: &str) {
    context.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ParsingTight));
}

fn account_key(context: &mut SectionContext<'_>, line: &Line) {
    if let Some((section, value)) = argument(context, line, "a filename argument") {
        section.account_key = Some(value);
    }
}

fn words(context: &mut SectionContext<'_>, line: &Line) {
    let Some((section, value)) = argument(context, line, "an argument") else { return };
    match line.keyword() {
        "acme-vars" => section.variables = Some(value.value),
        "contact" => section.contact = Some(value.value),
        "directory" => section.directory = Some(value),
        "eab-key-id" => section.eab_key_id = Some(value),
        "eab-mac-key" => section.eab_mac_key = Some(value),
        "map" => section.map = Some(value.value),
        "profile" => section.profile = Some(value.value),
        "shared-store" => section.store = Some(value),
        _ => section.provider = Some(value.value),
    }
}

fn bits(context: &mut SectionContext<'_>, line: &Line) {
    let Some((section, value)) = argument(context, line, "an argument") else { return };
    match value.value.parse() {
        Ok(number) => section.bits = number,
        Err(_) => {
            let message = format!("cannot parse 'bits' value '{}', an integer is expected.", value.value);
            context.report.alert(value.span, message);
        }
    }
}

fn challenge(context: &mut SectionContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, line.keyword()) {
        return;
    }
    let kind = match line.text(1).to_ascii_lowercase().as_str() {
        "http-01" => AcmeChallenge::Http01,
        "dns-01" => AcmeChallenge::Dns01,
        "dns-persist-01" => AcmeChallenge::DnsPersist01,
        _ => {
            let known = "keyword 'challenge' in 'acme' must be one of the following: http-01, dns-01, dns-persist-01";
            return refuse(context, line, known);
        }
    };
    if let Some(section) = context.content.acme.last_mut() {
        section.challenge = kind;
    }
}

fn challenge_ready(context: &mut SectionContext<'_>, line: &Line) {
    let Some((section, value)) = argument(context, line, "an argument") else { return };
    let is_http = section.challenge == AcmeChallenge::Http01;
    let mut ready = AcmeReady::default();
    let mut is_none = false;
    for word in value.value.split(',') {
        match word {
            "cli" => ready.cli = true,
            "dns" => ready.dns = true,
            "delay" => ready.delay = true,
            "none" => is_none = true,
            _ => {
                let known = "keyword 'challenge-ready' in 'acme' section requires parameter separated by commas: 'cli', \
                             'dns' or 'none'";
                return refuse(context, line, known);
            }
        }
    }
    if is_none && ready != AcmeReady::default() {
        return refuse(context, line, "keyword 'challenge-ready' in 'acme' can't combine 'none' with other keywords.");
    }
    if is_http {
        let message = "keyword 'challenge-ready' in 'acme' section, \"http-01\" is not compatible with the \
                       \"challenge-ready\" option";
        return refuse(context, line, message);
    }
    section.ready = Some(ready);
}

fn curves(context: &mut SectionContext<'_>, line: &Line) {
    let Some((section, value)) = argument(context, line, "an argument") else { return };
    let known = ["P-256", "P-384", "P-521", "prime256v1", "secp256r1", "secp384r1", "secp521r1"];
    if known.contains(&value.value.as_str()) {
        section.curve = value.value;
    } else {
        refuse(context, line, &format!("unsupported curves '{}'", value.value));
    }
}

fn times(context: &mut SectionContext<'_>, line: &Line) {
    let Some((section, value)) = argument(context, line, "an argument") else { return };
    let place = if line.keyword() == "dns-delay" { &mut section.dns_delay } else { &mut section.dns_timeout };
    match units::milliseconds(&value.value) {
        Ok(time) => *place = time.value,
        Err(units::TimeError::Unexpected(found)) => {
            refuse(context, line, &format!("unexpected character '{found}' in argument to '{}'", line.keyword()));
        }
        Err(error) => refuse(context, line, &error.message(&value.value, line.keyword())),
    }
}

fn mac_algorithm(context: &mut SectionContext<'_>, line: &Line) {
    let Some((section, value)) = argument(context, line, "an argument") else { return };
    section.eab_mac_algorithm = match value.value.as_str() {
        "HS256" => AcmeMac::Hs256,
        "HS384" => AcmeMac::Hs384,
        "HS512" => AcmeMac::Hs512,
        _ => {
            let known = "keyword 'eab-mac-alg' in 'acme' must be one of the following: HS256, HS384, HS512";
            return refuse(context, line, known);
        }
    };
}

fn keytype(context: &mut SectionContext<'_>, line: &Line) {
    let Some((section, value)) = argument(context, line, "an argument") else { return };
    match value.value.as_str() {
        kind @ ("RSA" | "ECDSA") => section.is_rsa = kind == "RSA",
        _ => refuse(context, line, "keyword 'keytype' in 'acme' section requires either 'RSA' or 'ECDSA' argument"),
    }
}

fn reuse_key(context: &mut SectionContext<'_>, line: &Line) {
    let Some((section, value)) = argument(context, line, "an argument") else { return };
    match value.value.as_str() {
        word @ ("on" | "off") => section.reuses_key = word == "on",
        _ => {
            let message = "keyword 'reuse-key' in 'acme' section requires either the 'on' or 'off' parameter";
            refuse(context, line, message);
        }
    }
}
