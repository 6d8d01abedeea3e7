//! Load, names, state (section 5.2).

use super::{Problem, ServerContext, ServerOption, checks, store, supported};
use crate::diagnostic::Severity;
use crate::document::Word;
use crate::keyword::argument::{Arity, leading_number, limit};
use crate::keyword::guid_fault;
use crate::spec::{HashKey, LogProtocol};
use crate::units::TimeError;

/// Every keyword of the family.
pub(super) const TABLE: &[ServerOption] = &[
    supported(Arity::One, "weight", "<0..256>", "Weight in load balancing.", weight),
    supported(
        Arity::One,
        "maxconn",
        "<number>",
        "Maximum number of concurrent requests; further ones are queued.",
        maxconn,
    ),
    supported(
        Arity::Store,
        "maxconn-store",
        "<store> [lost { local | open | closed }]",
        "Weir's own: maxconn holds over all nodes that use this store.",
        store::maxconn_store,
    ),
    supported(Arity::One, "maxqueue", "<number>", "Maximum number of requests in the queue of this server.", maxqueue),
    supported(
        Arity::One,
        "minconn",
        "<number>",
        "Minimum of a connection limit that grows with the backend's load.",
        minconn,
    ),
    supported(
        Arity::None,
        "for-added",
        "",
        "Weir's own, of \"default-server\": servers that \"add server\" adds begin with its options, too.",
        for_added,
    ),
    supported(
        Arity::None,
        "strict-maxconn",
        "",
        "Limits connections, including idle ones, to maxconn.",
        strict_maxconn,
    ),
    supported(Arity::One, "id", "<number>", "Numeric ID of the server, instead of its position.", id),
    supported(Arity::None, "disabled", "", "Starts in maintenance.", disabled),
    supported(Arity::None, "enabled", "", "Undoes an inherited \"disabled\".", enabled),
    supported(
        Arity::One,
        "pool-max-conn",
        "<number>",
        "Maximum number of idle connections; -1: no limit.",
        pool_max_conn,
    ),
    supported(Arity::One, "pool-purge-delay", "<time>", "Interval of the purge of idle connections.", pool_purge_delay),
    supported(Arity::None, "no-backup", "", "Undoes an inherited \"backup\".", no_backup),
    supported(Arity::None, "backup", "", "Used when no other server is up.", backup),
    supported(Arity::One, "cookie", "<value>", "Value of the persistence cookie.", cookie),
    supported(Arity::One, "guid", "<text>", "Identifier that stays the same across reloads.", guid),
    supported(
        Arity::One,
        "hash-key",
        "{ id | id32 | guid | addr | addr-port }",
        "Key of the server in a consistent hash.",
        hash_key,
    ),
    supported(
        Arity::One,
        "init-state",
        "{ fully-up | up | down | fully-down | none }",
        "Initial state.",
        checks::initial_state,
    ),
    supported(Arity::One, "log-bufsize", "<size>", "Buffer size of a log server.", log_bufsize),
    supported(Arity::One, "log-proto", "{ legacy | octet-count }", "Framing of log lines.", log_proto),
    supported(Arity::None, "non-stick", "", "Not stored in stick tables.", non_stick),
    supported(
        Arity::One,
        "on-error",
        "{ fastinter | fail-check | sudden-death | mark-down }",
        "Action after too many observed errors.",
        checks::on_error,
    ),
    supported(
        Arity::One,
        "on-marked-down",
        "{ shutdown-sessions }",
        "Action when the server goes down.",
        checks::on_marked_down,
    ),
    supported(
        Arity::One,
        "on-marked-up",
        "{ shutdown-backup-sessions }",
        "Action when the server comes up.",
        checks::on_marked_up,
    ),
    supported(Arity::One, "shard", "<number>", "Shard of the keys sent to a peer.", shard),
    supported(
        Arity::One,
        "slowstart",
        "<time>",
        "Time over which weight and maxconn grow after the server comes up.",
        slowstart,
    ),
    supported(Arity::None, "stick", "", "Stored in stick tables, if a default disabled that.", stick),
    supported(Arity::One, "track", "[<backend>/]<server>", "Follows another server's state.", checks::track),
];

fn log_proto(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.log.protocol = match value.map_or("", |word| &word.text) {
        "legacy" => LogProtocol::Legacy,
        "octet-count" => LogProtocol::OctetCount,
        other => {
            let message = format!("'log-proto' expects one of 'legacy' or 'octet-count' but got '{other}'.");
            return context.error(value.map_or(keyword.span, |word| word.span), message);
        }
    };
}

/// Minimum size of HAProxy's ring buffers, in bytes.
const LEAST_BUFSIZE: i64 = 194;

fn log_bufsize(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        return context.error(keyword.span, "'log-bufsize' expects an integer argument..");
    };
    let bytes = context.number(keyword, value);
    if bytes <= 0 {
        return context.error(word.span, "log-bufsize has to be > 0..");
    }
    if bytes < LEAST_BUFSIZE {
        let message = format!("'log-bufsize' of {bytes} bytes holds no line, {LEAST_BUFSIZE} is the least.");
        return context.error(word.span, message);
    }
    context.draft.log.bufsize = limit(bytes);
}

fn weight(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match context.number(keyword, value) {
        weight @ 0..=256 => context.draft.weight = u32::try_from(weight).unwrap_or_default(),
        weight => {
            let name = context.shown_name();
            let message = format!("weight of server {name} is not within 0 and 256 ({weight})..");
            context.error(value.map_or(keyword.span, |word| word.span), message);
        }
    }
}

fn maxconn(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.maxconn = limit(context.number(keyword, value));
}

fn maxqueue(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.maxqueue = limit(context.number(keyword, value));
}

fn minconn(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.limits.minconn = limit(context.number(keyword, value));
}

fn strict_maxconn(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.limits.strict_maxconn = true;
}

fn id(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if context.name.is_none() {
        // HAProxy labels it an alert, and continues.
        let message = "'id' option is not accepted in default-server sections".to_owned();
        context.problems.push(Problem { severity: Severity::Notice, span: keyword.span, message });
        return;
    }
    let Some(word) = value else {
        context.error(keyword.span, "'id' : expects an integer argument.");
        return;
    };
    match u32::try_from(leading_number(&word.text).0) {
        Ok(id @ 1..) => context.draft.id = Some(id),
        _ => context.error(word.span, "'id' : custom id has to be between 1 and 4294967295.."),
    }
}

fn for_added(context: &mut ServerContext<'_>, keyword: &Word, _: Option<&Word>) {
    match context.name {
        None => context.draft.for_added = Some(keyword.span),
        Some(_) => context.error(keyword.span, "'for-added' is an option of 'default-server' lines."),
    }
}

fn shard(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.shard = u32::try_from(context.number(keyword, value)).unwrap_or(0);
}

fn non_stick(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.persistence.non_stick = true;
}

fn stick(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.persistence.non_stick = false;
}

fn cookie(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value.filter(|word| !word.text.is_empty()) {
        Some(word) => context.draft.persistence.cookie = Some(word.text.clone()),
        None => context.error(keyword.span, "'cookie' expects <value> as argument.."),
    }
}

fn disabled(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.disabled = true;
}

fn enabled(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.disabled = false;
}

fn backup(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.backup = true;
}

fn guid(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        None => context.error(keyword.span, "'guid' : expects an argument."),
        Some(word) => match guid_fault(&word.text) {
            Some(error) => context.error(word.span, format!("'guid': {error}.")),
            None => context.draft.balance.guid = Some(word.text.clone()),
        },
    }
}

fn hash_key(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.balance.hash_key = match value.map_or("", |word| &word.text) {
        "id" => HashKey::Id,
        "id32" => HashKey::Id32,
        "guid" => HashKey::Guid,
        "addr" => HashKey::Addr,
        "addr-port" => HashKey::AddrPort,
        _ => {
            let message = "'hash-key' has to be 'id', 'id32', 'guid', 'addr', or 'addr-port'.";
            return context.error(value.map_or(keyword.span, |word| word.span), message);
        }
    };
}

fn slowstart(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let name = context.shown_name();
    let Some(word) = value else {
        let message = "'slowstart' expects <value> as argument.";
        return context.error(keyword.span, message);
    };
    match context.milliseconds(word) {
        Ok(time) => context.draft.balance.slowstart = (time.value > 0).then_some(time.value),
        Err(TimeError::Unexpected(found)) => {
            let message = format!("unexpected character '{found}' in 'slowstart' argument of server {name}..");
            context.error(word.span, message);
        }
        Err(_) => {
            let message = format!(
                "overflow in argument <{}> to <slowstart> of server {name}, maximum value is 2147483647 ms (~24.8 \
                 days)..",
                word.text
            );
            context.error(word.span, message);
        }
    }
}

fn no_backup(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.backup = false;
}

fn pool_max_conn(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if value.is_none() {
        context.error(keyword.span, "'pool-max-conn' expects <value> as argument..");
        return;
    }
    match context.number(keyword, value) {
        -1 => context.draft.pool_max_conn = None,
        number => match u32::try_from(number) {
            Ok(number) => context.draft.pool_max_conn = Some(number),
            Err(_) => context.error(keyword.span, "'pool-max-conn' must be >= -1."),
        },
    }
}

fn pool_purge_delay(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'pool-purge-delay' expects <value> as argument..");
        return;
    };
    match context.milliseconds(word) {
        Ok(time) => context.draft.pool_purge_delay = u32::try_from(time.value).unwrap_or(u32::MAX),
        Err(TimeError::Unexpected(found)) => {
            context.error(word.span, format!("unexpected character '{found}' in argument to <pool-purge-delay>.."))
        }
        Err(error) => context.error(word.span, format!("{}.", error.message(&word.text, "pool-purge-delay"))),
    }
}
