//! Performance tuning (section 3.2).

use super::machine::{evaluation_time, max_rules_at_once};
use super::percentages::{glitches_usage, streams_elasticity};
use super::{GlobalContext, GlobalKeyword, removed, supported, tuning};
use crate::diagnostic::{Diagnostic, Form, Severity};
use crate::document::{Line, Word};
use crate::keyword::DEFAULT_BUFSIZE;
use crate::keyword::argument::lenient;
use crate::spec::{MultiQueue, PurgeSpec, ShardsSpec};
use crate::units;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("tune.bufsize", "<size>", "Size of a buffer; the headers of a message must fit into one.", bufsize),
    supported("tune.bufsize.large", "<size>", "Size of a buffer for a body that a rule waits for.", large_bufsize),
    supported("tune.maxrewrite", "<number>", "Space reserved in a buffer for header rewriting.", maxrewrite),
    supported("tune.http.maxhdr", "<number>", "Maximum number of header fields of a message.", http_maxhdr),
    supported("tune.http.logurilen", "<number>", "Maximum length of the request line in logs.", http_logurilen),
    supported("tune.http.cookielen", "<number>", "Maximum length of captured cookies.", http_cookielen),
    supported(
        "tune.max-rules-at-once",
        "<number>",
        "Maximum number of content rules evaluated in a row before other connections are served; 0: no limit.",
        max_rules_at_once,
    ),
    supported(
        "tune.eval.max-time",
        "<time>",
        "Weir's own: maximum processor time of the rules and expressions of a request, which then ends with an \
         internal error.",
        evaluation_time,
    ),
    supported("tune.maxaccept", "<number>", "Limit of connections accepted in a row; -1: none.", maxaccept),
    supported("tune.peers.max-updates-at-once", "<number>", "Limit of updates sent to a peer in a row.", peers_updates),
    supported("tune.maxpollevents", "<number>", "Maximum number of events per poll.", maxpollevents),
    supported(
        "tune.idle-pool.shared",
        "{ full | on | off }",
        "Whether threads share their idle server connections.",
        idle_pool_shared,
    ),
    supported(
        "tune.pool-low-fd-ratio",
        "<percent>",
        "Share of file descriptors, in percent, above which idle connections of other threads are reused first.",
        pool_low_fd_ratio,
    ),
    supported(
        "tune.pool-high-fd-ratio",
        "<percent>",
        "Share of file descriptors, in percent, above which idle connections are closed.",
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
        "Kernel receive buffer of datagram sockets towards servers; Weir receives only DNS responses on such sockets.",
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
        "Kernel send buffer of datagram sockets towards servers, such as those for logs.",
        sndbuf_backend,
    ),
    supported("tune.sndbuf.frontend", "<size>", "Kernel send buffer of each QUIC listening socket.", sndbuf_frontend),
    supported(
        "tune.listener.default-shards",
        "{ by-process | by-thread | by-group }",
        "Default number of sockets for each listening address.",
        default_shards,
    ),
    supported(
        "tune.listener.multi-queue",
        "{ on | fair | off }",
        "How accepted connections are distributed to threads.",
        multi_queue,
    ),
    supported(
        "tune.notsent-lowat.client",
        "<size>",
        "Limit of unsent bytes in the kernel for a client.",
        unsent_client,
    ),
    supported(
        "tune.notsent-lowat.server",
        "<size>",
        "Limit of unsent bytes in the kernel for a server.",
        unsent_server,
    ),
    supported("tune.cli.max-payload-size", "<size>", "Maximum payload of a runtime API command.", max_payload),
    supported(
        "tune.defaults.purge",
        "[{ all | none | <element>[,...] }]",
        "Which defaults are dropped after start-up, so that backends and servers added later cannot use them.",
        purge,
    ),
    supported(
        "tune.glitches.kill.cpu-usage",
        "<number>",
        "Processor usage, in percent, from which connections with too many glitches are closed.",
        glitches_usage,
    ),
    tuning(
        "tune.renice.startup",
        "<number>",
        "Scheduling priority at start-up; Weir reads its configuration within milliseconds.",
    ),
    supported(
        "tune.stick-counters",
        "<number>",
        "Number of stick counters that can be tracked at once.",
        stick_counters,
    ),
    supported(
        "tune.streams-elasticity",
        "<number>",
        "Number of streams of multiplexed connections, relative to maxconn.",
        streams_elasticity,
    ),
    supported("tune.vars.check-max-size", "<size>", "Maximum memory of the variables of a health check.", vars_size),
    supported("tune.vars.global-max-size", "<size>", "Maximum memory of all variables.", vars_size),
    supported(
        "tune.vars.proc-max-size",
        "<size>",
        "Maximum memory of process-wide variables, including all other scopes.",
        vars_size,
    ),
    supported(
        "tune.vars.reqres-max-size",
        "<size>",
        "Maximum memory of the variables of a request or a response.",
        vars_size,
    ),
    supported(
        "tune.vars.sess-max-size",
        "<size>",
        "Maximum memory of the variables of a session, including its transaction.",
        vars_size,
    ),
    supported(
        "tune.vars.txn-max-size",
        "<size>",
        "Maximum memory of the variables of a transaction, including its request and response.",
        vars_size,
    ),
    tuning(
        "tune.applet.zero-copy-forwarding",
        "{ on | off }",
        "Zero-copy forwarding from internal services; Weir has no such switch.",
    ),
    tuning(
        "tune.buffers.limit",
        "<number>",
        "Maximum number of buffers of the process; Weir bounds its memory by connections.",
    ),
    tuning(
        "tune.buffers.reserve",
        "<number>",
        "Buffers reserved for memory shortage; Weir bounds its buffers beforehand.",
    ),
    tuning("tune.bufsize.small", "<size>", "Size of small buffers; chosen by Weir."),
    tuning("tune.disable-fast-forward", "", "Disables fast forwarding between connections; Weir has no such switch."),
    tuning(
        "tune.disable-zero-copy-forwarding",
        "",
        "Disables zero-copy forwarding between connections; Weir has no such switch.",
    ),
    tuning(
        "tune.epoll.mask-events",
        "<event>[,...]",
        "Epoll events to ignore, a workaround for kernel bugs; Weir tries sockets whatever the kernel reports.",
    ),
    tuning("tune.events.max-events-at-once", "<number>", "Internal events handled in a row; Weir has no such events."),
    tuning("tune.fail-alloc", "<percent>", "Rate of failing memory allocations, for developers; Weir has none."),
    tuning("tune.fd.edge-triggered", "{ on | off }", "Edge-triggered polling; always on in Weir."),
    tuning(
        "tune.fd.tables",
        "{ shared | per-thread-group }",
        "Layout of the tables of file descriptors; Weir uses the kernel's.",
    ),
    tuning("tune.h1.zero-copy-fwd-recv", "{ on | off }", "Zero-copy reception over HTTP/1; Weir has no such switch."),
    tuning("tune.h1.zero-copy-fwd-send", "{ on | off }", "Zero-copy sending over HTTP/1; Weir has no such switch."),
    tuning("tune.h2.zero-copy-fwd-send", "{ on | off }", "Zero-copy sending over HTTP/2; Weir has no such switch."),
    tuning(
        "tune.idletimer",
        "<time>",
        "Pause after which a stream counts as idle when buffer sizes are chosen; Weir uses the amount of data to send.",
    ),
    tuning(
        "tune.max-checks-per-thread",
        "<number>",
        "Maximum number of concurrent health checks of a thread; Weir assigns checks to threads evenly and never moves them.",
    ),
    tuning("tune.memory.hot-size", "<number>", "Per-thread memory cache; Weir's threads share no buffers."),
    tuning(
        "tune.pattern.cache-size",
        "<number>",
        "Size of the cache of pattern lookups; Weir has none, since it matches all patterns of a list at once.",
    ),
    tuning(
        "tune.pt.zero-copy-forwarding",
        "{ on | off }",
        "Zero-copy forwarding in TCP mode; Weir has no such switch.",
    ),
    tuning(
        "tune.recv_enough",
        "<size>",
        "Number of received bytes after which reading stops; Weir reads until the kernel has no more data.",
    ),
    tuning("tune.ring.queues", "<number>", "Number of write queues of rings; chosen by Weir."),
    tuning(
        "tune.sched.low-latency",
        "{ on | off }",
        "Low-latency scheduling; always on in Weir: each task runs once before the next poll for events.",
    ),
    tuning(
        "tune.takeover-other-tg-connections",
        "<value>",
        "Whether idle connections of other thread groups are reused; Weir's groups share all connections.",
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

fn sndbuf_frontend(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.tune.sndbuf_frontend = size_once(context, line, context.spec.tune.sndbuf_frontend);
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
