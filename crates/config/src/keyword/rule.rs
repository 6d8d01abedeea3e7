//! Actions of rules, by name and by the rule sets that accept them (configuration manual, sections 4.3 and 4.4). Rules
//! with a supported action are stored in the specification as words; the others are rejected by the name of their
//! action. Must never implement an action: the rows of `policy`'s actions do.

use super::argument::leading_number;
use super::proxy::ProxyContext;
use super::table::{Keyword, Status};
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::spec::{CaptureSlotSpec, RuleSpec};
use crate::suggest;

/// Rule sets that accept an action, as a bit mask.
pub type RuleSets = u8;

/// `http-request`.
pub const HTTP_REQUEST: RuleSets = 1;
/// `http-response`.
pub const HTTP_RESPONSE: RuleSets = 1 << 1;
/// `http-after-response`.
pub const HTTP_AFTER_RESPONSE: RuleSets = 1 << 2;
/// `tcp-request connection`.
pub const TCP_REQUEST_CONNECTION: RuleSets = 1 << 3;
/// `tcp-request session`.
pub const TCP_REQUEST_SESSION: RuleSets = 1 << 4;
/// `tcp-request content`.
pub const TCP_REQUEST_CONTENT: RuleSets = 1 << 5;
/// `tcp-response content`.
pub const TCP_RESPONSE_CONTENT: RuleSets = 1 << 6;
/// `quic-initial`.
pub const QUIC_INITIAL: RuleSets = 1 << 7;

/// The rule sets on requests and responses.
const MESSAGES: RuleSets = HTTP_REQUEST | HTTP_RESPONSE | TCP_REQUEST_CONTENT | TCP_RESPONSE_CONTENT;

/// The rule sets and their names.
pub const RULE_SETS: &[(RuleSets, &str)] = &[
    (HTTP_REQUEST, "http-request"),
    (HTTP_RESPONSE, "http-response"),
    (HTTP_AFTER_RESPONSE, "http-after-response"),
    (TCP_REQUEST_CONNECTION, "tcp-request connection"),
    (TCP_REQUEST_SESSION, "tcp-request session"),
    (TCP_REQUEST_CONTENT, "tcp-request content"),
    (TCP_RESPONSE_CONTENT, "tcp-response content"),
    (QUIC_INITIAL, "quic-initial"),
];

/// A row of the table. No action is parsed here: supported ones are compiled together with expressions.
pub(crate) type Action = Keyword<(), RuleSets>;

/// A row of a supported action.
const fn works(sets: RuleSets, name: &'static str, usage: &'static str, doc: &'static str) -> Action {
    Keyword::new(sets, name, usage, doc, Status::Supported(()))
}

/// A row of an action that is accepted without effect.
const fn tunes(sets: RuleSets, name: &'static str, usage: &'static str, doc: &'static str) -> Action {
    Keyword::new(sets, name, usage, doc, Status::Tuning)
}

/// Every action.
pub(crate) const TABLE: &[Action] = &[
    works(
        TCP_REQUEST_CONNECTION | TCP_REQUEST_SESSION | TCP_REQUEST_CONTENT | TCP_RESPONSE_CONTENT | QUIC_INITIAL,
        "accept",
        "",
        "Accepts the connection and stops the evaluation of rules.",
    ),
    works(HTTP_REQUEST | HTTP_RESPONSE, "add-acl", "(<file>) <key format>", "Adds a pattern to an ACL."),
    works(HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE, "add-header", "<name> <format>", "Adds a header field."),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE,
        "add-headers-bin",
        "<expression> [prefix <text>]",
        "Adds header fields from their binary form.",
    ),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE,
        "allow",
        "",
        "Accepts the message and stops the evaluation of rules.",
    ),
    works(
        TCP_REQUEST_SESSION,
        "attach-srv",
        "<server> [name <expression>]",
        "Attaches the connection to a server for reverse HTTP.",
    ),
    works(HTTP_REQUEST, "auth", "[realm <realm>]", "Requests HTTP authentication."),
    works(
        HTTP_REQUEST,
        "auth-request",
        "<backend> [<argument>...]",
        "Weir's own: asks a server whether the request is allowed.",
    ),
    works(HTTP_REQUEST, "cache-purge", "<cache>", "Weir's own: removes the cached responses of the request's URI."),
    works(HTTP_RESPONSE, "cache-store", "<cache>", "Stores the response in a cache."),
    works(HTTP_REQUEST, "cache-use", "<cache> [no-early-hints]", "Serves the response from a cache."),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE | TCP_REQUEST_CONTENT,
        "capture",
        "<sample> { len <length> | id <id> }",
        "Captures a sample for the log.",
    ),
    works(TCP_RESPONSE_CONTENT, "close", "", "Closes the connection to the server."),
    works(HTTP_REQUEST, "decompress-body", "[<argument>...]", "Weir's own: decompresses the request body."),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE,
        "del-acl",
        "(<file>) <key format>",
        "Removes a pattern from an ACL.",
    ),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE,
        "del-header",
        "<name> [-m <method>]",
        "Removes header fields.",
    ),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE,
        "del-headers-bin",
        "<expression> [-m <method>]",
        "Removes header fields named in binary form.",
    ),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE,
        "del-map",
        "(<file>) <key format>",
        "Removes an entry from a map.",
    ),
    works(HTTP_REQUEST | HTTP_RESPONSE, "deny", "[status <code>] [<argument>...]", "Refuses the message."),
    works(QUIC_INITIAL, "dgram-drop", "", "Drops the datagram."),
    works(HTTP_REQUEST, "disable-l7-retry", "", "Disables retries of this request."),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | HTTP_AFTER_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT
            | QUIC_INITIAL,
        "do-log",
        "[profile <name>]",
        "Writes a log line now.",
    ),
    works(
        HTTP_REQUEST | TCP_REQUEST_CONTENT,
        "do-resolve",
        "(<variable>,<resolvers>[,<option>...]) <expression>",
        "Resolves a name.",
    ),
    works(HTTP_REQUEST, "early-hint", "<name> <format>", "Sends 103 Early Hints."),
    works(TCP_REQUEST_CONNECTION, "expect-netscaler-cip", "layer4", "Expects NetScaler's client address header."),
    works(TCP_REQUEST_CONNECTION, "expect-proxy", "layer4", "Expects a PROXY header."),
    works(HTTP_REQUEST, "mirror", "<backend> [sample <percent>]", "Weir's own: copies requests to another backend."),
    works(HTTP_REQUEST, "normalize-uri", "<normalizer>", "Normalizes the URI."),
    works(HTTP_REQUEST | HTTP_RESPONSE, "pause", "{ <time> | <expression> }", "Pauses the processing of the message."),
    works(HTTP_REQUEST | HTTP_RESPONSE, "redirect", "<rule>", "Redirects the client."),
    works(
        HTTP_REQUEST
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT
            | QUIC_INITIAL,
        "reject",
        "",
        "Closes the connection without a response.",
    ),
    works(HTTP_REQUEST | HTTP_RESPONSE, "replace-body", "<match> <replacement>", "Weir's own: rewrites the body."),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE,
        "replace-header",
        "<name> <match> <replacement>",
        "Rewrites header fields.",
    ),
    works(HTTP_REQUEST, "replace-path", "<match> <replacement>", "Rewrites the path."),
    works(HTTP_REQUEST, "replace-pathq", "<match> <replacement>", "Rewrites path and query."),
    works(HTTP_REQUEST, "replace-uri", "<match> <replacement>", "Rewrites the URI."),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE,
        "replace-value",
        "<name> <match> <replacement>",
        "Rewrites comma separated values.",
    ),
    works(HTTP_REQUEST | HTTP_RESPONSE, "return", "[status <code>] [<argument>...]", "Returns a response."),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | HTTP_AFTER_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "sc-add-gpc",
        "(<index>,<counter>) { <number> | <expression> }",
        "Adds to a general purpose counter.",
    ),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | HTTP_AFTER_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "sc-inc-gpc",
        "(<index>,<counter>)",
        "Increments a general purpose counter.",
    ),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | HTTP_AFTER_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "sc-inc-gpc0",
        "(<counter>)",
        "Increments the first general purpose counter.",
    ),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | HTTP_AFTER_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "sc-inc-gpc1",
        "(<counter>)",
        "Increments the second general purpose counter.",
    ),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | HTTP_AFTER_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "sc-set-gpt",
        "(<index>,<counter>) { <number> | <expression> }",
        "Sets a general purpose tag.",
    ),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | HTTP_AFTER_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "sc-set-gpt0",
        "(<counter>) { <number> | <expression> }",
        "Sets the first general purpose tag.",
    ),
    works(QUIC_INITIAL, "send-retry", "", "Sends a Retry packet to validate the client's address."),
    works(MESSAGES | HTTP_AFTER_RESPONSE, "otel-group", "<filter> <group>", "Runs a group of `filter otel`."),
    works(MESSAGES, "send-spoe-group", "<engine> <group>", "Sends a group of messages to an SPOE agent."),
    works(
        MESSAGES,
        "set-bandwidth-limit",
        "<filter> [limit <value>] [period <value>]",
        "Limits the bandwidth of the stream.",
    ),
    works(
        HTTP_REQUEST | TCP_REQUEST_CONTENT,
        "set-bc-mark",
        "{ <mark> | <expression> }",
        "Marks packets towards the server.",
    ),
    works(
        HTTP_REQUEST | TCP_REQUEST_CONTENT,
        "set-bc-tos",
        "{ <tos> | <expression> }",
        "Sets the TOS or DSCP value of packets towards the server.",
    ),
    works(
        HTTP_REQUEST | TCP_REQUEST_CONNECTION | TCP_REQUEST_SESSION | TCP_REQUEST_CONTENT,
        "set-dst",
        "<expression>",
        "Changes the destination address.",
    ),
    works(
        HTTP_REQUEST | TCP_REQUEST_CONNECTION | TCP_REQUEST_SESSION | TCP_REQUEST_CONTENT,
        "set-dst-port",
        "<expression>",
        "Changes the destination port.",
    ),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "set-fc-mark",
        "{ <mark> | <expression> }",
        "Marks packets towards the client.",
    ),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "set-fc-tos",
        "{ <tos> | <expression> }",
        "Sets the TOS or DSCP value of packets towards the client.",
    ),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE,
        "set-header",
        "<name> <format>",
        "Replaces a header field.",
    ),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE,
        "set-headers-bin",
        "<expression> [prefix <text>]",
        "Replaces header fields from their binary form.",
    ),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE | TCP_REQUEST_CONTENT | TCP_RESPONSE_CONTENT,
        "set-log-level",
        "<level>",
        "Changes the level of the log line.",
    ),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE,
        "set-map",
        "(<file>) <key format> <value format>",
        "Sets an entry of a map.",
    ),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "set-mark",
        "{ <mark> | <expression> }",
        "Former name of set-fc-mark.",
    ),
    works(HTTP_REQUEST, "set-method", "<format>", "Changes the method."),
    tunes(
        HTTP_REQUEST | HTTP_RESPONSE | TCP_REQUEST_CONTENT | TCP_RESPONSE_CONTENT,
        "set-nice",
        "<number>",
        "Scheduling priority of the message's task; Weir's tasks have equal priority.",
    ),
    works(HTTP_REQUEST, "set-path", "<format>", "Changes the path."),
    works(HTTP_REQUEST, "set-pathq", "<format>", "Changes path and query."),
    works(
        HTTP_REQUEST | TCP_REQUEST_CONTENT,
        "set-priority-class",
        "<expression>",
        "Sets the priority class in the queue.",
    ),
    works(
        HTTP_REQUEST | TCP_REQUEST_CONTENT,
        "set-priority-offset",
        "<expression>",
        "Sets the priority offset within the class.",
    ),
    works(HTTP_REQUEST, "set-query", "<format>", "Changes the query."),
    works(
        HTTP_REQUEST | TCP_REQUEST_CONTENT,
        "set-retries",
        "{ <number> | <expression> }",
        "Changes the number of retries.",
    ),
    works(
        HTTP_REQUEST | TCP_REQUEST_CONNECTION | TCP_REQUEST_SESSION | TCP_REQUEST_CONTENT,
        "set-src",
        "<expression>",
        "Changes the client's address.",
    ),
    works(
        HTTP_REQUEST | TCP_REQUEST_CONNECTION | TCP_REQUEST_SESSION | TCP_REQUEST_CONTENT,
        "set-src-port",
        "<expression>",
        "Changes the client's port.",
    ),
    works(HTTP_RESPONSE | HTTP_AFTER_RESPONSE, "set-status", "<status> [reason <text>]", "Changes the status."),
    works(
        HTTP_REQUEST | HTTP_RESPONSE,
        "set-timeout",
        "{ client | connect | queue | server | tarpit | tunnel } { <time> | <expression> }",
        "Changes a timeout.",
    ),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "set-tos",
        "{ <tos> | <expression> }",
        "Former name of set-fc-tos.",
    ),
    works(HTTP_REQUEST, "set-uri", "<format>", "Changes the URI."),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | HTTP_AFTER_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "set-var",
        "(<variable>[,<condition>...]) <expression>",
        "Sets a variable.",
    ),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | HTTP_AFTER_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "set-var-fmt",
        "(<variable>[,<condition>...]) <format>",
        "Sets a variable from a log format.",
    ),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "silent-drop",
        "[rst-ttl <ttl>]",
        "Drops the client's connection without notifying it.",
    ),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE,
        "strict-mode",
        "{ on | off }",
        "Whether a failing rule is an internal error.",
    ),
    works(TCP_REQUEST_CONTENT, "switch-mode", "http [proto <name>]", "Switches the stream to HTTP mode."),
    works(HTTP_REQUEST, "tarpit", "[status <code>] [<argument>...]", "Refuses the request after a delay."),
    works(
        HTTP_REQUEST | HTTP_RESPONSE | TCP_REQUEST_CONNECTION | TCP_REQUEST_SESSION | TCP_REQUEST_CONTENT,
        "track-sc",
        "<key> [table <table>]",
        "Tracks a key in a stick table.",
    ),
    works(
        HTTP_REQUEST
            | HTTP_RESPONSE
            | HTTP_AFTER_RESPONSE
            | TCP_REQUEST_CONNECTION
            | TCP_REQUEST_SESSION
            | TCP_REQUEST_CONTENT
            | TCP_RESPONSE_CONTENT,
        "unset-var",
        "(<variable>)",
        "Removes a variable.",
    ),
    works(
        HTTP_REQUEST | TCP_REQUEST_CONTENT,
        "use-service",
        "<service>",
        "Serves the response by an internal service: `prometheus-exporter`; Weir's own: `haterm`.",
    ),
    works(
        HTTP_REQUEST | HTTP_RESPONSE,
        "wait-for-body",
        "time <time> [at-least <bytes>] [use-large-buffer]",
        "Waits for the body.",
    ),
    works(HTTP_REQUEST, "wait-for-handshake", "", "Waits for the end of the TLS handshake."),
];

/// Returns the names of the actions that are supported in at least one rule set.
pub fn working() -> impl Iterator<Item = &'static str> {
    TABLE.iter().filter(|action| is_supported(action)).map(|action| action.name)
}

/// Returns the name of a rule set.
pub(crate) fn set_name(set: RuleSets) -> &'static str {
    RULE_SETS.iter().find(|row| row.0 == set).map_or("", |row| row.1)
}

/// Whether a word is this action: `track-sc` includes the number of its counter.
fn is(action: &Action, word: &str) -> bool {
    action.is(word)
        || (action.name == "track-sc" && word.strip_prefix("track-sc").is_some_and(|number| !number.contains(' ')))
}

/// `capture … len` creates a capture slot of the frontend.
fn make_slot(context: &mut ProxyContext<'_>, line: &Line, at: usize) {
    let words = line.words.get(at..).unwrap_or_default();
    let is_written = words.iter().position(|word| word.text == "len" && !word.quoted);
    let Some(length) = is_written.and_then(|position| words.get(position + 1)) else { return };
    // HAProxy truncates the number to 32 bits.
    let length = usize::try_from(leading_number(&length.text).0 as i32).unwrap_or(0);
    let slot = CaptureSlotSpec { name: None, length, span: line.span(at) };
    context.draft.spec.captures.request.push(slot);
}

/// Whether an action is supported.
fn is_supported(action: &Action) -> bool {
    matches!(action.status, Status::Supported(()) | Status::Tuning)
}

/// Reads a rule whose action is the word at `at`.
pub(crate) fn read(context: &mut ProxyContext<'_>, line: &Line, at: usize, set: RuleSets) {
    let word = line.text(at);
    let rules = set_name(set);
    let place = context.holder.describe();
    let action = TABLE.iter().find(|action| action.extra & set != 0 && is(action, word));
    if matches!(word, "normalize-uri" | "attach-srv") && action.is_some() && !context.around.experimental.permits() {
        let why = "action is experimental, must be allowed via a global 'expose-experimental-directives'";
        // HAProxy prints the place twice for this action.
        let here = format!("parsing [{}] : ", context.around.place(line.span(at)));
        let head = if word == "attach-srv" { here.as_str() } else { "" };
        return context.report.alert(line.span(at), format!("{head}'{word}' {why}"));
    }
    if action.is_some_and(is_supported) {
        if action.is_some_and(|action| action.name == "capture") && set & (HTTP_REQUEST | TCP_REQUEST_CONTENT) != 0 {
            make_slot(context, line, at);
        }
        if action.is_some_and(|action| matches!(action.status, Status::Tuning)) {
            context.report.no_counterpart(line.span(0), &format!("{rules} {word}"), &place);
        }
        let line = context.around.rule_line(line, at);
        context.draft.spec.rules.rules.push(RuleSpec { set, line });
        return;
    }
    let name = word.split('(').next().unwrap_or(word);
    if action.is_none() && may_be_registered(name) {
        // Registered actions are looked up when the rules are compiled.
        let line = context.around.rule_line(line, at);
        context.draft.spec.rules.rules.push(RuleSpec { set, line });
        return;
    }
    if action.is_some() {
        context.report.not_yet(line.span(0), &format!("{rules} {name}"), &place);
        return;
    }
    let (message, hint) = unknown(set, word, context.name());
    let mut diagnostic = Diagnostic::alert(line.span(at), message);
    diagnostic.hint = hint;
    context.report.push(diagnostic);
}

/// Whether an action of that name may be registered: names of built-in actions contain no dot.
pub fn may_be_registered(name: &str) -> bool {
    name.contains('.')
}

/// Returns HAProxy's sentence about an unknown action of a rule set, in a proxy of that name, and a hint.
pub fn unknown(set: RuleSets, word: &str, proxy: &str) -> (String, Option<String>) {
    let names = TABLE.iter().filter(|action| action.extra & set != 0).map(|action| action.name);
    let message = expects(set, word, proxy, suggest::nearest(word, names));
    let other = TABLE.iter().find(|action| is(action, word)).map(|action| action.extra);
    let hint = other.map(|other| {
        let sets: Vec<&str> = RULE_SETS.iter().filter(|row| row.0 & other != 0).map(|row| row.1).collect();
        format!("'{word}' is an action of {}", sets.join(", "))
    });
    (message, hint)
}

/// Returns HAProxy's sentence about an action that a rule set does not accept.
fn expects(set: RuleSets, word: &str, proxy: &str, known: Option<&str>) -> String {
    let rules = set_name(set);
    let names: Vec<String> = TABLE
        .iter()
        .filter(|action| action.extra & set != 0)
        .map(|action| {
            let star = if action.usage.starts_with('(') || action.name == "track-sc" { "(*)" } else { "" };
            format!("'{}{star}'", action.name)
        })
        .collect();
    let names = names.join(", ");
    let tcp = rules.starts_with("tcp-");
    // The list is long: the suggestion precedes it.
    if let Some(known) = known {
        return format!("'{rules}' does not know '{word}'. Did you mean '{known}' maybe ?\nIt expects {names}.");
    }
    match (tcp, word) {
        (true, _) => format!("'{rules}' expects {names} in proxy '{proxy}' (got '{word}')."),
        (false, "") => format!("'{rules}' expects {names}, but got '' (missing argument)."),
        (false, _) => format!("'{rules}' expects {names}, but got '{word}'."),
    }
}
