//! The `bind` line: addresses, then options by family (configuration manual, section 5.1). Must never open anything.

mod header;
mod listening;
pub(crate) mod owner;
mod quic;
mod reverse;
pub(crate) mod runtime;
mod socket;
mod threads;
mod tls;

pub(crate) use quic::{Congestion, WINDOWS as QUIC_WINDOWS};
pub(crate) use socket::namespace_exists;

use super::ReadContext;
use super::argument::Arity;
use super::proxy::ProxyContext;
use super::report::{Report, did_you_mean, quoted_list};
use super::table::{Family, Keyword, Status, rows};
use crate::address::{self, AddressError, AddressRules};
use crate::diagnostic::Diagnostic;
use crate::document::{Line, Word};
use crate::span::{Span, Spanned};
use crate::spec::{AddressSpec, BindSpec, BindTlsSpec, ListeningSpec, PortSpec, RuntimeAccess, ShardsSpec};
use crate::suggest;

/// Options of a line, which apply to each of its addresses.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct BindDraft {
    pub(crate) name: Option<String>,
    pub(crate) maxconn: Option<u32>,
    pub(crate) backlog: Option<u32>,
    pub(crate) defer_accept: bool,
    pub(crate) v6only: bool,
    pub(crate) v4v6: bool,
    pub(crate) shards: Option<ShardsSpec>,
    pub(crate) id: Option<u32>,
    pub(crate) unix_mode: Option<u32>,
    pub(crate) access: RuntimeAccess,
    pub(crate) listening: ListeningSpec,
    pub(crate) tls: BindTlsSpec,
}

/// Context of a bind option's parser.
pub(crate) struct BindContext<'a> {
    pub(crate) draft: &'a mut BindDraft,
    /// Number of addresses of the line.
    pub(crate) sockets: usize,
    /// The addresses are `rhttp@`.
    pub(crate) is_reverse: bool,
    pub(crate) around: ReadContext<'a>,
    /// Addresses of the proxy's earlier lines.
    pub(crate) earlier: &'a [BindSpec],
    /// Options that the line accepts; `None`: all of them.
    pub(crate) only: Option<&'static [&'static str]>,
    /// Collected errors: HAProxy's text after the name of the line.
    pub(crate) errors: Vec<(Span, String)>,
}

impl BindContext<'_> {
    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.errors.push((span, message.into()));
    }
}

/// Parses one option: its name and its first argument, which is missing at the end of a line.
pub(crate) type BindParse = fn(&mut BindContext<'_>, &Word, Option<&Word>);

/// A row of the bind tables.
pub(crate) type BindOption = Keyword<BindParse, Arity>;

const fn supported(
    arity: Arity,
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    parse: BindParse,
) -> BindOption {
    Keyword::new(arity, name, usage, doc, Status::Supported(parse))
}

const fn not_yet(arity: Arity, name: &'static str, usage: &'static str, doc: &'static str) -> BindOption {
    Keyword::new(arity, name, usage, doc, Status::NotYet)
}

const fn tuning(arity: Arity, name: &'static str, usage: &'static str, doc: &'static str) -> BindOption {
    Keyword::new(arity, name, usage, doc, Status::Tuning)
}

const fn removed(
    arity: Arity,
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    sentence: &'static str,
) -> BindOption {
    Keyword::new(arity, name, usage, doc, Status::Removed(sentence))
}

/// Every option of a `bind` line.
pub(crate) static FAMILIES: &[Family<BindOption>] = &[
    Family { title: "Listening sockets", rows: listening::TABLE },
    Family { title: "Runtime API", rows: runtime::TABLE },
    Family { title: "Socket options", rows: socket::TABLE },
    Family { title: "Owner of a UNIX socket", rows: owner::TABLE },
    Family { title: "Headers before the client's data", rows: header::TABLE },
    Family { title: "TLS", rows: tls::TABLE },
    Family { title: "QUIC", rows: quic::TABLE },
];

/// Maximum number of ports of one line, so that a typo does not exhaust memory.
const MAX_SOCKETS: usize = 65_536;

/// Whether ALPN offers HTTP/3, which is spoken by QMux over TCP.
pub(crate) fn offers_http3(alpn: &Spanned<Vec<String>>) -> bool {
    alpn.value.iter().any(|name| name == "h3")
}

/// Reads a `bind` line into the proxy.
pub(crate) fn read(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        context
            .report
            .alert(line.span(1), "'bind' expects {<path>|[addr1]:port1[-end1]}{,[addr]:port[-end]}... as arguments.");
        return;
    };
    let place = context.holder.describe();
    let addresses =
        read_addresses(word, "bind", &place, &AddressRules::PROXY_BIND, context.around, &mut context.report);
    context.draft.gaps.bind |= addresses.incomplete;
    let is_reverse = addresses.found.iter().any(|(address, _)| matches!(address, AddressSpec::Reverse { .. }));
    if is_reverse && !context.around.experimental.permits() {
        let why = "is experimental, must be allowed via a global 'expose-experimental-directives'";
        context.report.alert(word.span, format!("'bind' : Address '{}' {why}", word.text));
    }
    let mut draft = BindDraft::default();
    let mut bind = BindContext {
        draft: &mut draft,
        sockets: addresses.found.len(),
        is_reverse,
        around: context.around,
        earlier: &context.draft.spec.binds,
        only: None,
        errors: Vec::new(),
    };
    let unread = read_options(&mut bind, line, 2);
    let errors = bind.errors;
    let head = format!("'bind {}' in section '{}'", line.text(1), context.holder.section.keyword());
    report(
        &Head { option: format!("{head} : "), unknown: format!("{head}: "), end: "" },
        errors,
        &unread,
        &mut context.report,
    );
    quic::QuicLine { word, head: &head }.check(&draft, &addresses.found, &mut context.report);
    let over_bytes = addresses.found.iter().any(|(address, _)| !address.is_quic());
    if let Some(alpn) = draft.tls.common.alpn.as_ref().filter(|alpn| over_bytes && offers_http3(alpn))
        && !context.around.experimental.permits()
    {
        let why = "relies on the experimental QMux protocol, must be allowed via a global \
                   'expose-experimental-directives'.";
        context.report.alert(alpn.span, format!("{head} : HTTP/3 on TCP listed via ALPN {why}"));
    }
    let span = line.whole();
    if is_reverse {
        reverse::refuse_options(&draft, span, &mut context.report);
    }
    context
        .draft
        .spec
        .binds
        .extend(addresses.found.into_iter().map(|(address, text)| draft.clone().at(span, address, text)));
}

/// Reads a `bind` or `dgram-bind` line of a section of relays: none, one or several addresses.
pub(crate) fn read_relay(
    line: &Line,
    earlier: &[BindSpec],
    around: ReadContext<'_>,
    out: &mut Report<'_>,
) -> Vec<BindSpec> {
    // HAProxy accepts a line without an address silently.
    let Some(word) = line.words.get(1) else { return Vec::new() };
    let is_stream = line.keyword() == "bind";
    let rules = if is_stream { AddressRules::BIND } else { AddressRules::DGRAM_BIND };
    let name = format!("{} {}", line.keyword(), word.text);
    let addresses = read_addresses(word, &name, "section 'log-forward'", &rules, around, out);
    let mut draft = BindDraft::default();
    let sockets = addresses.found.len();
    let mut bind =
        BindContext { draft: &mut draft, sockets, is_reverse: false, around, earlier, only: None, errors: Vec::new() };
    let mut unread = read_options(&mut bind, line, 2);
    let errors = bind.errors;
    if !is_stream {
        // Options of connections do not apply to datagram sockets.
        unread.not_yet.clear();
        unread.tuning.clear();
    }
    for (word, span, known) in std::mem::take(&mut unread.unknown) {
        let message = format!("unknown keyword '{word}' in 'log-forward' section{}", did_you_mean(known));
        let mut diagnostic = Diagnostic::alert(span, message);
        diagnostic.hint = known.map(|known| format!("write '{known}'"));
        out.push(diagnostic);
    }
    report(&Head { option: format!("'{name}' : "), unknown: String::new(), end: "" }, errors, &unread, out);
    let span = line.whole();
    addresses.found.into_iter().map(|(address, text)| draft.clone().at(span, address, text)).collect()
}

/// Reads a `dgram-bind` line of a `udp-lb` section, which accepts the options `only`.
pub(crate) fn read_datagrams(context: &mut ProxyContext<'_>, line: &Line, only: &'static [&'static str]) {
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), "'dgram-bind' expects <address>:<port>[,<address>:<port>]... as arguments.");
        return;
    };
    let place = context.holder.describe();
    let rules = AddressRules::DGRAM_BIND;
    let mut addresses = read_addresses(word, "dgram-bind", &place, &rules, context.around, &mut context.report);
    let is_fit = |address: &AddressSpec| {
        matches!(address, AddressSpec::Inet { .. } | AddressSpec::Descriptor { is_carrier: false, .. })
    };
    if addresses.found.iter().any(|(address, _)| !is_fit(address)) {
        context.report.alert(word.span, format!("'dgram-bind' : '{}' is not an address of UDP.", word.text));
        addresses = Addresses { found: Vec::new(), incomplete: true };
    }
    context.draft.gaps.bind |= addresses.incomplete;
    let mut draft = BindDraft::default();
    let mut bind = BindContext {
        draft: &mut draft,
        sockets: addresses.found.len(),
        is_reverse: false,
        around: context.around,
        earlier: &context.draft.spec.binds,
        only: Some(only),
        errors: Vec::new(),
    };
    let unread = read_options(&mut bind, line, 2);
    let errors = bind.errors;
    let head = format!("'dgram-bind {}' in section 'udp-lb'", line.text(1));
    let head = Head { option: format!("{head} : "), unknown: format!("{head}: "), end: "" };
    report(&head, errors, &unread, &mut context.report);
    let span = line.whole();
    let found = addresses.found.into_iter().map(|(address, text)| draft.clone().at(span, address, text));
    context.draft.spec.binds.extend(found);
}

/// Reads a `bind` line of a `peers` section; `default-bind` supplies the initial values.
pub(crate) fn read_peers(
    line: &Line,
    defaults: &BindDraft,
    around: ReadContext<'_>,
    out: &mut Report<'_>,
) -> Vec<BindSpec> {
    let Some(word) = line.words.get(1) else { return Vec::new() };
    let name = format!("bind {}", word.text);
    let addresses = read_addresses(word, &name, "section 'peers'", &AddressRules::BIND, around, out);
    let mut draft = defaults.clone();
    read_peers_options(line, 2, addresses.found.len(), &mut draft, around, out);
    let span = line.whole();
    addresses.found.into_iter().map(|(address, text)| draft.clone().at(span, address, text)).collect()
}

/// Reads a `default-bind` line of a `peers` section.
pub(crate) fn read_peers_defaults(line: &Line, draft: &mut BindDraft, around: ReadContext<'_>, out: &mut Report<'_>) {
    read_peers_options(line, 1, 1, draft, around, out);
}

fn read_peers_options(
    line: &Line,
    first: usize,
    sockets: usize,
    draft: &mut BindDraft,
    around: ReadContext<'_>,
    out: &mut Report<'_>,
) {
    let mut bind =
        BindContext { draft, sockets, is_reverse: false, around, earlier: &[], only: None, errors: Vec::new() };
    let unread = read_options(&mut bind, line, first);
    let errors = bind.errors;
    let head = format!("'{} {}' in section 'peers'", line.keyword(), line.text(1));
    if draft.maxconn.is_some() {
        out.diag(line.span(0), format!("{head} : 'maxconn' is ignored: each peer has one connection."));
    }
    report(&Head { option: format!("{head} : "), unknown: format!("{head}: "), end: "" }, errors, &unread, out);
}

impl BindDraft {
    /// Returns the specification of one address of the line.
    pub(crate) fn at(self, span: Span, address: AddressSpec, text: String) -> BindSpec {
        let Self { name, maxconn, backlog, defer_accept, v6only, v4v6, shards, id, unix_mode, access, listening, tls } =
            self;
        BindSpec {
            span,
            address,
            text,
            name,
            maxconn,
            backlog,
            defer_accept,
            v6only,
            v4v6,
            shards,
            id,
            unix_mode,
            access,
            listening,
            tls: (tls != BindTlsSpec::default()).then(|| Box::new(tls)),
        }
    }
}

/// The addresses of a line.
struct Addresses {
    found: Vec<(AddressSpec, String)>,
    /// At least one address could not be parsed.
    incomplete: bool,
}

/// Parses every address of the list; each port of a range becomes an address of its own. `place` is the place of the
/// line `name`.
fn read_addresses(
    word: &Word,
    name: &str,
    place: &str,
    rules: &AddressRules,
    around: ReadContext<'_>,
    report: &mut Report<'_>,
) -> Addresses {
    let mut addresses = Addresses { found: Vec::new(), incomplete: false };
    let list = word.text.strip_suffix(',').unwrap_or(&word.text);
    for (_, part) in address::split_list(list) {
        match address::parse(part, rules, around.environment) {
            Ok(spec) => expand(spec, part, &mut addresses.found),
            Err(AddressError::NotSupported { .. }) => {
                addresses.incomplete = true;
                report.not_yet(word.span, &format!("{name} {part}"), place);
            }
            Err(error) => {
                addresses.incomplete = true;
                let mut diagnostic = Diagnostic::alert(word.span, format!("'{name}' : {error}"));
                diagnostic.hint = error.hint().map(str::to_owned);
                report.push(diagnostic);
            }
        }
    }
    if addresses.found.len() > MAX_SOCKETS {
        report.alert(word.span, format!("'{name}' : more than {MAX_SOCKETS} sockets in '{}'", word.text));
        addresses.found.clear();
    }
    addresses
}

fn expand(spec: AddressSpec, text: &str, found: &mut Vec<(AddressSpec, String)>) {
    let AddressSpec::Inet { host, family, port: PortSpec::Range(low, high), kind, multipath } = spec else {
        found.push((spec, text.to_owned()));
        return;
    };
    for port in low..=high {
        let spec = AddressSpec::Inet { host: host.clone(), family, port: PortSpec::Exact(port), kind, multipath };
        found.push((spec, text.to_owned()));
    }
}

/// Options that were not applied.
#[derive(Default)]
struct Unread {
    not_yet: Vec<(&'static str, Span)>,
    tuning: Vec<(&'static str, Span)>,
    unknown: Vec<(String, Span, Option<&'static str>)>,
}

fn read_options(bind: &mut BindContext<'_>, line: &Line, first: usize) -> Unread {
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
        at += length;
        if bind.only.is_some_and(|only| !only.contains(&row.name)) {
            bind.error(word.span, format!("'{}' is not an option of datagrams.", word.text));
            continue;
        }
        match row.status {
            Status::Supported(parse) | Status::Group(parse) => parse(bind, word, argument),
            Status::NotYet => unread.not_yet.push((row.name, word.span)),
            Status::Tuning => unread.tuning.push((row.name, word.span)),
            Status::Removed(sentence) | Status::Refused(sentence) => {
                let text = sentence.replace("%1", argument.map_or("", |word| &word.text));
                bind.error(word.span, text);
            }
        }
    }
    unread
}

/// Counts the words up to the next known option.
fn count_unknown(words: &[Word]) -> usize {
    words.iter().take_while(|word| !rows(FAMILIES).any(|row| row.is(&word.text))).count()
}

/// Start and end of messages about the options of a line: HAProxy has a form for each kind of line.
struct Head {
    /// Text before the sentence about an option.
    option: String,
    /// Text before the sentence about a word that is not an option.
    unknown: String,
    /// Text after the sentence about an option.
    end: &'static str,
}

impl Head {
    /// Returns the text before a sentence of Weir's own: without the quote that HAProxy puts around some of its
    /// sentences.
    fn own(&self) -> &str {
        self.option.trim_end_matches('\'')
    }
}

fn report(head: &Head, errors: Vec<(Span, String)>, unread: &Unread, report: &mut Report<'_>) {
    for (span, message) in errors {
        report.alert(span, format!("{}{message}{}", head.option, head.end));
    }
    for (word, span, known) in &unread.unknown {
        let mut message = format!("{}unknown keyword '{word}'{}", head.unknown, did_you_mean(*known));
        if known.is_none() {
            message.push('.');
        }
        report.push(Diagnostic::alert(*span, message));
    }
    let names = |list: &[(&'static str, Span)]| {
        let names: Vec<&str> = list.iter().map(|row| row.0).collect();
        (quoted_list(&names), if names.len() == 1 { "is" } else { "are" })
    };
    if let Some((_, span)) = unread.not_yet.first() {
        let (names, verb) = names(&unread.not_yet);
        report.alert(*span, format!("{}{names} {verb} not supported yet by Weir.", head.own()));
    }
    if let Some((_, span)) = unread.tuning.first() {
        let (names, verb) = names(&unread.tuning);
        report.diag(*span, format!("{}{names} {verb} accepted without effect in Weir.", head.own()));
    }
}

/// Reads a line that opens sockets of the process itself, such as `stats socket`: its name has `words` words, and
/// HAProxy quotes its sentences about options. `earlier` contains the addresses of the lines before it.
pub(crate) fn read_global(
    line: &Line,
    name: &str,
    words: usize,
    earlier: &[BindSpec],
    around: ReadContext<'_>,
    out: &mut Report<'_>,
) -> Vec<BindSpec> {
    let Some(word) = line.words.get(words) else { return Vec::new() };
    let addresses = read_addresses(word, name, "section 'global'", &AddressRules::BIND, around, out);
    let mut draft = BindDraft::default();
    let mut bind = BindContext {
        draft: &mut draft,
        sockets: addresses.found.len(),
        is_reverse: false,
        around,
        earlier,
        only: None,
        errors: Vec::new(),
    };
    let unread = read_options(&mut bind, line, words + 1);
    let errors = bind.errors;
    let head = Head { option: format!("'{name}' : '"), unknown: format!("'{name}' : "), end: "'" };
    report(&head, errors, &unread, out);
    let span = line.whole();
    addresses.found.into_iter().map(|(address, text)| draft.clone().at(span, address, text)).collect()
}
