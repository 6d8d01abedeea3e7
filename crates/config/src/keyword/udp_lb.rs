//! The `udp-lb` section: load balancing of datagrams. It is read as a proxy with servers, and inherits nothing. Must never
//! read a keyword of a proxy itself.

use super::argument::{leading_number, milliseconds};
use super::bind;
use super::place::Holder;
use super::proxy::{self, ProxyContext, ProxyDraft, ProxyParse};
use super::report::{KeywordTable, Report};
use super::table::{Keyword, Status};
use super::udp_quic;
use super::{ReadContext, negation};
use crate::diagnostic::Diagnostic;
use crate::document::{Line, Section};
use crate::spec::{CheckMethod, LogFormatSpec, Mode, UdpSpec};
use crate::suggest;

/// Name of the section.
pub(crate) const NAME: &str = "udp-lb";

/// Description of the section.
pub(crate) const DOC: &str = "Load balancing of UDP datagrams.";

/// Size in bytes of the largest datagram that UDP carries over IPv4.
const MOST_BYTES: i64 = 65_507;

type UdpKeyword = Keyword<ProxyParse>;

const fn own(name: &'static str, usage: &'static str, doc: &'static str, parse: ProxyParse) -> UdpKeyword {
    Keyword::new((), name, usage, doc, Status::Supported(parse))
}

/// A keyword that has the same meaning as in a backend.
const fn shared(name: &'static str, usage: &'static str, doc: &'static str) -> UdpKeyword {
    own(name, usage, doc, proxy::read_line)
}

/// Every keyword of the section.
pub(crate) const TABLE: &[UdpKeyword] = &[
    own("accepted-payload-size", "<bytes>", "Size of the largest datagram; larger ones are dropped.", payload),
    shared("acl", "<name> <expression> [<flag>...] [<value>...]", "Defines an ACL."),
    shared("balance", "<algorithm> [<argument>...]", "Load balancing algorithm."),
    shared("default-server", "<option>...", "Options of the servers declared after this line."),
    shared("description", "<text>", "Text shown on the statistics page."),
    own("dgram-bind", "<address>[,<address>...] [<option>...]", "Addresses that receive datagrams.", dgram_bind),
    shared("disabled", "", "Disables the section; its addresses are not bound."),
    shared("guid", "<text>", "Identifier that stays the same across reloads."),
    shared("hash-balance-factor", "<factor>", "Limit of the load of a server, in percent of the average."),
    shared("hash-type", "<method> [<function>] [<modifier>]", "How hashes are mapped to servers."),
    shared("id", "<number>", "Numeric ID of the section, instead of its position."),
    shared("log", "{ global | <target> [<argument>...] <facility> [<level> [<minimum>]] }", "Log target."),
    shared("log-format", "<format>", "Own log format."),
    shared("log-tag", "<text>", "Program name in the section's log lines."),
    shared("maxconn", "<number>", "Maximum number of concurrent flows."),
    own(
        "option quic-passthrough",
        "[server-id <offset>,<length>]",
        "Datagrams belong to QUIC connections: contents are the ClientHello, connection IDs lead to servers.",
        quic_passthrough,
    ),
    own(
        "option udp-check",
        "[send <text> | send-binary <hexadecimal>]",
        "Checks servers by a datagram, which has to be answered if it is not empty.",
        udp_check,
    ),
    own("proxy-requests", "<number>", "Datagrams of a client after which a server is chosen again.", requests),
    own("proxy-responses", "<number>", "Answers to each datagram after which a flow ends.", responses),
    shared("server", "<name> <address>[:<port>] [<option>...]", "A server."),
    shared(
        "server-template",
        "<prefix> <count or range> <address>[:<port>] [<option>...]",
        "Declares several servers from one line.",
    ),
    shared("timeout check", "<time>", "Maximum time to wait for the answer to a check."),
    own("timeout client", "<time>", "Time without a datagram after which a flow ends.", timeout),
    own("timeout server", "<time>", "Time without a datagram after which a flow ends.", timeout),
    shared("use-server", "<server> { if | unless } <condition>", "Selects a server for flows that match a condition."),
];

/// Options of `dgram-bind`.
const BIND_OPTIONS: &[&str] = &[
    "guid-prefix",
    "id",
    "interface",
    "label",
    "maxconn",
    "name",
    "namespace",
    "nice",
    "shards",
    "thread",
    "transparent",
    "v4v6",
    "v6only",
];

/// Reads the lines of a section into a draft.
pub(super) fn read(
    section: &Section,
    draft: &mut ProxyDraft,
    holder: Holder<'_>,
    around: ReadContext<'_>,
    report: &mut Report<'_>,
) {
    draft.spec.mode = Mode::Udp;
    draft.says_mode = true;
    draft.spec.log_format = LogFormatSpec::Tcp;
    draft.spec.udp = Some(Box::default());
    draft.spec.check.method = CheckMethod::Udp(Vec::new());
    for line in &section.body {
        let mut context =
            ProxyContext { draft, holder, report: report.reborrow(), negation: negation::Negation::None, around };
        let words = (line.text(0), line.text(1));
        let Some(row) = TABLE.iter().find(|row| is_meant(row, words.0, words.1)) else {
            unknown(line, &mut context.report);
            continue;
        };
        if let Status::Supported(parse) = row.status {
            parse(&mut context, line);
        }
    }
}

fn is_meant(row: &UdpKeyword, first: &str, second: &str) -> bool {
    match row.name.split_once(' ') {
        None => row.name == first,
        Some((head, tail)) => head == first && tail == second,
    }
}

/// Reports a line that is none of the section's.
fn unknown(line: &Line, report: &mut Report<'_>) {
    let Some(word) = line.words.first() else { return };
    let seconds = TABLE.iter().filter_map(|row| row.name.split_once(' ')).filter(|name| name.0 == word.text);
    let seconds: Vec<_> = seconds.map(|name| name.1).collect();
    if seconds.is_empty() {
        if word.text == "bind" {
            let message = format!("unknown keyword 'bind' in '{NAME}' section");
            let hint = "an address that receives datagrams is written as 'dgram-bind'".to_owned();
            return report.push(Diagnostic::alert(word.span, message).with_hint(hint));
        }
        let names = TABLE.iter().map(|row| row.name.split(' ').next().unwrap_or_default()).collect();
        return report.unknown(word, NAME, names, KeywordTable::Proxy);
    }
    let mut diagnostic = Diagnostic::alert(
        line.span(1),
        format!("'{}' supports {} in '{NAME}' section (got '{}').", word.text, quoted(&seconds), line.text(1)),
    );
    let known = suggest::nearest(line.text(1), seconds);
    diagnostic.hint = known.map(|known| format!("write '{} {known}'", word.text));
    report.push(diagnostic);
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// Returns the settings of flows.
fn settings<'a>(context: &'a mut ProxyContext<'_>) -> &'a mut UdpSpec {
    context.draft.spec.udp.get_or_insert_default()
}

/// Parses the only argument of a line, a number of that range.
fn number(context: &mut ProxyContext<'_>, line: &Line, least: i64, most: i64) -> Option<u32> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), format!("'{name}' expects a number from {least} to {most}."));
        return None;
    };
    let (value, is_clean) = leading_number(&word.text);
    if !is_clean || !(least..=most).contains(&value) {
        let message = format!("'{name}' expects a number from {least} to {most} (got '{}').", word.text);
        context.report.alert(word.span, message);
        return None;
    }
    u32::try_from(value).ok()
}

fn payload(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(bytes) = number(context, line, 1, MOST_BYTES) {
        settings(context).payload = bytes;
    }
}

fn requests(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(most) = number(context, line, 1, i64::from(u32::MAX)) {
        settings(context).requests = Some(most);
    }
}

fn responses(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(most) = number(context, line, 0, i64::from(u32::MAX)) {
        settings(context).responses = Some(most);
    }
}

fn dgram_bind(context: &mut ProxyContext<'_>, line: &Line) {
    bind::read_datagrams(context, line, BIND_OPTIONS);
}

fn quic_passthrough(context: &mut ProxyContext<'_>, line: &Line) {
    if let Some(found) = udp_quic::passthrough(&mut context.report, line) {
        settings(context).quic = Some(found);
    }
}

fn udp_check(context: &mut ProxyContext<'_>, line: &Line) {
    let expected = "'option udp-check' expects 'send <text>' or 'send-binary <hexadecimal>'";
    if context.report.too_many(line, 4, "option udp-check") {
        return;
    }
    let contents = match (line.text(2), line.text(3)) {
        ("", _) => Vec::new(),
        ("send" | "send-binary", "") => return context.report.alert(line.span(3), format!("{expected}.")),
        ("send", text) => crate::text::to_bytes(text).into_owned(),
        ("send-binary", digits) => match base::hex::decode(digits.as_bytes()) {
            Some(contents) => contents,
            None => {
                let message = format!(
                    "'option udp-check send-binary' expects an even number of hexadecimal digits (got '{digits}')."
                );
                return context.report.alert(line.span(3), message);
            }
        },
        (other, _) => return context.report.alert(line.span(2), format!("{expected} (got '{other}').")),
    };
    context.draft.spec.check.method = CheckMethod::Udp(contents);
}

fn timeout(context: &mut ProxyContext<'_>, line: &Line) {
    let name = format!("timeout {}", line.text(1));
    let missing = format!("'{name}' expects <time> as an argument.");
    let unexpected = format!("unexpected character '%c' in '{name}'");
    let value = milliseconds(line.words.get(2), line, &name, &missing, &unexpected, &mut context.report);
    let Some(value) = value else { return };
    if value == 0 {
        return context
            .report
            .alert(line.span(2), format!("'{name}' expects a time above 0: flows have no other end."));
    }
    let timeouts = &mut context.draft.spec.timeouts;
    if line.text(1) == "client" { timeouts.client = Some(value) } else { timeouts.server = Some(value) }
}
