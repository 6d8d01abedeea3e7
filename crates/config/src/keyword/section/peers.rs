//! Instances that share stick tables (section 11.2). Must never resolve a peer, and never compare tables.

use super::{SectionContext, SectionKeyword, supported};
use crate::address::{self, AddressError, AddressRules};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::{Line, Word};
use crate::keyword::bind::{self, BindDraft};
use crate::keyword::server::{self, PeerOptions, ServerDraft};
use crate::keyword::{is_name_character, log_line, stick_table};
use crate::span::Spanned;
use crate::spec::{AddressSpec, PeerSpec, PeerTableSpec, PeersSpec, PortSpec, SocketKind};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("bind", "<address> [<option>...]", "Listening address of this instance.", bind_line),
    supported("default-bind", "<option>...", "Options of the listening address.", default_bind),
    supported("default-server", "<option>...", "Options of the peers.", default_server),
    supported("disabled", "", "Disables the section.", disabled),
    supported("enabled", "", "Undoes \"disabled\".", enabled),
    supported("log", "{ global | <target> ... }", "Log target.", log),
    supported("peer", "<name> [<address>] [<option>...]", "A peer.", peer),
    supported("server", "<name> [<address>] [<option>...]", "A peer, with the options of a server.", peer),
    supported("shards", "<number>", "Number of shards over which keys are distributed.", shards),
    supported("table", "<name> type <type> size <size> [<option>...]", "A shared stick table.", table),
];

/// Settings of the open section that are not part of a specification.
#[derive(Default)]
pub(crate) struct Drafts {
    bind: BindDraft,
    server: ServerDraft,
    bound: Option<crate::span::Span>,
    /// The section has a `peer` line.
    has_peer_line: bool,
}

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    if context.report.too_many(line, 2, "peers") {
        return false;
    }
    let name = line.text(1);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in 'peers' name '{name}'.");
        context.report.alert(line.span(1), message);
        return false;
    }
    if let Some(other) = context.content.peers.iter().find(|other| other.name.value == name) {
        let place = context.around.place(other.span);
        let message = format!("peers section '{name}' has the same name as another peers section declared at {place}.");
        context.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ConfigLateParsing));
        return false;
    }
    context.content.peers.push(PeersSpec {
        span: line.whole(),
        name: Spanned::new(name.to_owned(), line.span(1)),
        disabled: false,
        shards: 0,
        local_name: context.around.local_peer.to_owned(),
        local: None,
        bind: None,
        local_tls: None,
        peers: Vec::new(),
        tables: Vec::new(),
        logs_globally: false,
        logs: Vec::new(),
    });
    true
}

/// Returns the open section.
fn section<'a>(context: &'a mut SectionContext<'_>) -> Option<&'a mut PeersSpec> {
    context.content.peers.last_mut()
}

/// Reports the combination of `peer` and `bind` lines.
fn mixes(context: &mut SectionContext<'_>, line: &Line, mixes: bool) -> bool {
    if mixes {
        context.report.alert(line.span(0), "mixing \"peer\" and \"bind\" line is forbidden");
    }
    mixes
}

fn bind_line(context: &mut SectionContext<'_>, line: &Line) {
    let has_peer_line = context.drafts.has_peer_line;
    if mixes(context, line, has_peer_line) {
        return;
    }
    let only = "Only one listener per \"peers\" section is authorized. Multiple listening addresses or port range are \
                not supported.";
    if let Some(first) = context.drafts.bound {
        let place = context.around.place(first);
        let message =
            format!("One listener per \"peers\" section is authorized but another is already configured at [{place}].");
        return context.report.alert(line.span(0), message);
    }
    context.drafts.bound = Some(line.whole());
    let mut found = bind::read_peers(line, &context.drafts.bind, context.around, &mut context.report);
    if found.len() > 1 {
        return context.report.alert(line.span(1), only);
    }
    if let Some(section) = context.content.peers.last_mut() {
        section.bind = found.pop();
    }
}

fn default_bind(context: &mut SectionContext<'_>, line: &Line) {
    bind::read_peers_defaults(line, &mut context.drafts.bind, context.around, &mut context.report);
}

fn default_server(context: &mut SectionContext<'_>, line: &Line) {
    let drafts = &mut context.drafts;
    server::read_peer_defaults(line, &mut drafts.server, context.around.environment, &mut context.report);
}

fn disabled(context: &mut SectionContext<'_>, _: &Line) {
    if let Some(section) = section(context) {
        section.disabled = true;
    }
}

fn enabled(context: &mut SectionContext<'_>, _: &Line) {
    if let Some(section) = section(context) {
        section.disabled = false;
    }
}

fn log(context: &mut SectionContext<'_>, line: &Line) {
    let asker = log_line::Asker {
        global: false,
        place: "section 'peers'",
        environment: context.around.environment,
        negated: false,
    };
    let entry = log_line::read(line, &asker, &mut context.report);
    if let (Some(entry), Some(section)) = (entry, section(context)) {
        match entry {
            log_line::Entry::Own(log) => section.logs.push(*log),
            log_line::Entry::Global(_) => section.logs_globally = true,
            log_line::Entry::Clear => {}
        }
    }
}

fn shards(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        return context.report.alert(line.span(1), "'shards' : missing value");
    };
    let problem = match word.text.parse::<i64>() {
        Ok(number) if number > 0 => {
            if let Some(section) = section(context) {
                section.shards = u32::try_from(number).unwrap_or(u32::MAX);
            }
            return;
        }
        Ok(_) => "expects a strictly positive integer argument".to_owned(),
        Err(_) => format!("expects an integer argument, found '{}'", word.text),
    };
    context.report.alert(word.span, format!("'shards' : {problem}"));
}

fn table(context: &mut SectionContext<'_>, line: &Line) {
    let name = line.text(1);
    let declared = context.content.peers.iter().last();
    let same = declared.and_then(|section| section.tables.iter().find(|other| other.name.value == name));
    if let (Some(section), Some(other)) = (declared, same) {
        let message = format!(
            "stick-table name '{name}' conflicts with table declared in peers '{}' at {}.",
            section.name.value,
            context.around.place(other.table.span)
        );
        return context.report.alert(line.span(1), message);
    }
    let Some(read) = stick_table::read(line, 2, &mut context.report) else { return };
    let name = Spanned::new(name.to_owned(), line.span(1));
    if let Some(section) = section(context) {
        section.tables.push(PeerTableSpec { name, table: read });
    }
}

/// `peer` and `server`.
fn peer(context: &mut SectionContext<'_>, line: &Line) {
    let is_peer_line = line.keyword() == "peer";
    if is_peer_line {
        let has_bind_line = context.drafts.bound.is_some();
        if mixes(context, line, has_bind_line) {
            return;
        }
        context.drafts.has_peer_line = true;
    }
    let (name, local) = (line.text(1), context.around.local_peer);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        return context
            .report
            .alert(line.span(1), format!("character '{bad}' is not permitted in peer name '{name}'."));
    }
    let Some(section) = context.content.peers.last_mut() else { return };
    if line.words.len() < 3 && (is_peer_line || name != local) {
        let message = format!("'{} {name}' : ignoring invalid peer definition (missing address:port)", line.keyword());
        if is_peer_line {
            context.report.warning(line.span(1), message);
        } else {
            context.report.diag(line.span(1), message);
        }
        return;
    }
    if name == local {
        if let Some(other) = section.local {
            let place = context.around.place(other);
            let message =
                format!("'{} {name}' : local peer name already referenced at {place}. {name}", line.keyword());
            return context.report.alert(line.span(1), message);
        }
        section.local = Some(line.whole());
        this_instance(context, line);
    } else {
        other_instance(context, line);
    }
}

/// Returns the start of messages about a `peer` or `server` line: the line's proxy is named after this instance.
fn head(context: &SectionContext<'_>, name: &str) -> String {
    let known = context.content.peers.last().filter(|section| section.local.is_some());
    format!("'server {}/{name}' : ", known.map_or("(null)", |section| &section.local_name))
}

/// Reads the options of a line, from the word at `first` on.
fn options(context: &mut SectionContext<'_>, line: &Line, first: usize, has_address: bool) -> PeerOptions {
    let head = head(context, line.text(1));
    let base = &context.drafts.server;
    let mut options =
        server::read_peer(line, first, has_address, &head, base, context.around.environment, &mut context.report);
    options.tls.common.folder = context.around.paths.folder(line.whole(), context.around.sources);
    if options.follows_or_checks {
        let message = format!(
            "'{} {}' : init_addr, resolvers, check and agent are ignored for peers.",
            line.keyword(),
            line.text(1)
        );
        context.report.warning(line.span(1), message);
    }
    options
}

fn this_instance(context: &mut SectionContext<'_>, line: &Line) {
    let name = line.text(1).to_owned();
    let options = if line.keyword() == "server" {
        options(context, line, 2, false)
    } else {
        if let Some(address) = line.words.get(2).and_then(|word| address(context, &name, word, true)) {
            let word = line.text(2).to_owned();
            let found = context.drafts.bind.clone().at(line.whole(), address, word);
            if let Some(section) = section(context) {
                section.bind = Some(found);
            }
        }
        options(context, line, 3, true)
    };
    if let Some(section) = context.content.peers.last_mut() {
        section.local_tls = options.tls.ssl.then(|| Box::new(options.tls));
    }
    if options.shard > 0 {
        let Some(section) = context.content.peers.last() else { return };
        let message = format!("Peers section '{}': shard ignored for '{name}' local peer", section.name.value);
        context.report.push(Diagnostic::warning(line.span(1), message).with_form(Form::Bare));
    }
}

fn other_instance(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = line.words.get(2) else { return };
    let name = Spanned::new(line.text(1).to_owned(), line.span(1));
    let same = |section: &&PeersSpec| section.peers.iter().any(|other| other.name.value == name.value);
    if let Some(section) = context.content.peers.last().filter(same) {
        let other = section.peers.iter().find(|other| other.name.value == name.value);
        let message = format!(
            "{}another server named '{}' was already defined at line {}, please use a distinct name.",
            head(context, &name.value),
            name.value,
            other.map_or(0, |other| other.span.line)
        );
        return context.report.placed(name.span, message);
    }
    let found = address(context, &name.value, word, false);
    let PeerOptions { shard, connecting, tls, .. } = options(context, line, 3, true);
    let tls = tls.ssl.then(|| Box::new(tls));
    let (Some(found), Some(section)) = (found, context.content.peers.last_mut()) else { return };
    let address = Spanned::new(found, word.span);
    let mut peer = PeerSpec { span: line.whole(), name, address, shard, connecting, tls };
    if section.shards > 0 && shard > section.shards {
        let message = format!(
            "'{} {}' : {shard} peer shard greater value than {} shards value is ignored.",
            line.keyword(),
            peer.name.value,
            section.shards
        );
        context.report.warning(line.span(1), message);
        peer.shard = 0;
    }
    section.peers.push(peer);
}

/// Parses the address of a peer, or of this instance.
fn address(context: &mut SectionContext<'_>, name: &str, word: &Word, is_local: bool) -> Option<AddressSpec> {
    let rules = AddressRules { port_required: true, port_offset: false, ..AddressRules::SERVER };
    let head = head(context, name);
    let error = match address::parse(&word.text, &rules, context.around.environment) {
        Ok(
            AddressSpec::Inet { kind: SocketKind::Datagram, .. }
            | AddressSpec::Unix { kind: SocketKind::Datagram, .. }
            | AddressSpec::Abstract { kind: SocketKind::Datagram, .. },
        ) => {
            context.report.alert(word.span, "unsupported transport for server address in 'peers' backend.");
            return None;
        }
        Ok(AddressSpec::Inet { port: PortSpec::None, .. }) => AddressError::MissingPort { text: word.text.clone() },
        Ok(found) => return Some(found),
        Err(AddressError::NotSupported { .. }) => {
            context.report.alert(word.span, format!("{head}'{}' is not supported yet by Weir.", word.text));
            return None;
        }
        Err(error) => error,
    };
    let mut diagnostic = Diagnostic::alert(word.span, format!("{head}{error}")).with_form(Form::Placed);
    diagnostic.hint = error.hint().map(str::to_owned);
    context.report.push(diagnostic);
    // HAProxy parses it a second time, as the address of a listener.
    if is_local && !matches!(error, AddressError::RangeNotPermitted { .. }) {
        context.report.alert(word.span, format!("'peer {name}' : {error}"));
    }
    None
}
