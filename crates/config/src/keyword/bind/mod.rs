//! The `bind` line: addresses, then options by family (configuration manual, section 5.1). Must never open anything.

mod listening;
mod quic;
mod tls;

use super::Surroundings;
use super::argument::Arity;
use super::proxy::ProxyContext;
use super::report::{did_you_mean, quoted_list};
use super::table::{Family, Keyword, Status, rows};
use crate::address::{self, AddressError, AddressRules};
use crate::diagnostic::Diagnostic;
use crate::document::{Line, Word};
use crate::spec::{AddressSpec, BindSpec, PortSpec};
use crate::{span::Span, suggest};

/// What the options of a line say about each of its addresses.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct BindDraft {
    pub(crate) name: Option<String>,
    pub(crate) maxconn: Option<u32>,
    pub(crate) backlog: Option<u32>,
    pub(crate) defer_accept: bool,
    pub(crate) v6only: bool,
    pub(crate) v4v6: bool,
    pub(crate) shards: Option<u32>,
    pub(crate) id: Option<u32>,
    pub(crate) unix_mode: Option<u32>,
}

/// What a bind option works on.
pub(crate) struct BindContext<'a> {
    pub(crate) draft: &'a mut BindDraft,
    /// Addresses that the line opens.
    pub(crate) sockets: usize,
    pub(crate) around: Surroundings<'a>,
    /// Addresses of the proxy's earlier lines.
    pub(crate) earlier: &'a [BindSpec],
    /// Collects what is wrong, as HAProxy says it behind the name of the line.
    pub(crate) errors: Vec<(Span, String)>,
}

impl BindContext<'_> {
    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.errors.push((span, message.into()));
    }
}

/// Reads one option: its name and its arguments, fewer than its arity asks for at the end of a line.
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
    Family { title: "TLS", rows: tls::TABLE },
    Family { title: "QUIC", rows: quic::TABLE },
];

/// Ports of one line at most, so that a slip of the pen does not eat all memory.
const MAX_SOCKETS: usize = 65_536;

/// Reads a `bind` line into the proxy.
pub(crate) fn read(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        context
            .report
            .alert(line.span(1), "'bind' expects {<path>|[addr1]:port1[-end1]}{,[addr]:port[-end]}... as arguments.");
        return;
    };
    let addresses = read_addresses(context, word);
    let mut draft = BindDraft::default();
    let mut bind = BindContext {
        draft: &mut draft,
        sockets: addresses.len(),
        around: context.around,
        earlier: &context.draft.spec.binds,
        errors: Vec::new(),
    };
    let unread = read_options(&mut bind, line);
    let errors = bind.errors;
    report(context, line, errors, &unread);
    let span = line.whole();
    for (address, text) in addresses {
        let BindDraft { name, maxconn, backlog, defer_accept, v6only, v4v6, shards, id, unix_mode } = draft.clone();
        context.draft.spec.binds.push(BindSpec {
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
        });
    }
}

/// Every address of the list, each port of a range for itself.
fn read_addresses(context: &mut ProxyContext<'_>, word: &Word) -> Vec<(AddressSpec, String)> {
    let mut found = Vec::new();
    let list = word.text.strip_suffix(',').unwrap_or(&word.text);
    for (_, part) in address::split_list(list) {
        match address::parse(part, &AddressRules::BIND, context.around.environment) {
            Ok(spec) => expand(spec, part, &mut found),
            Err(error) => {
                context.draft.gaps.bind = true;
                refuse(context, word.span, part, &error);
            }
        }
    }
    if found.len() > MAX_SOCKETS {
        context.report.alert(word.span, format!("'bind' : more than {MAX_SOCKETS} sockets in '{}'", word.text));
        found.clear();
    }
    found
}

fn refuse(context: &mut ProxyContext<'_>, span: Span, part: &str, error: &AddressError) {
    if matches!(error, AddressError::NotSupported { .. }) {
        let place = context.holder.describe();
        context.report.not_yet(span, &format!("bind {part}"), &place);
        return;
    }
    let mut diagnostic = Diagnostic::alert(span, format!("'bind' : {error}"));
    diagnostic.hint = error.hint().map(str::to_owned);
    context.report.push(diagnostic);
}

fn expand(spec: AddressSpec, text: &str, found: &mut Vec<(AddressSpec, String)>) {
    let AddressSpec::Inet { host, family, port: PortSpec::Range(low, high), kind } = spec else {
        found.push((spec, text.to_owned()));
        return;
    };
    for port in low..=high {
        let spec = AddressSpec::Inet { host: host.clone(), family, port: PortSpec::Exact(port), kind };
        found.push((spec, text.to_owned()));
    }
}

/// Options that nothing was made of.
#[derive(Default)]
struct Unread {
    not_yet: Vec<(&'static str, Span)>,
    tuning: Vec<(&'static str, Span)>,
    unknown: Vec<(String, Span, Option<&'static str>)>,
}

fn read_options(bind: &mut BindContext<'_>, line: &Line) -> Unread {
    let mut unread = Unread::default();
    let mut at = 2;
    while let Some(word) = line.words.get(at) {
        at += 1;
        let Some(row) = rows(FAMILIES).find(|row| row.is(&word.text)) else {
            let known = suggest::nearest(&word.text, rows(FAMILIES).map(|row| row.name));
            unread.unknown.push((word.text.clone(), word.span, known));
            // What follows is taken for its arguments; guessing would only name innocent words.
            at += match known.and_then(|known| rows(FAMILIES).find(|row| row.name == known)) {
                Some(row) => row.extra.take(&line.words[at..]).1,
                None => count_unknown(&line.words[at..]),
            };
            continue;
        };
        let (argument, length) = row.extra.take(&line.words[at..]);
        at += length;
        match row.status {
            Status::Supported(parse) | Status::Group(parse) => parse(bind, word, argument),
            Status::NotYet => unread.not_yet.push((row.name, word.span)),
            Status::Tuning => unread.tuning.push((row.name, word.span)),
            Status::Removed(sentence) => {
                let text = sentence.replace("%1", argument.map_or("", |word| &word.text));
                bind.error(word.span, text);
            }
        }
    }
    unread
}

/// Words up to the next known option.
fn count_unknown(words: &[Word]) -> usize {
    words.iter().take_while(|word| !rows(FAMILIES).any(|row| row.is(&word.text))).count()
}

fn report(context: &mut ProxyContext<'_>, line: &Line, errors: Vec<(Span, String)>, unread: &Unread) {
    let head = format!("'bind {}' in section '{}'", line.text(1), context.holder.section.keyword());
    for (span, message) in errors {
        context.report.alert(span, format!("{head} : {message}"));
    }
    for (word, span, known) in &unread.unknown {
        let mut message = format!("{head}: unknown keyword '{word}'{}", did_you_mean(*known));
        if known.is_none() {
            message.push('.');
        }
        let mut diagnostic = Diagnostic::alert(*span, message);
        diagnostic.hint = known.map(|known| format!("write '{known}'"));
        context.report.push(diagnostic);
    }
    let names = |list: &[(&'static str, Span)]| {
        let names: Vec<&str> = list.iter().map(|row| row.0).collect();
        (quoted_list(&names), if names.len() == 1 { "is" } else { "are" })
    };
    if let Some((_, span)) = unread.not_yet.first() {
        let (names, verb) = names(&unread.not_yet);
        context.report.alert(*span, format!("{head} : {names} {verb} not supported yet by Weir."));
    }
    if let Some((_, span)) = unread.tuning.first() {
        let (names, verb) = names(&unread.tuning);
        context.report.diag(*span, format!("{head} : {names} {verb} accepted without effect in Weir."));
    }
}
