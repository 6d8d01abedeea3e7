//! Name servers (section 5.3.2). Must never read the system's list of them.

use super::{SectionContext, SectionKeyword, removed, supported};
use crate::address::{self, AddressError, AddressRules};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::{Line, Word};
use crate::keyword::argument::lenient;
use crate::keyword::{is_name_character, server};
use crate::span::Spanned;
use crate::spec::{AddressSpec, HoldSpec, HostSpec, NameserverSpec, ResolversSpec, SocketKind};
use crate::units::{self, TimeError};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("accepted_payload_size", "<number>", "Maximum size of responses announced to name servers.", payload),
    supported("hold", "<status> <time>", "How long the last response is used after a status.", hold),
    supported("nameserver", "<name> <address>:<port> [<option>...]", "A name server.", nameserver),
    supported("parse-resolv-conf", "", "Takes name servers from /etc/resolv.conf.", of_system),
    removed(
        "resolution_pool_size",
        "<number>",
        "Former limit of concurrent resolutions.",
        "'resolution_pool_size' directive is not supported anymore (it never appeared in a stable release).",
    ),
    supported("resolve_retries", "<number>", "Number of queries before a resolution fails.", retries),
    supported("timeout resolve", "<time>", "Time between two resolutions of a name.", timeout),
    supported("timeout retry", "<time>", "Interval between two queries.", timeout),
];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let name = line.text(1);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in 'resolvers' name '{name}'.");
        context.report.alert(line.span(1), message);
        return false;
    }
    if let Some(other) = context.content.resolvers.iter().find(|other| other.name.value == name) {
        let place = context.around.place(other.span);
        let message = format!("resolvers '{name}' has same name as another resolvers (declared at {place}).");
        context.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ConfigLateParsing));
        return false;
    }
    context.content.resolvers.push(ResolversSpec {
        span: line.whole(),
        name: Spanned::new(name.to_owned(), line.span(1)),
        nameservers: Vec::new(),
        payload: 512,
        retries: 3,
        timeout_resolve: 1_000,
        timeout_retry: 1_000,
        hold: HoldSpec::default(),
    });
    true
}

/// Returns the open section.
fn section<'a>(context: &'a mut SectionContext<'_>) -> Option<&'a mut ResolversSpec> {
    context.content.resolvers.last_mut()
}

fn nameserver(context: &mut SectionContext<'_>, line: &Line) {
    let (Some(name), Some(address)) = (line.words.get(1), line.words.get(2)) else {
        let message = "'nameserver' expects <name> and <addr>[:<port>] as arguments.";
        return context.report.alert(line.span(line.words.len()), message);
    };
    if let Some(bad) = name.text.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in server name '{}'.", name.text);
        return context.report.alert(name.span, message);
    }
    let named =
        |one: &&NameserverSpec| matches!(one, NameserverSpec::Named { name: other, .. } if other.value == name.text);
    if let Some(NameserverSpec::Named { name: other, .. }) =
        context.content.resolvers.last().and_then(|section| section.nameservers.iter().find(named))
    {
        let place = context.around.place(other.span);
        let message = format!("nameserver '{}' has same name as another nameserver (declared at {place}).", name.text);
        return context.report.push(Diagnostic::alert(name.span, message).with_form(Form::ConfigLateParsing));
    }
    let Some(parsed) = parse_address(context, name, address) else { return };
    let AddressSpec::Inet { kind, .. } = &parsed else {
        let message = format!("'nameserver {}' : '{}' is not supported yet by Weir.", name.text, address.text);
        return context.report.alert(address.span, message);
    };
    let mut tls = None;
    if *kind == SocketKind::Stream {
        // Its options are those of servers, and their errors are reported in the same form.
        let mut written = server::read_nameserver(line, context.around.environment, &mut context.report);
        written.common.folder = context.around.paths.folder(line.whole(), context.around.sources);
        tls = written.ssl.then(|| Box::new(written));
    } else if let Some(extra) = line.words.get(3) {
        let message = format!("'{}' means nothing to a name server that is asked over UDP.", extra.text);
        context.report.diag(extra.span, message);
    }
    let found = NameserverSpec::Named {
        name: Spanned::new(name.text.clone(), name.span),
        address: Spanned::new(parsed, address.span),
        tls,
    };
    if let Some(section) = section(context) {
        section.nameservers.push(found);
    }
}

/// Parses the address of a name server, which must not be a name.
fn parse_address(context: &mut SectionContext<'_>, name: &Word, word: &Word) -> Option<AddressSpec> {
    let head = format!("'nameserver {}' : ", name.text);
    let error = match address::parse(&word.text, &AddressRules::NAMESERVER, context.around.environment) {
        Ok(AddressSpec::Inet { host: HostSpec::Name(host), .. }) => {
            AddressError::InvalidHost { host, text: word.text.clone() }
        }
        Ok(address) => return Some(address),
        Err(AddressError::NotSupported { .. }) => {
            context.report.alert(word.span, format!("{head}'{}' is not supported yet by Weir.", word.text));
            return None;
        }
        Err(error) => error,
    };
    let mut diagnostic = Diagnostic::alert(word.span, format!("{head}{error}"));
    diagnostic.hint = match &error {
        AddressError::MissingPort { .. } => Some("name servers are asked at port 53".to_owned()),
        AddressError::InvalidHost { .. } => Some("write the address of the name server, not its name".to_owned()),
        other => other.hint().map(str::to_owned),
    };
    context.report.push(diagnostic);
    None
}

fn of_system(context: &mut SectionContext<'_>, line: &Line) {
    if let Some(section) = section(context) {
        section.nameservers.push(NameserverSpec::OfSystem(line.whole()));
    }
}

/// Parses a time; `argument` names it in error messages.
fn time(context: &mut SectionContext<'_>, word: &Word, keyword: &str, argument: &str) -> Option<u64> {
    let error = match units::milliseconds(&word.text) {
        Ok(time) => return Some(time.value),
        Err(error) => error,
    };
    let message = match error {
        TimeError::Unexpected(found) => format!("unexpected character '{found}' in argument to <{keyword}>."),
        TimeError::Empty | TimeError::Overflow => format!(
            "timer overflow in argument <{argument}> to <{keyword}>, maximum value is 2147483647 ms (~24.8 days)."
        ),
    };
    context.report.push(Diagnostic::alert(word.span, message).with_form(Form::ParsingTight).with_hint(error.hint()));
    None
}

fn hold(context: &mut SectionContext<'_>, line: &Line) {
    let (Some(event), Some(period)) = (line.words.get(1), line.words.get(2)) else {
        let message = "'hold' expects an <event> and a <time> as arguments.";
        let hint = "<event> can be either 'valid', 'nx', 'refused', 'timeout', 'obsolete' or 'other'".to_owned();
        let diagnostic = Diagnostic::alert(line.span(line.words.len()), message).with_hint(hint);
        return context.report.push(diagnostic);
    };
    let Some(value) = time(context, period, "hold", &event.text) else { return };
    let Some(section) = context.content.resolvers.last_mut() else { return };
    *match event.text.as_str() {
        "valid" => &mut section.hold.valid,
        "obsolete" => &mut section.hold.obsolete,
        "nx" => &mut section.hold.nx,
        "refused" => &mut section.hold.refused,
        "timeout" => &mut section.hold.timeout,
        "other" => &mut section.hold.other,
        unknown => {
            let message = format!(
                "'hold' unknown <event>: '{unknown}', expects either 'nx', 'timeout', 'valid', 'obsolete' or 'other'."
            );
            let known = crate::suggest::nearest(unknown, ["valid", "obsolete", "nx", "refused", "timeout", "other"]);
            let mut diagnostic = Diagnostic::alert(event.span, message);
            diagnostic.hint = known.map(|known| format!("write '{known}'"));
            return context.report.push(diagnostic);
        }
    } = value;
}

fn timeout(context: &mut SectionContext<'_>, line: &Line) {
    let event = line.text(1);
    let name = format!("timeout {event}");
    let Some(word) = line.words.get(2) else {
        return context.report.alert(line.span(2), format!("'{name}' expects <time> as argument."));
    };
    let Some(value) = time(context, word, &name, &word.text) else { return };
    let Some(section) = context.content.resolvers.last_mut() else { return };
    *(if event == "retry" { &mut section.timeout_retry } else { &mut section.timeout_resolve }) = value;
}

fn payload(context: &mut SectionContext<'_>, line: &Line) {
    /// Size of a DNS header, in bytes.
    const LEAST: u16 = 12;
    let Some(word) = line.words.get(1) else {
        return context.report.alert(line.span(1), "'accepted_payload_size' expects <nb> as argument.");
    };
    match word.text.parse::<u16>().ok().filter(|bytes| *bytes >= LEAST) {
        Some(bytes) => {
            if let Some(section) = section(context) {
                section.payload = bytes;
            }
        }
        None => {
            let message =
                format!("'accepted_payload_size' must be between {LEAST} and 65535 inclusive (was {}).", word.text);
            context.report.alert(word.span, message);
        }
    }
}

fn retries(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        return context.report.alert(line.span(1), "'resolve_retries' expects <nb> as argument.");
    };
    let number = lenient(word, "resolve_retries", &mut context.report);
    if let Some(section) = section(context) {
        // At least one query is sent.
        section.retries = u32::try_from(number.max(1)).unwrap_or(u32::MAX);
    }
}
