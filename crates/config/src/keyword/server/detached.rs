//! `server` lines of sections that are not proxies (configuration manual, section 12.5). They accept every option of a
//! server, most of which have no effect there. Must never number or look up a server.

use super::{ServerContext, ServerDraft, parse_address, read_options, report_problems};
use crate::document::Line;
use crate::environment::Environment;
use crate::keyword::is_name_character;
use crate::keyword::report::Report;
use crate::span::Spanned;
use crate::spec::{AddressSpec, LogProtocol, ServerTlsSpec};

/// Settings of such a line.
pub(crate) struct Detached {
    pub(crate) name: Spanned<String>,
    pub(crate) address: Spanned<AddressSpec>,
    pub(crate) log_protocol: LogProtocol,
    pub(crate) tls: ServerTlsSpec,
}

/// Reads a line in the section of that name. Returns `None` after an error, which has been reported.
pub(crate) fn read(section: &str, line: &Line, environment: &Environment, report: &mut Report<'_>) -> Option<Detached> {
    let (Some(name), Some(address)) = (line.words.get(1), line.words.get(2)) else {
        report.placed(line.span(line.words.len()), "'server' expects <name> and <addr>[:<port>] as arguments.");
        return None;
    };
    if let Some(bad) = name.text.chars().find(|&found| !is_name_character(found)) {
        report.placed(name.span, format!("character '{bad}' is not permitted in server name '{}'.", name.text));
        return None;
    }
    let head = format!("'server {section}/{}' : ", name.text);
    let parsed = parse_address(address, &head, environment, report);
    if parsed.as_ref().is_some_and(AddressSpec::is_quic) {
        report.alert(address.span, format!("{head}'{}' is not supported yet by Weir.", address.text));
        return None;
    }
    if matches!(parsed, Some(AddressSpec::Reverse { .. })) {
        report.alert(address.span, format!("{head}'{}' is not supported here by Weir.", address.text));
        return None;
    }
    let mut draft = ServerDraft::default();
    let mut server = ServerContext::new(&mut draft, Some(&name.text), environment);
    let unread = read_options(&mut server, line, 3);
    let problems = server.problems;
    report_problems(report, &head, "", problems, &unread);
    Some(Detached {
        name: Spanned::new(name.text.clone(), name.span),
        address: Spanned::new(parsed?, address.span),
        log_protocol: draft.log.protocol,
        tls: draft.tls,
    })
}

/// Reads the options of a name server that is queried over TCP: those of servers. Returns the TLS settings.
pub(crate) fn read_nameserver(line: &Line, environment: &Environment, report: &mut Report<'_>) -> ServerTlsSpec {
    let Some(name) = line.words.get(1) else { return ServerTlsSpec::default() };
    let mut draft = ServerDraft::default();
    let mut server = ServerContext::new(&mut draft, Some(&name.text), environment);
    let unread = read_options(&mut server, line, 3);
    let problems = server.problems;
    report_problems(report, &format!("'server (null)/{}' : ", name.text), "", problems, &unread);
    draft.tls
}
