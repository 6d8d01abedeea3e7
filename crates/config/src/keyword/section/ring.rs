//! A ring of log lines, read by servers (section 12.5).

use super::{SectionContext, SectionKeyword, supported, tuning};
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::keyword::argument::milliseconds;
use crate::keyword::{is_name_character, log_line, server};
use crate::spec::{RingServerSpec, RingSpec};
use crate::units;

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("backing-file", "<path>", "File that backs the contents of the ring.", backing_file),
    supported("description", "<text>", "Description of the ring.", description),
    supported("format", "<format>", "Format of the lines.", format),
    supported("maxlen", "<length>", "Maximum length of a line.", maxlen),
    supported("server", "<name> <address> [<option>...]", "Server to which lines are forwarded.", server),
    supported("size", "<size>", "Size of the ring.", size),
    tuning("timeout client", "<time>", "No effect, as in HAProxy: a ring has no clients."),
    supported("timeout connect", "<time>", "Maximum time to connect to the server.", timeout_connect),
    supported("timeout server", "<time>", "Maximum inactivity of the server.", timeout_server),
    supported("timeout", "[<name> [<time>]]", "Other timeouts have no effect, as in HAProxy.", no_timeout),
];

/// The ring that always exists.
pub(crate) const EVENTS: &str = "buf0";
/// The ring of events for programs that set DNS records, which always exists as well.
pub(crate) const PROVISIONING: &str = "dpapi";
/// Reserved names of log sinks.
const SINKS: [&str; 4] = [EVENTS, PROVISIONING, "stdout", "stderr"];

/// Default of `maxlen`, in bytes.
const DEFAULT_MAXLEN: u32 = 1024;

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let name = line.text(1);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("invalid ring name '{name}' (character '{bad}' is not permitted).");
        context.report.alert(line.span(1), message);
        return false;
    }
    if SINKS.contains(&name) || context.content.rings.iter().any(|other| other.name == name) {
        context.report.alert(line.span(1), format!("sink named '{name}' already exists."));
        return false;
    }
    context.content.rings.push(RingSpec {
        span: line.whole(),
        name: name.to_owned(),
        description: None,
        format: None,
        maxlen: DEFAULT_MAXLEN,
        size: None,
        backing_file: None,
        timeout_connect: 1_000,
        timeout_server: 5_000,
        servers: Vec::new(),
    });
    true
}

/// Returns the open section.
fn ring<'a>(context: &'a mut SectionContext<'_>) -> Option<&'a mut RingSpec> {
    context.content.rings.last_mut()
}

fn description(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), "missing ring description text.");
        return;
    };
    if let Some(ring) = ring(context) {
        ring.description = Some(word.text.clone());
    }
}

fn format(context: &mut SectionContext<'_>, line: &Line) {
    let text = line.text(1);
    let Some(format) = log_line::syslog_format(text) else {
        let mut diagnostic = Diagnostic::alert(line.span(1), format!("unknown format '{text}'."));
        diagnostic.hint = log_line::nearest_format(text).map(|known| format!("write '{known}'"));
        context.report.push(diagnostic);
        return;
    };
    if let Some(ring) = ring(context) {
        ring.format = Some(format);
    }
}

/// Parses a size in bytes, at least 1.
fn bytes(context: &mut SectionContext<'_>, line: &Line) -> Option<u32> {
    let text = line.text(1);
    let limit = u64::from(i32::MAX.unsigned_abs());
    match units::size(text, limit) {
        Ok(value @ 1..) => u32::try_from(value).ok(),
        other => {
            let message = format!("invalid size '{text}' for new sink buffer.");
            let mut diagnostic = Diagnostic::alert(line.span(1), message);
            diagnostic.hint = other.err().map(|error| error.hint(limit));
            context.report.push(diagnostic);
            None
        }
    }
}

fn maxlen(context: &mut SectionContext<'_>, line: &Line) {
    if let Some(value) = bytes(context, line)
        && let Some(ring) = ring(context)
    {
        ring.maxlen = value;
    }
}

fn backing_file(context: &mut SectionContext<'_>, line: &Line) {
    let Some(open) = ring(context) else { return };
    if let Some(known) = &open.backing_file {
        let message = format!("'backing-file' already specified for ring '{}' (was '{known}').", open.name);
        return context.report.alert(line.span(0), message);
    }
    if line.text(1).is_empty() {
        let message = format!("cannot open backing-file '' for ring '{}': No such file or directory.", open.name);
        return context.report.alert(line.span(1), message);
    }
    open.backing_file = Some(line.text(1).to_owned());
}

fn size(context: &mut SectionContext<'_>, line: &Line) {
    if ring(context).is_some_and(|ring| ring.backing_file.is_some()) {
        let message = "cannot resize an already mapped file, please specify 'size' before 'backing-file'.";
        return context.report.alert(line.span(0), message);
    }
    if let Some(value) = bytes(context, line)
        && let Some(ring) = ring(context)
    {
        ring.size = Some(value);
    }
}

fn timeout(context: &mut SectionContext<'_>, line: &Line, set: fn(&mut RingSpec, u64)) {
    let name = format!("timeout {}", line.text(1));
    let missing = format!("'{name}' expects <time> as argument.");
    let unexpected = format!("unexpected character '%c' in argument to <{name}>.");
    let value = milliseconds(line.words.get(2), line, &name, &missing, &unexpected, &mut context.report);
    if let (Some(value), Some(ring)) = (value, ring(context)) {
        set(ring, value);
    }
}

/// HAProxy ignores the argument once the name is recognized.
fn no_timeout(context: &mut SectionContext<'_>, line: &Line) {
    let message = format!("'timeout {}' has no effect in a ring.", line.text(1));
    context.report.diag(line.span(1), message);
}

fn timeout_connect(context: &mut SectionContext<'_>, line: &Line) {
    timeout(context, line, |ring, value| ring.timeout_connect = value);
}

fn timeout_server(context: &mut SectionContext<'_>, line: &Line) {
    timeout(context, line, |ring, value| ring.timeout_server = value);
}

fn server(context: &mut SectionContext<'_>, line: &Line) {
    let Some(open) = context.content.rings.last_mut() else { return };
    let Some(mut found) = server::read_detached(&open.name, line, context.around.environment, &mut context.report)
    else {
        return;
    };
    if let Some(other) = open.servers.iter().find(|other| other.name == found.name) {
        let message = format!(
            "'server {}/{}' : another server named '{}' was already defined at line {}, please use a distinct name.",
            open.name, found.name.value, found.name.value, other.name.span.line
        );
        context.report.placed(found.name.span, message);
        return;
    }
    found.tls.common.folder = context.around.paths.folder(line.whole(), context.around.sources);
    let server::Detached { name, address, log_protocol, tls } = found;
    if !log_line::can_take_lines(&address.value) {
        let message = "log server address family not supported for log backend server.";
        context.report.alert(address.span, message);
        return;
    }
    let tls = tls.ssl.then(|| Box::new(tls));
    open.servers.push(RingServerSpec { span: line.whole(), name, address, protocol: log_protocol, tls });
}
