//! Performance tuning (section 3.2).

use super::http2::{glitches_usage, streams_elasticity};
use super::machine::{evaluation_time, max_rules_at_once};
use super::{GlobalContext, GlobalKeyword, removed, supported, tuning};
use crate::diagnostic::{Diagnostic, Form, Severity};
use crate::document::{Line, Word};
use crate::keyword::DEFAULT_BUFSIZE;
use crate::keyword::argument::lenient;
use crate::spec::{MultiQueue, PurgeSpec, ShardsSpec};
use crate::units;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("tune.bufsize", "<size>", "Size of a buffer; a head must fit into one.", bufsize),
    supported("tune.bufsize.large", "<size>", "Size of a buffer for a body that a rule waits for.", large_bufsize),
    supported("tune.maxrewrite", "<number>", "Bytes of a buffer kept free for rewriting headers.", maxrewrite),
    supported("tune.http.maxhdr", "<number>", "Header fields that a message may have.", http_maxhdr),
    supported("tune.http.logurilen", "<number>", "Bytes of a request line that a log line shows.", http_logurilen),
    supported("tune.http.cookielen", "<number>", "Longest captured cookie.", http_cookielen),
    supported(
        "tune.max-rules-at-once",
        "<number>",
        "Content rules evaluated in a row before other connections get their turn; 0 lifts the limit.",
        max_rules_at_once,
    ),
    supported(
        "tune.eval.max-time",
        "<time>",
        "Weir's own: processor time that the rules and expressions of one request may take before it ends with an \
         internal error.",
        evaluation_time,
    ),
    supported("tune.maxaccept", "<number>", "Connections accepted in a row; -1 lifts the limit.", maxaccept),
    supported("tune.peers.max-updates-at-once", "<number>", "Table updates sent to a peer in a row.", peers_updates),
    supported("tune.maxpollevents", "<number>", "Events fetched from the kernel at once.", maxpollevents),
    supported(
        "tune.idle-pool.shared",
        "{ full | on | off }",
        "Whether threads share their idle server connections.",
        idle_pool_shared,
    ),
    supported(
        "tune.pool-low-fd-ratio",
        "<percent>",
        "Share of descriptors in use from which idle connections of others are taken over first.",
        pool_low_fd_ratio,
    ),
    supported(
        "tune.pool-high-fd-ratio",
        "<percent>",
        "Share of descriptors in use from which idle connections are closed.",
        pool_high_fd_ratio,
    ),
    supported("tune.pipesize", "<size>", "Size of the pipes used for splicing.", pipesize),
    supported("tune.rcvbuf.client", "<size>", "Kernel receive buffer of client connections.", rcvbuf_client),
    supported("tune.rcvbuf.server", "<size>", "Kernel receive buffer of server connections.", rcvbuf_server),
    supported("tune.sndbuf.client", "<size>", "Kernel send buffer of client connections.", sndbuf_client),
    supported("tune.sndbuf.server", "<size>", "Kernel send buffer of server connections.", sndbuf_server),
    tuning(
        "tune.rcvbuf.backend",
        "<size>",
        "Kernel receive buffer of datagram sockets towards servers; Weir receives only answers of name servers on such sockets.",
    ),
    supported(
        "tune.rcvbuf.frontend",
        "<size>",
        "Kernel receive buffer of datagram listening sockets (`dgram-bind`).",
        rcvbuf_frontend,
    ),
    supported(
        "tune.sndbuf.backend",
        "<size>",
        "Kernel send buffer of datagram sockets, as log lines are sent on.",
        sndbuf_backend,
    ),
    tuning(
        "tune.sndbuf.frontend",
        "<size>",
        "Kernel send buffer of datagram listening sockets; Weir sends nothing on them.",
    ),
    supported(
        "tune.listener.default-shards",
        "{ by-process | by-thread | by-group }",
        "How many sockets an address gets that says nothing about it.",
        default_shards,
    ),
    supported(
        "tune.listener.multi-queue",
        "{ on | fair | off }",
        "How accepted connections reach the threads.",
        multi_queue,
    ),
    supported("tune.notsent-lowat.client", "<size>", "Unsent bytes the kernel may hold for a client.", unsent_client),
    supported("tune.notsent-lowat.server", "<size>", "Unsent bytes the kernel may hold for a server.", unsent_server),
    supported("tune.cli.max-payload-size", "<size>", "Largest payload of a runtime API command.", max_payload),
    supported(
        "tune.defaults.purge",
        "[{ all | none | <element>[,...] }]",
        "What backends and servers that are added later cannot start from.",
        purge,
    ),
    supported(
        "tune.glitches.kill.cpu-usage",
        "<number>",
        "Processor load from which connections with too many glitches are closed.",
        glitches_usage,
    ),
    tuning(
        "tune.renice.startup",
        "<number>",
        "Scheduling priority while starting; Weir has read its configuration within milliseconds.",
    ),
    supported(
        "tune.stick-counters",
        "<number>",
        "Number of sticky counters that rules may track at once.",
        stick_counters,
    ),
    supported(
        "tune.streams-elasticity",
        "<number>",
        "How many streams multiplexed connections get, relative to maxconn.",
        streams_elasticity,
    ),
    supported("tune.vars.check-max-size", "<size>", "Memory for the variables of one health check.", vars_size),
    supported("tune.vars.global-max-size", "<size>", "Memory for all variables together.", vars_size),
    supported(
        "tune.vars.proc-max-size",
        "<size>",
        "Memory for process-wide variables, and all others with them.",
        vars_size,
    ),
    supported("tune.vars.reqres-max-size", "<size>", "Memory for the variables of one request or response.", vars_size),
    supported(
        "tune.vars.sess-max-size",
        "<size>",
        "Memory for the variables of one session, and of its transaction.",
        vars_size,
    ),
    supported(
        "tune.vars.txn-max-size",
        "<size>",
        "Memory for the variables of one transaction, its request and its response.",
        vars_size,
    ),
    tuning(
        "tune.applet.zero-copy-forwarding",
        "{ on | off }",
        "Whether internal services hand their buffers over instead of copying; Weir has one way.",
    ),
    tuning(
        "tune.buffers.limit",
        "<number>",
        "Number of buffers of the process; Weir bounds its memory by connections.",
    ),
    tuning(
        "tune.buffers.reserve",
        "<number>",
        "Buffers kept for times of memory shortage; Weir's are bounded beforehand.",
    ),
    tuning("tune.bufsize.small", "<size>", "Size of the small buffers; Weir chooses it itself."),
    tuning(
        "tune.disable-fast-forward",
        "",
        "Do not shorten the way of bytes between two connections; Weir has one way.",
    ),
    tuning(
        "tune.disable-zero-copy-forwarding",
        "",
        "Do not hand buffers over between two connections; Weir has one way.",
    ),
    tuning(
        "tune.epoll.mask-events",
        "<event>[,...]",
        "Kernel events to ignore, a way around kernel bugs; Weir tries a socket whatever the kernel says of it.",
    ),
    tuning("tune.events.max-events-at-once", "<number>", "Internal events handled in a row; Weir has no such events."),
    tuning("tune.fail-alloc", "<percent>", "Developers' switch that lets memory allocations fail; Weir has none."),
    tuning("tune.fd.edge-triggered", "{ on | off }", "Whether sockets are polled edge-triggered; Weir's always are."),
    tuning(
        "tune.fd.tables",
        "{ shared | per-thread-group }",
        "Layout of the descriptor tables; Weir has the kernel's own.",
    ),
    tuning("tune.h1.zero-copy-fwd-recv", "{ on | off }", "Whether HTTP/1 receives without copying; Weir has one way."),
    tuning("tune.h1.zero-copy-fwd-send", "{ on | off }", "Whether HTTP/1 sends without copying; Weir has one way."),
    tuning("tune.h2.zero-copy-fwd-send", "{ on | off }", "Whether HTTP/2 sends without copying; Weir has one way."),
    tuning(
        "tune.idletimer",
        "<time>",
        "Pause after which a stream counts as idle when buffer sizes are chosen; Weir goes by what there is to send.",
    ),
    tuning(
        "tune.max-checks-per-thread",
        "<number>",
        "Health checks a thread runs at once before it hands some on; Weir assigns checks to threads evenly and never moves them.",
    ),
    tuning(
        "tune.memory.hot-size",
        "<number>",
        "Memory that each thread keeps for itself; Weir's threads share no buffers.",
    ),
    tuning(
        "tune.pattern.cache-size",
        "<number>",
        "Size of the cache of pattern matches; Weir keeps none and matches lists of patterns all at once.",
    ),
    tuning(
        "tune.pt.zero-copy-forwarding",
        "{ on | off }",
        "Whether TCP mode forwards without copying; Weir has one way.",
    ),
    tuning("tune.quic.zero-copy-fwd-send", "{ on | off }", "Whether QUIC sends without copying; Weir has one way."),
    tuning(
        "tune.recv_enough",
        "<size>",
        "Bytes received after which no second attempt is made; Weir reads until the kernel says that there is no more.",
    ),
    tuning("tune.ring.queues", "<number>", "Write queues in front of a ring; Weir chooses it itself."),
    tuning(
        "tune.sched.low-latency",
        "{ on | off }",
        "Whether tasks are run in smaller groups; Weir's always are: each runs once before events are looked for again.",
    ),
    tuning(
        "tune.takeover-other-tg-connections",
        "<value>",
        "Use of idle connections of other thread groups; Weir has no thread groups.",
    ),
    removed(
        "tune.chksize",
        "<number>",
        "Size of the buffers of health checks.",
        "option 'tune.chksize' is not supported any more (tune.bufsize is used instead).",
    ),
];

/// Returns the only argument of a keyword that takes a number.
fn argument<'a>(context: &mut GlobalContext<'_>, line: &'a Line) -> Option<&'a Word> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    let word = line.words.get(1);
    if word.is_none() {
        let what = if name == "tune.cli.max-payload-size" { "a size" } else { "an integer" };
        let stop = if matches!(name, "tune.bufsize" | "tune.maxaccept") { "" } else { "." };
        context.report.alert(line.span(1), format!("'{name}' expects {what} argument{stop}"));
    }
    word
}

/// Parses a size in bytes; HAProxy stores it in 32 bits.
pub(super) fn size(context: &mut GlobalContext<'_>, line: &Line) -> Option<u32> {
    let word = argument(context, line)?;
    match units::size(&word.text, u64::from(i32::MAX.unsigned_abs())) {
        Ok(value) => u32::try_from(value).ok(),
        Err(error) => {
            let hint = error.hint(u64::from(i32::MAX.unsigned_abs()));
            let message = error.message(line.keyword());
            context.report.push(Diagnostic::alert(word.span, message).with_hint(hint));
            None
        }
    }
}

/// Parses a size that may be written once; HAProxy warns about a repetition and keeps the first value.
fn size_once(context: &mut GlobalContext<'_>, line: &Line, known: Option<u32>) -> Option<u32> {
    if known.is_some() {
        context.report.warning(line.span(0), format!("'{}' already specified. Continuing.", line.keyword()));
        return known;
    }
    size(context, line).filter(|&value| value > 0)
}

/// A missing argument means `proxies`; the last line applies.
fn purge(context: &mut GlobalContext<'_>, line: &Line) {
    let keyword = line.keyword();
    if context.report.too_many(line, 2, keyword) {
        return;
    }
    let Some(word) = line.words.get(1) else {
        context.spec.tune.purge = PurgeSpec { sections: true, servers: false };
        return;
    };
    let elements: Vec<&str> = word.text.split(',').collect();
    let mut purge = PurgeSpec::default();
    for element in &elements {
        match *element {
            "all" | "none" if elements.len() > 1 => {
                return context.report.alert(word.span, format!("'{keyword}' value '{element}' is exclusive."));
            }
            "all" => purge = PurgeSpec { sections: true, servers: true },
            "none" => {}
            "proxies" => purge.sections = true,
            "servers" => purge.servers = true,
            other => return context.report.alert(word.span, format!("'{keyword}' unknown directive '{other}'.")),
        }
    }
    context.spec.tune.purge = purge;
}

fn max_payload(context: &mut GlobalContext<'_>, line: &Line) {
    let size = size(context, line);
    context.spec.runtime.max_payload = size.or(context.spec.runtime.max_payload);
}

/// Parses a number of bytes without a unit; 0 means no limit.
fn vars_size(context: &mut GlobalContext<'_>, line: &Line) {
    let keyword = line.keyword();
    let size = match line.words.get(1) {
        None => {
            context.report.diag(line.span(0), format!("'{keyword}' without a number sets no limit."));
            0
        }
        Some(word) => {
            let Ok(size) = word.text.parse::<i64>() else {
                let message = format!("{keyword}: '{}' is an invalid size", word.text);
                let hint = "write a number of bytes, without a unit";
                return context.report.push(Diagnostic::alert(word.span, message).with_hint(hint));
            };
            size
        }
    };
    let size = u64::try_from(size).ok().filter(|size| *size > 0);
    let vars = &mut context.spec.tune.variables;
    match keyword.split('.').nth(2).and_then(|name| name.split('-').next()) {
        Some("check") => vars.check = size,
        Some("global") => vars.global = size,
        Some("proc") => vars.process = size,
        Some("reqres") => vars.message = size,
        Some("sess") => vars.session = size,
        _ => vars.transaction = size,
    }
}

fn unsent_client(context: &mut GlobalContext<'_>, line: &Line) {
    let size = size(context, line);
    context.spec.machine.unsent_client = size.or(context.spec.machine.unsent_client);
}

fn unsent_server(context: &mut GlobalContext<'_>, line: &Line) {
    let size = size(context, line);
    context.spec.machine.unsent_server = size.or(context.spec.machine.unsent_server);
}

fn bufsize(context: &mut GlobalContext<'_>, line: &Line) {
    match size(context, line) {
        Some(0) => context.report.alert(line.span(1), "'tune.bufsize' expects a positive integer argument."),
        Some(value) => context.spec.tune.bufsize = Some(value),
        None => {}
    }
}

fn large_bufsize(context: &mut GlobalContext<'_>, line: &Line) {
    match size(context, line) {
        Some(0) => {
            context.report.alert(line.span(1), "'tune.bufsize.large' expects a positive integer argument.\n");
        }
        Some(value) => context.spec.tune.large_bufsize = Some(value),
        None => {}
    }
}

/// Maximum of `tune.bufsize`, in bytes; HAProxy's limit too.
const LARGEST_BUFSIZE: u32 = 256 << 20;

/// Minimum of `tune.bufsize`, in bytes: the longest built-in error page fits, with free space for rewriting.
const SMALLEST_BUFSIZE: u32 = 352;

/// Checks `tune.bufsize` after the whole section has been read.
pub(super) fn check_bufsize(context: &mut GlobalContext<'_>) {
    check_large_bufsize(context);
    let Some(bufsize) = context.spec.tune.bufsize else { return };
    let message = if bufsize >= LARGEST_BUFSIZE {
        format!("global.tune.bufsize must be below 256 MB when HTTP is in use (current value = {bufsize}).")
    } else if bufsize.next_multiple_of(16) < SMALLEST_BUFSIZE {
        format!("global.tune.bufsize must be at least {SMALLEST_BUFSIZE} (current value = {bufsize}).")
    } else {
        return;
    };
    context.report.push(Diagnostic::general(Severity::Alert, message).with_form(Form::Bare));
}

/// Checks that large buffers are larger than ordinary ones.
fn check_large_bufsize(context: &mut GlobalContext<'_>) {
    let tune = &mut context.spec.tune;
    let Some(large) = tune.large_bufsize else { return };
    let bufsize = tune.bufsize.unwrap_or(DEFAULT_BUFSIZE);
    let (severity, message) = if large >= LARGEST_BUFSIZE {
        let message = "global.tune.bufsize_large must be below 256 MB when HTTP is in use (current value =";
        (Severity::Alert, format!("{message} {large})."))
    } else if large < bufsize {
        tune.large_bufsize = None;
        let message = format!(
            "tune.bufsize.large ({large}) is lower than tune.bufsize ({bufsize}). large buffers support is disabled. \
             Please fix either value to remove this warning."
        );
        (Severity::Warning, message)
    } else {
        return;
    };
    context.report.push(Diagnostic::general(severity, message).with_form(Form::Bare));
}

fn maxrewrite(context: &mut GlobalContext<'_>, line: &Line) {
    let Some(word) = argument(context, line) else { return };
    match u32::try_from(lenient(word, "tune.maxrewrite", &mut context.report)) {
        Ok(value) => context.spec.tune.maxrewrite = Some(value),
        Err(_) => context.report.alert(word.span, "'tune.maxrewrite' expects a positive integer argument."),
    }
}

fn stick_counters(context: &mut GlobalContext<'_>, line: &Line) {
    let text = line.text(1);
    let message = match text.parse::<i64>() {
        Ok(value @ 0..=100) => {
            context.spec.tune.stick_counters = u32::try_from(value).ok();
            return;
        }
        Ok(value) => format!("the number of stick-counters must be between 1 and 100 (was {value})"),
        Err(_) => format!("'{text}' is an invalid number"),
    };
    context.report.alert(line.span(1), format!("tune.stick-counters: {message}"));
}

fn http_maxhdr(context: &mut GlobalContext<'_>, line: &Line) {
    let Some(word) = argument(context, line) else { return };
    match u32::try_from(lenient(word, "tune.http.maxhdr", &mut context.report)) {
        Ok(value @ 1..=32767) => context.spec.tune.http_maxhdr = Some(value),
        _ => {
            context.report.alert(word.span, "'tune.http.maxhdr' expects a numeric value between 1 and 32767");
        }
    }
}

fn http_logurilen(context: &mut GlobalContext<'_>, line: &Line) {
    let Some(word) = argument(context, line) else { return };
    let value = lenient(word, "tune.http.logurilen", &mut context.report);
    context.spec.tune.http_logurilen = u32::try_from(value).ok();
}

fn http_cookielen(context: &mut GlobalContext<'_>, line: &Line) {
    let Some(word) = argument(context, line) else { return };
    let value = lenient(word, "tune.http.cookielen", &mut context.report);
    context.spec.tune.http_cookielen = u32::try_from(value).ok();
}

fn maxaccept(context: &mut GlobalContext<'_>, line: &Line) {
    let Some(word) = argument(context, line) else { return };
    let value = lenient(word, "tune.maxaccept", &mut context.report);
    context.spec.tune.maxaccept = Some(i32::try_from(value.max(-1)).unwrap_or(i32::MAX));
}

fn peers_updates(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "tune.peers.max-updates-at-once") {
        return;
    }
    match line.text(1).parse::<u32>() {
        Ok(number @ 1..) => context.spec.tune.peers_max_updates = Some(number),
        _ => {
            let message = "'tune.peers.max-updates-at-once' expects an integer argument greater than 0.";
            context.report.alert(line.span(1), message);
        }
    }
}

/// Maximum number of events of one poll.
const MOST_EVENTS: i64 = 1_000_000;

fn maxpollevents(context: &mut GlobalContext<'_>, line: &Line) {
    if context.spec.tune.maxpollevents.is_some() {
        context.report.warning(line.span(0), "'tune.maxpollevents' already specified. Continuing.");
        return;
    }
    let Some(word) = argument(context, line) else { return };
    let value = lenient(word, "tune.maxpollevents", &mut context.report);
    if value > MOST_EVENTS {
        let message = format!("'tune.maxpollevents' expects an integer value lower than or equal to {MOST_EVENTS}.");
        return context.report.alert(word.span, message);
    }
    context.spec.tune.maxpollevents = u32::try_from(value).ok().filter(|&value| value > 0);
}

fn idle_pool_shared(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "tune.idle-pool.shared") {
        return;
    }
    match line.text(1) {
        "on" | "full" => context.spec.tune.idle_pool_shared = Some(true),
        "off" => context.spec.tune.idle_pool_shared = Some(false),
        other => {
            let message = format!("'tune.idle-pool.shared' expects 'full', 'on' or 'off' but got '{other}'.");
            context.report.alert(line.span(1), message);
        }
    }
}

fn percentage(context: &mut GlobalContext<'_>, line: &Line) -> Option<u32> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    let value = line.words.get(1).map(|word| lenient(word, name, &mut context.report));
    let value = value.and_then(|value| u32::try_from(value).ok()).filter(|&value| value <= 100);
    if value.is_none() {
        context.report.alert(line.span(1), format!("'{name}' expects an integer argument between 0 and 100."));
    }
    value
}

fn pool_low_fd_ratio(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.pool_low_fd_ratio = percentage(context, line).or(context.spec.tune.pool_low_fd_ratio);
}

fn pool_high_fd_ratio(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.pool_high_fd_ratio = percentage(context, line).or(context.spec.tune.pool_high_fd_ratio);
}

fn pipesize(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.pipesize = size(context, line).filter(|&value| value > 0).or(context.spec.tune.pipesize);
}

fn rcvbuf_client(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.rcvbuf_client = size_once(context, line, context.spec.tune.rcvbuf_client);
}

fn rcvbuf_server(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.rcvbuf_server = size_once(context, line, context.spec.tune.rcvbuf_server);
}

fn rcvbuf_frontend(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.rcvbuf_frontend = size_once(context, line, context.spec.tune.rcvbuf_frontend);
}

fn sndbuf_client(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.sndbuf_client = size_once(context, line, context.spec.tune.sndbuf_client);
}

fn sndbuf_backend(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.sndbuf_backend = size_once(context, line, context.spec.tune.sndbuf_backend);
}

fn sndbuf_server(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.sndbuf_server = size_once(context, line, context.spec.tune.sndbuf_server);
}

/// Parses the only argument of a keyword that takes one of three words.
fn choice<T: Copy>(context: &mut GlobalContext<'_>, line: &Line, choices: [(&str, T); 3]) -> Option<T> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    let text = line.text(1);
    let found = choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    if found.is_none() {
        let [first, second, third] = choices.map(|(word, _)| word);
        let message = format!("'{name}' expects either '{first}', '{second}', or '{third}' but got '{text}'.");
        context.report.alert(line.span(1), message);
    }
    found
}

fn default_shards(context: &mut GlobalContext<'_>, line: &Line) {
    let choices =
        [("by-process", ShardsSpec::Number(1)), ("by-group", ShardsSpec::ByGroup), ("by-thread", ShardsSpec::ByThread)];
    if let Some(shards) = choice(context, line, choices) {
        context.spec.tune.listener.default_shards = Some(shards);
    }
}

fn multi_queue(context: &mut GlobalContext<'_>, line: &Line) {
    let choices = [("on", MultiQueue::On), ("fair", MultiQueue::Fair), ("off", MultiQueue::Off)];
    if let Some(multi_queue) = choice(context, line, choices) {
        context.spec.tune.listener.multi_queue = multi_queue;
    }
}
