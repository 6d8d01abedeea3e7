//! A server added by the runtime API (management manual, section 9.3, "add server"): its permitted options, and
//! their parser. Must never look a server up.

use super::origin::Origins as _;
use super::{
    FAMILIES, ServerContext, ServerDraft, checks, datagrams, finish, origin, parse_address, read_options,
    report_problems, rows,
};
use crate::diagnostic::Diagnostic;
use crate::document::{Line, Word};
use crate::environment::Environment;
use crate::keyword::is_name_character;
use crate::keyword::report::Report;
use crate::keyword::table::Status;
use crate::span::{Span, Spanned};
use crate::spec::{
    ConnectingSpec, InitialAddress, InitialState, ProxySpec, ServerBalanceSpec, ServerCheckSpec, ServerLimitsSpec,
    ServerPersistenceSpec, ServerSpec, Shared, Spec,
};
use std::sync::{Mutex, PoisonError};

/// The options that HAProxy accepts for such a server, in its order.
const DYNAMIC: &[&str] = &[
    "allow-0rtt",
    "alpn",
    "ca-file",
    "check-alpn",
    "check-sni",
    "check-ssl",
    "ciphers",
    "ciphersuites",
    "client-sigalgs",
    "crl-file",
    "curves",
    "crt",
    "force-sslv3",
    "force-tlsv10",
    "force-tlsv11",
    "force-tlsv12",
    "force-tlsv13",
    "ktls",
    "no-check-sni-auto",
    "no-renegotiate",
    "no-sni-auto",
    "no-ssl-reuse",
    "no-sslv3",
    "no-tlsv10",
    "no-tlsv11",
    "no-tlsv12",
    "no-tlsv13",
    "no-tls-tickets",
    "npn",
    "renegotiate",
    "send-proxy-v2-ssl",
    "send-proxy-v2-ssl-cn",
    "sigalgs",
    "sni",
    "ssl",
    "ssl-min-ver",
    "ssl-max-ver",
    "tls-tickets",
    "verify",
    "verifyhost",
    "backup",
    "cookie",
    "disabled",
    "error-limit",
    "guid",
    "ws",
    "hash-key",
    "id",
    "idle-ping",
    "init-state",
    "maxconn",
    "maxqueue",
    "minconn",
    "no-backup",
    "no-send-proxy",
    "no-send-proxy-v2",
    "no-tfo",
    "observe",
    "on-error",
    "on-marked-down",
    "on-marked-up",
    "pool-conn-name",
    "pool-low-conn",
    "pool-max-conn",
    "pool-purge-delay",
    "proto",
    "proxy-v2-options",
    "send-proxy",
    "send-proxy-v2",
    "set-proxy-v2-tlv-fmt",
    "shard",
    "slowstart",
    "source",
    "strict-maxconn",
    "tfo",
    "track",
    "usesrc",
    "weight",
    "healthcheck",
    "addr",
    "agent-addr",
    "agent-check",
    "agent-inter",
    "agent-port",
    "agent-send",
    "check",
    "check-pool-conn-name",
    "check-proto",
    "check-reuse-pool",
    "check-send-proxy",
    "check-via-socks4",
    "rise",
    "fall",
    "inter",
    "fastinter",
    "downinter",
    "port",
];

/// Returns the options permitted for such a server that Weir supports: `add server help`.
pub fn keywords() -> impl Iterator<Item = &'static str> {
    let known = |name: &&&str| {
        rows(FAMILIES).any(|row| row.name == **name && matches!(row.status, Status::Supported(_) | Status::Group(_)))
    };
    DYNAMIC.iter().filter(known).copied()
}

/// Parses the words after `add server`: the backend and the server, its address, its options. Without an `id` it
/// is 0. `spec` is the running configuration: `from` may name its backends and servers.
///
/// # Errors
/// HAProxy's sentence about the words.
pub fn read(
    spec: &Spec,
    backend: &str,
    name: &str,
    words: &[String],
    environment: &Environment,
) -> Result<ServerSpec, String> {
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        return Err(format!("character '{bad}' is not permitted in server name '{name}'."));
    }
    if words.is_empty() {
        return Err("'server' expects <name> and <addr>[:<port>] as arguments.".to_owned());
    }
    let line = line(name, words);
    let head = format!("'server {backend}/{name}' : ");
    let mut found = Vec::new();
    let mut report = Report::new(&mut found);
    let address = parse_address(&line.words[2], &head, environment, &mut report);
    let is_meant = |proxy: &ProxySpec| proxy.name.value == backend && proxy.udp.is_some();
    let is_for_datagrams = spec.proxies.iter().any(is_meant);
    if is_for_datagrams && address.as_ref().is_some_and(|address| datagrams::advice(address).is_some()) {
        return Err(datagrams::NO_DATAGRAMS.to_owned());
    }
    if let Some(address) = address.clone() {
        if let Some(refused) = first_refused(&line) {
            return Err(format!("'{refused}' option is not accepted for dynamic server"));
        }
        let started = origin::read(&line, 3, backend, &origin::Running { spec, own: backend });
        let mut draft = match started.map_err(|(_, message)| message)? {
            Some(draft) => draft,
            None => inherited(spec, backend, &line),
        };
        if draft.limits.store.is_some() {
            return Err("'maxconn-store' option is not accepted for dynamic server".to_owned());
        }
        let mut server = ServerContext::new(&mut draft, Some(name), environment);
        server.only = is_for_datagrams.then_some(datagrams::OPTIONS);
        let unread = read_options(&mut server, &line, origin::index_after(&line, 3));
        checks::finish(&mut server, line.words[2].span);
        let problems = server.problems;
        report_problems(&mut report, &head, "", problems, &unread);
        let span = line.words[2].span;
        // Names are not resolved while requests are served.
        draft.connecting.initial_address = vec![InitialAddress::None];
        let mut spec = finish(draft, Span::default(), Spanned::new(name.to_owned(), span), Spanned::new(address, span));
        if !found.iter().any(Diagnostic::is_alert) {
            share_parts(&mut spec);
            return Ok(spec);
        }
    }
    let first = found.into_iter().find(Diagnostic::is_alert).map(|alert| alert.message).unwrap_or_default();
    Err(first.strip_prefix(&head).map(str::to_owned).unwrap_or(first))
}

/// Returns the initial values of an added server without `from`: those of the backend's `default-server for-added`, or
/// the documented ones.
fn inherited(spec: &Spec, backend: &str, line: &Line) -> ServerDraft {
    let running = origin::Running { spec, own: backend };
    let is_meant = spec.proxies.iter().any(|proxy| proxy.name.value == backend && proxy.added_defaults.is_some());
    let Some(mut draft) = running.of_backend("").filter(|_| is_meant) else { return ServerDraft::default() };
    draft.balance.guid = None;
    // A server is checked or tracks another one: an option of the command overrides the inherited one.
    let has = |name: &str| line.words.iter().skip(3).any(|word| word.text == name);
    match (has("check"), has("track")) {
        (false, true) => (draft.check.enabled, draft.check.initial) = (false, InitialState::None),
        (true, false) => draft.check.track = None,
        _ => {}
    }
    draft
}

/// Parts of servers that were added before.
#[derive(Default)]
struct SharedParts {
    limits: Vec<Shared<ServerLimitsSpec>>,
    balance: Vec<Shared<ServerBalanceSpec>>,
    connecting: Vec<Shared<ConnectingSpec>>,
    check: Vec<Shared<ServerCheckSpec>>,
    persistence: Vec<Shared<ServerPersistenceSpec>>,
}

/// Lets a server share the parts that are equal to those of servers that were added before: their lines have none in common.
fn share_parts(server: &mut ServerSpec) {
    static KNOWN: Mutex<Option<SharedParts>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    server.limits.share(&mut known.limits);
    server.balance.share(&mut known.balance);
    server.connecting.share(&mut known.connecting);
    server.check.share(&mut known.check);
    server.persistence.share(&mut known.persistence);
}

/// Builds a line of the configuration from the words.
fn line(name: &str, words: &[String]) -> Line {
    let texts = ["server", name].into_iter().chain(words.iter().map(String::as_str));
    // Each word has a place of its own, so that two errors remain distinct.
    let word = |(at, text): (u32, &str)| {
        let span = Span { file: u32::MAX, line: 0, start: at, end: at + 1 };
        Word { text: text.to_owned(), span, quoted: false }
    };
    Line { words: (0..).zip(texts).map(word).collect(), file: u32::MAX, number: 0 }
}

/// Returns the first option, up to an unknown one, that such a server may not have.
fn first_refused(line: &Line) -> Option<&str> {
    let mut at = origin::index_after(line, 3);
    while let Some(word) = line.words.get(at) {
        let row = rows(FAMILIES).find(|row| row.is(&word.text))?;
        if !DYNAMIC.contains(&word.text.as_str()) {
            return Some(&word.text);
        }
        at += 1 + row.extra.take(&line.words[at + 1..]).1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_words(text: &str) -> Result<ServerSpec, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        read(&Spec::default(), "b", "s", &words, &Environment::new())
    }

    #[test]
    fn what_is_wrong_is_said_as_haproxy_says_it() {
        let rows = [
            ("", "'server' expects <name> and <addr>[:<port>] as arguments."),
            ("127.0.0.1:70000", "invalid port '70000'"),
            ("127.0.0.1:1 weight 300", "weight of server s is not within 0 and 256 (300).."),
            ("127.0.0.1:1 blah", "unknown keyword 'blah'."),
            ("127.0.0.1:1 redir /x", "'redir' option is not accepted for dynamic server"),
            ("127.0.0.1:1 enabled", "'enabled' option is not accepted for dynamic server"),
            ("127.0.0.1:1 for-added", "'for-added' option is not accepted for dynamic server"),
            ("127.0.0.1:1 maxconn-store x", "'maxconn-store' option is not accepted for dynamic server"),
            ("127.0.0.1:1 resolvers x", "'resolvers' option is not accepted for dynamic server"),
            ("127.0.0.1:1 check inter 0", "invalid value 0 for argument 'inter' of server s.."),
            ("127.0.0.1:1 check track b/t", "unable to enable checks and tracking at the same time!"),
            ("127.0.0.1:1 agent-check", "server s does not have agent port. Agent check has been disabled."),
            ("127.0.0.1:1 check port", "'port' expects a port number as argument.."),
            (
                "127.0.0.1:1 renegotiate",
                "'renegotiate' : Weir never renegotiates, and TLS 1.3 has no renegotiation. Remove the keyword.",
            ),
        ];
        for (words, expected) in rows {
            assert_eq!(read_words(words).unwrap_err(), expected, "{words}");
        }
        assert_eq!(
            read(&Spec::default(), "b", "n$19", &["127.0.0.1:1".to_owned()], &Environment::new()).unwrap_err(),
            "character '$' is not permitted in server name 'n$19'."
        );
    }

    #[test]
    fn servers_share_what_they_have_in_common() {
        let [one, same, other] = ["127.0.0.1:1", "127.0.0.1:2 weight 7", "127.0.0.1:3 check inter 7s"]
            .map(|words| read_words(words).unwrap());
        assert!(std::ptr::eq(&*one.connecting, &*same.connecting) && std::ptr::eq(&*one.check, &*same.check));
        assert!(std::ptr::eq(&*one.limits, &*same.limits) && std::ptr::eq(&*one.balance, &*other.balance));
        assert!(std::ptr::eq(&*one.persistence, &*other.persistence) && !std::ptr::eq(&*one.check, &*other.check));
    }

    #[test]
    fn what_is_written_is_read() {
        let server = read_words("127.0.0.1:80 check inter 100 weight 10 maxconn 5 id 7 backup").unwrap();
        assert_eq!((server.weight, server.maxconn, server.id, server.backup), (10, Some(5), 7, true));
        assert_eq!(read_words("name.invalid:80").unwrap().connecting.initial_address, [InitialAddress::None]);
        assert_eq!(read_words("127.0.0.1").unwrap().id, 0);
    }

    #[test]
    fn help_names_what_there_is() {
        let names: Vec<&str> = keywords().collect();
        assert!(names.contains(&"weight") && names.contains(&"allow-0rtt") && !names.contains(&"renegotiate"));
        assert!(DYNAMIC.iter().all(|name| rows(FAMILIES).any(|row| row.is(name)) || *name == "usesrc"), "{DYNAMIC:?}");
    }
}
