//! The `server` and `default-server` lines: name, address, then options by family (configuration manual, section 5.2).
//! Must never resolve anything.

pub(super) mod added;
mod agent;
mod checks;
mod connection;
pub(super) mod datagrams;
mod delay;
mod detached;
mod general;
mod origin;
mod peer;
mod proxy_header;
mod resolving;
mod store;
mod template;
mod tls;

use super::QMUX_IS_EXPERIMENTAL;
use super::argument::Arity;
use super::proxy::ProxyContext;
use super::report::{Report, did_you_mean, quoted_list};
use super::table::{Family, Keyword, Status, rows};
use crate::address::{self, AddressError, AddressRules};
use crate::diagnostic::{Diagnostic, Form, Severity};
use crate::document::{Line, Word};
use crate::environment::Environment;
use crate::span::{Span, Spanned};
use crate::spec::{
    AddressSpec, ConnectingSpec, ServerBalanceSpec, ServerCheckSpec, ServerLimitsSpec, ServerLogSpec,
    ServerPersistenceSpec, ServerSpec, ServerTlsSpec, Shared,
};
use crate::suggest;
use crate::units::{self, Time, TimeError};

pub(crate) use detached::{Detached, read as read_detached, read_nameserver};
pub(crate) use peer::{PeerOptions, read as read_peer, read_defaults as read_peer_defaults};
pub(crate) use template::read_template;

/// Options of a line; `default-server` sets the initial values of the next lines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerDraft {
    pub(crate) weight: u32,
    pub(crate) maxconn: Option<u32>,
    pub(crate) maxqueue: Option<u32>,
    pub(crate) limits: Shared<ServerLimitsSpec>,
    pub(crate) balance: Shared<ServerBalanceSpec>,
    pub(crate) id: Option<u32>,
    pub(crate) disabled: bool,
    pub(crate) backup: bool,
    pub(crate) pool_max_conn: Option<u32>,
    pub(crate) pool_purge_delay: u32,
    /// Options used by log servers only.
    pub(crate) log: ServerLogSpec,
    pub(crate) connecting: Shared<ConnectingSpec>,
    pub(crate) check: Shared<ServerCheckSpec>,
    pub(crate) persistence: Shared<ServerPersistenceSpec>,
    pub(crate) tls: ServerTlsSpec,
    /// Used by peers only.
    pub(crate) shard: u32,
    /// `for-added` of a `default-server` line.
    pub(crate) for_added: Option<Span>,
}

impl Default for ServerDraft {
    fn default() -> Self {
        Self {
            weight: 1,
            maxconn: None,
            maxqueue: None,
            limits: Shared::default(),
            balance: Shared::default(),
            id: None,
            disabled: false,
            backup: false,
            pool_max_conn: None,
            pool_purge_delay: 5_000,
            log: ServerLogSpec::default(),
            connecting: Shared::default(),
            check: Shared::default(),
            persistence: Shared::default(),
            tls: ServerTlsSpec::default(),
            shard: 0,
            for_added: None,
        }
    }
}

/// Context of a server option's parser.
pub(crate) struct ServerContext<'a> {
    pub(crate) draft: &'a mut ServerDraft,
    /// The server's name; none for `default-server`.
    pub(crate) name: Option<&'a str>,
    /// All arguments of the current option.
    pub(crate) arguments: &'a [Word],
    pub(crate) environment: &'a Environment,
    /// Options that the section accepts; `None`: all of them.
    only: Option<&'static [&'static str]>,
    /// Collected messages: HAProxy's text after the name of the server.
    pub(crate) problems: Vec<Problem>,
    /// Forms that HAProxy supports and Weir does not yet.
    not_yet: Vec<(String, Span)>,
}

/// Message about one option.
pub(crate) struct Problem {
    severity: Severity,
    span: Span,
    message: String,
}

impl<'a> ServerContext<'a> {
    fn new(draft: &'a mut ServerDraft, name: Option<&'a str>, environment: &'a Environment) -> Self {
        draft.tls.ssl_by_default |= draft.tls.ssl;
        Self { draft, name, arguments: &[], environment, only: None, problems: Vec::new(), not_yet: Vec::new() }
    }

    /// Returns the server's name in HAProxy's sentences; `(null)` for a `default-server` line.
    pub(crate) fn shown_name(&self) -> &'a str {
        self.name.unwrap_or("(null)")
    }

    /// Records a form of an option that HAProxy supports and Weir does not yet.
    fn not_yet(&mut self, form: impl Into<String>, span: Span) {
        self.not_yet.push((form.into(), span));
    }

    /// Parses a time in milliseconds; text after its unit is a warning.
    fn milliseconds(&mut self, word: &Word) -> Result<Time, TimeError> {
        let time = units::milliseconds(&word.text)?;
        if let Some(message) = time.leftover_warning(&word.text) {
            self.problems.push(Problem { severity: Severity::Warning, span: word.span, message });
        }
        Ok(time)
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.problems.push(Problem { severity: Severity::Alert, span, message: message.into() });
    }

    /// Parses a number as HAProxy does for this option: as far as it is a number.
    fn number(&mut self, keyword: &Word, value: Option<&Word>) -> i64 {
        let (number, clean) = super::argument::leading_number(value.map_or("", |word| &word.text));
        if !clean {
            let span = value.map_or(keyword.span, |word| word.span);
            let message = match value {
                Some(word) => format!("'{}' takes a number; '{}' is read as {number}.", keyword.text, word.text),
                None => format!("'{}' without a value is read as {number}.", keyword.text),
            };
            self.problems.push(Problem { severity: Severity::Diag, span, message });
        }
        number
    }
}

/// Parser of one option: its name and its argument.
pub(crate) type ServerParse = fn(&mut ServerContext<'_>, &Word, Option<&Word>);

/// A row of the server tables.
pub(crate) type ServerOption = Keyword<ServerParse, Arity>;

const fn supported(
    arity: Arity,
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    parse: ServerParse,
) -> ServerOption {
    Keyword::new(arity, name, usage, doc, Status::Supported(parse))
}

const fn removed(
    arity: Arity,
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    sentence: &'static str,
) -> ServerOption {
    Keyword::new(arity, name, usage, doc, Status::Removed(sentence))
}

const fn refused(
    arity: Arity,
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    sentence: &'static str,
) -> ServerOption {
    Keyword::new(arity, name, usage, doc, Status::Refused(sentence))
}

/// Parser of options that cancel an option that is not supported.
fn no_op(_: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {}

/// Every option of a server line.
pub(crate) static FAMILIES: &[Family<ServerOption>] = &[
    Family { title: "General", rows: general::TABLE },
    Family { title: "Connections", rows: connection::TABLE },
    Family { title: "PROXY header", rows: proxy_header::TABLE },
    Family { title: "Health checks", rows: checks::TABLE },
    Family { title: "Resolving", rows: resolving::TABLE },
    Family { title: "TLS", rows: tls::TABLE },
];

/// The end of messages about HTTP/3 in the ALPN of a server over TCP, if experimental keywords are not allowed.
const HTTP3_ON_TCP: &str = "HTTP/3 on TCP listed via ALPN requires the QMUX protocol which is experimental, must be allowed via a global \
     'expose-experimental-directives'.";

/// Reads a `server` line into the proxy.
pub(crate) fn read(context: &mut ProxyContext<'_>, line: &Line) {
    let (Some(name), Some(address)) = (line.words.get(1), line.words.get(2)) else {
        let message = "'server' expects <name> and <addr>[:<port>] as arguments.";
        return context.report.placed(line.span(line.words.len()), message);
    };
    if let Some(bad) = name.text.chars().find(|&found| !super::is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in server name '{}'.", name.text);
        context.report.placed(name.span, message);
    }
    let head = format!("'server {}/{}' : ", context.name(), name.text);
    declared_before(context, line, &head, &Spanned::new(name.text.clone(), name.span));
    let parsed = read_address(context, address, &head);
    let mut draft = start(context, line, 3, &head, context.draft.default_server.clone());
    if opens_connections(parsed.as_ref()) {
        draft.check.reuse_pool = true;
    }
    let mut server = ServerContext::new(&mut draft, Some(&name.text), context.around.environment);
    server.only = datagrams::accepted(context);
    let unread = read_options(&mut server, line, origin::index_after(line, 3));
    if unread.unknown.is_empty() {
        checks::finish(&mut server, line.whole());
    }
    let problems = server.problems;
    report_problems(&mut context.report, &head, "", problems, &unread);
    name_folder(context, line, &mut draft);
    check_id(context, line, &head, draft.id);
    if let Some(parsed) = parsed {
        let span = line.whole();
        let name = Spanned::new(name.text.clone(), name.span);
        context.draft.spec.servers.push(finish(draft, span, name, Spanned::new(parsed, address.span)));
    }
}

/// Stores the base directory of file names: `default-path` of the last line with a TLS option.
fn name_folder(context: &ProxyContext<'_>, line: &Line, draft: &mut ServerDraft) {
    if draft.tls != ServerTlsSpec::default() {
        draft.tls.common.folder = context.around.paths.folder(line.whole(), context.around.sources);
    }
}

/// Returns the initial values of a line's options: those named by `from`, or `by_itself`.
fn start(context: &mut ProxyContext<'_>, line: &Line, first: usize, head: &str, by_itself: ServerDraft) -> ServerDraft {
    let pairs = line.words.iter().skip(first).zip(line.words.iter().skip(first + 1));
    let mut kernel = pairs.filter(|(name, _)| name.text == "ktls");
    if let Some((word, _)) = kernel.next()
        && !context.around.experimental.permits()
    {
        let why = "directive is experimental, must be allowed via a global 'expose-experimental-directives'.";
        context.report.placed(word.span, format!("{head}'ktls' {why}"));
    }
    check_qmux(context, line, first, head);
    let origins = origin::ProxyDrafts { own: context.draft, earlier: context.around.earlier };
    match origin::read(line, first, context.name(), &origins) {
        Ok(found) => found.unwrap_or(by_itself),
        Err((span, message)) => {
            context.report.placed(span, format!("{head}{message}"));
            by_itself
        }
    }
}

/// Reports QMux if experimental keywords are not allowed: `proto qmux`, and HTTP/3 in the ALPN of a server over TCP.
fn check_qmux(context: &mut ProxyContext<'_>, line: &Line, first: usize, head: &str) {
    let is_quic = first == 1 || line.text(first - 1).starts_with("quic");
    for (name, value) in line.words.iter().skip(first).zip(line.words.iter().skip(first + 1)) {
        let why = match (name.text.as_str(), value.text.as_str()) {
            ("proto", "qmux") => format!("'proto' : {QMUX_IS_EXPERIMENTAL}"),
            ("alpn", list) if !is_quic && list.split(',').any(|name| name == "h3") => HTTP3_ON_TCP.to_owned(),
            _ => continue,
        };
        if !context.around.experimental.permits() {
            context.report.placed(value.span, format!("{head}{why}"));
        }
    }
}

/// Reports a server name that the backend already contains.
fn declared_before(context: &mut ProxyContext<'_>, line: &Line, head: &str, name: &Spanned<String>) {
    if let Some(other) = context.draft.server_names.insert(name.value.clone(), line.number) {
        let message = format!(
            "{head}another server named '{}' was already defined at line {other}, please use a distinct name.",
            name.value
        );
        context.report.placed(name.span, message);
    }
}

/// Builds the specification of a server. Implicit ids are assigned after all lines are read.
fn finish(draft: ServerDraft, span: Span, name: Spanned<String>, address: Spanned<AddressSpec>) -> ServerSpec {
    let ServerDraft {
        weight,
        maxconn,
        maxqueue,
        limits,
        balance,
        id,
        disabled,
        backup,
        pool_max_conn,
        pool_purge_delay,
        connecting,
        log,
        check,
        persistence,
        tls,
        shard: _,
        for_added: _,
    } = draft;
    let id_is_written = id.is_some();
    let id = id.unwrap_or(0);
    ServerSpec {
        span,
        name,
        address,
        weight,
        maxconn,
        maxqueue,
        balance,
        limits,
        id,
        id_is_written,
        disabled,
        backup,
        pool_max_conn,
        pool_purge_delay,
        connecting,
        log,
        check,
        persistence,
        tls: (tls != ServerTlsSpec::default()).then(|| Box::new(tls)),
    }
}

/// Assigns the next free number to every server without an `id`. Servers before it with an explicit number count too.
pub(crate) fn number(servers: &mut [ServerSpec]) {
    let taken: std::collections::HashSet<u32> = servers.iter().map(|server| server.id).collect();
    let mut next = 1_u32;
    for server in servers {
        if server.id == 0 {
            while taken.contains(&next) && next < u32::MAX {
                next = next.saturating_add(1);
            }
            server.id = next;
        }
        next = next.saturating_add(1);
    }
}

/// Reads a `default-server` line: `[name <name>] [from <origin>] <option>...`.
pub(crate) fn read_defaults(context: &mut ProxyContext<'_>, line: &Line) {
    let named = line.text(1) == "name";
    let name = if named { line.text(2) } else { "" };
    if named && name.is_empty() {
        return context.report.alert(line.span(1), "default-server name: missing value.");
    }
    if let Some(server) = context.draft.spec.servers.iter().find(|server| named && server.name.value == name) {
        let message =
            format!("default-server name '{name}' conflicts with server defined at line {}.", server.span.line);
        return context.report.alert(line.span(2), message);
    }
    let first = if named { 3 } else { 1 };
    let known = context.draft.named_servers.iter().find(|known| known.0 == name).map(|known| known.1.clone());
    let so_far = if named { known.unwrap_or_default() } else { context.draft.default_server.clone() };
    let mut draft = start(context, line, first, "", so_far);
    let behind = origin::index_after(line, first);
    let mut server = ServerContext::new(&mut draft, None, context.around.environment);
    server.only = datagrams::accepted(context);
    let unread = read_options(&mut server, line, behind);
    let mut problems = server.problems;
    if let Some(span) = draft.for_added.take_if(|_| named) {
        let message =
            "'for-added' is for 'default-server' lines without a name; 'add server' selects others by 'from srv:'.";
        problems.push(Problem { severity: Severity::Alert, span, message: message.to_owned() });
    }
    name_folder(context, line, &mut draft);
    draft.id = None;
    // A line that only restores the documented defaults does not count.
    draft.check.has_defaults |= line.text(first) != "from" || behind < line.words.len();
    if named {
        // Reserves the name: no server may have it.
        context.draft.server_names.insert(name.to_owned(), line.number);
        match context.draft.named_servers.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 = draft,
            None => context.draft.named_servers.push((name.to_owned(), draft)),
        }
    } else {
        context.draft.default_server = draft;
    }
    let place = context.holder.describe();
    report_problems(&mut context.report, "", &place, problems, &unread);
}

/// Whether a server opens its connections itself: its checks can only use those (configuration manual,
/// "check-reuse-pool").
fn opens_connections(address: Option<&AddressSpec>) -> bool {
    matches!(address, Some(AddressSpec::Reverse { .. }))
}

fn read_address(context: &mut ProxyContext<'_>, word: &Word, head: &str) -> Option<AddressSpec> {
    let parsed = parse_address(word, head, context.around.environment, &mut context.report);
    let is_experimental = |spec: &AddressSpec| matches!(spec, AddressSpec::Reverse { .. }) || spec.is_quic();
    if parsed.as_ref().is_some_and(is_experimental) && !context.around.experimental.permits() {
        let why = "is experimental, must be allowed via a global 'expose-experimental-directives'";
        context.report.placed(word.span, format!("{head}Address '{}' {why}", word.text));
    }
    parsed
}

fn parse_address(word: &Word, head: &str, environment: &Environment, report: &mut Report<'_>) -> Option<AddressSpec> {
    match address::parse(&word.text, &AddressRules::PROXY_SERVER, environment) {
        Ok(spec) => Some(spec),
        Err(AddressError::NotSupported { .. }) => {
            report.alert(word.span, format!("{head}'{}' is not supported yet by Weir.", word.text));
            None
        }
        Err(error) => {
            let mut diagnostic = Diagnostic::alert(word.span, format!("{head}{error}")).with_form(Form::Placed);
            diagnostic.hint = error.hint().map(str::to_owned);
            report.push(diagnostic);
            None
        }
    }
}

/// Reports an id that the backend already contains.
fn check_id(context: &mut ProxyContext<'_>, line: &Line, head: &str, id: Option<u32>) {
    let Some(id) = id else { return };
    let here = Spanned::new(line.text(1).to_owned(), line.whole());
    match context.draft.server_ids.get(&id) {
        None => {
            context.draft.server_ids.insert(id, here);
        }
        Some(other) => {
            let place = context.around.place(other.span);
            let message = format!("{head}'id' : custom id {id} already used at {place} ('server {}').", other.value);
            context.report.placed(line.span(1), message);
        }
    }
}

/// Options that were not applied.
#[derive(Default)]
struct Unread {
    not_yet: Vec<(String, Span)>,
    unknown: Vec<(String, Span, Option<&'static str>)>,
    /// No address precedes them, where one might be expected.
    without_address: bool,
}

fn read_options<'a>(server: &mut ServerContext<'a>, line: &'a Line, first: usize) -> Unread {
    let mut unread = Unread::default();
    let mut at = first;
    while let Some(word) = line.words.get(at) {
        at += 1;
        let Some(row) = rows(FAMILIES).find(|row| row.is(&word.text)) else {
            let known = suggest::nearest(&word.text, rows(FAMILIES).map(|row| row.name));
            unread.unknown.push((word.text.clone(), word.span, known));
            // The following words are taken as its arguments; an error about each of them would be misleading.
            at += match known.and_then(|known| rows(FAMILIES).find(|row| row.name == known)) {
                Some(row) => row.extra.take(&line.words[at..]).1,
                None => count_unknown(&line.words[at..]),
            };
            continue;
        };
        let (argument, length) = row.extra.take(&line.words[at..]);
        server.arguments = &line.words[at..at + length];
        at += length;
        if server.only.is_some_and(|only| !only.contains(&row.name)) {
            server.error(word.span, format!("'{}' is not an option of servers that get datagrams.", word.text));
            continue;
        }
        match row.status {
            Status::Supported(parse) | Status::Group(parse) => parse(server, word, argument),
            Status::NotYet => server.not_yet.push((row.name.to_owned(), word.span)),
            Status::Tuning => {}
            Status::Removed(sentence) | Status::Refused(sentence) => {
                let text = sentence.replace("%1", argument.map_or("", |word| &word.text));
                server.error(word.span, text);
            }
        }
    }
    unread.not_yet = std::mem::take(&mut server.not_yet);
    unread
}

/// Counts the words up to the next known option.
fn count_unknown(words: &[Word]) -> usize {
    words.iter().take_while(|word| !rows(FAMILIES).any(|row| row.is(&word.text))).count()
}

/// Reports the messages of a line. `head` precedes HAProxy's sentences about a server; without it `place` is the place
/// of the line. HAProxy names the place and the server in its first message about a line; later warnings are without, as there.
fn report_problems(report: &mut Report<'_>, head: &str, place: &str, problems: Vec<Problem>, unread: &Unread) {
    let mut is_first = true;
    for Problem { severity, span, message } in problems {
        let is_later_warning = severity == Severity::Warning && !is_first;
        is_first &= severity == Severity::Diag;
        if is_later_warning {
            report.leftover(span, message);
        } else {
            report.push(Diagnostic::new(severity, span, format!("{head}{message}")).with_form(Form::Placed));
        }
    }
    for (word, span, known) in &unread.unknown {
        let mut message = format!("{head}unknown keyword '{word}'{}", did_you_mean(*known));
        if head.is_empty() || unread.without_address {
            let stop = if known.is_none() { "." } else { "" };
            message.push_str(stop);
            message.push_str(" Hint: no address was expected for this server.");
        } else if known.is_none() {
            message.push('.');
        }
        report.push(Diagnostic::alert(*span, message).with_form(Form::Placed));
    }
    if let Some((_, span)) = unread.not_yet.first() {
        let names: Vec<&str> = unread.not_yet.iter().map(|row| row.0.as_str()).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        let head = if head.is_empty() { format!("'default-server' in {place} : ") } else { head.to_owned() };
        report.alert(*span, format!("{head}{} {verb} not supported yet by Weir.", quoted_list(&names)));
    }
}
