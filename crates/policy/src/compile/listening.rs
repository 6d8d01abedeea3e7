//! Compiles the parameters of `bind` lines: threads, socket owners, GUIDs. Must never open a socket.

use super::Compiler;
use crate::program::{ExpectedHeader, Listening, Reception, Segments, SocketOptions};
use config::diagnostic::Form;
use config::span::{Span, Spanned};
use config::spec::{
    AccountSpec, AddressSpec, BindSpec, GlobalSpec, ListeningSpec, Mode, ProxyKind, ProxySpec, ShardsSpec, Spec,
    ThreadsSpec, UnixBindSpec,
};
use std::collections::HashMap;
use std::time::Duration;

/// Maximum length of a GUID in bytes.
const LONGEST_GUID: usize = 127;

/// The section of a `bind` line, by its kind and its name in HAProxy's messages.
#[derive(Clone, Copy)]
pub(super) struct ListenerOwner<'a> {
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
}

impl Compiler<'_> {
    /// Compiles the parameters of a `bind` line.
    pub(super) fn listening(
        &mut self,
        bind: &BindSpec,
        owner: ListenerOwner<'_>,
        global: &GlobalSpec,
        groups: &[u32],
    ) -> Listening {
        let written = &bind.listening;
        let is_unix = matches!(bind.address, AddressSpec::Unix { .. });
        Listening {
            socket: SocketOptions {
                interface: written.interface.as_deref().map(Into::into),
                namespace: written.namespace.as_deref().map(Into::into),
                transparent: written.transparent,
                multipath: matches!(bind.address, AddressSpec::Inet { multipath: true, .. }),
                fast_open: written.fast_open,
                segments: segments(written),
                user_timeout: written.user_timeout.map(Duration::from_millis),
                md5_password: written.md5_password.as_deref().map(|password| password.as_bytes().into()),
                save_syn: written.save_syn,
                congestion_control: written.congestion_control.as_deref().map(Into::into),
                user: if is_unix { self.account(written.user.as_ref(), Account::User) } else { None },
                group: if is_unix { self.account(written.group.as_ref(), Account::Group) } else { None },
            },
            protocol: written.protocol,
            idle_ping: written.idle_ping.filter(|millis| *millis > 0).map(Duration::from_millis),
            connections: written.connections.unwrap_or(1),
            header: ExpectedHeader { netscaler: written.netscaler_cip, proxy: written.accept_proxy },
            threads: self.threads(bind, owner, groups),
            label: written.label.as_deref().map(Into::into),
            guid: None,
            quic: self.quic_listening(bind, global),
        }
    }

    /// Returns the ID of a user or a group.
    fn account(&mut self, written: Option<&Spanned<AccountSpec>>, kind: Account) -> Option<u32> {
        let written = written?;
        let name = match &written.value {
            AccountSpec::Number(number) => return Some(*number),
            AccountSpec::Name(name) => name,
        };
        let found = match kind {
            Account::User => self.resolver.user(name),
            Account::Group => self.resolver.group(name),
        };
        if found.is_none() {
            let kind = kind.name();
            self.alert(written.span, Form::Parsing, format!("'{kind}' : unknown {kind} name '{name}'"));
        }
        found
    }

    /// Returns the workers that `thread` names; `None` if it is not specified.
    fn threads(&mut self, bind: &BindSpec, owner: ListenerOwner<'_>, groups: &[u32]) -> Option<Box<[usize]>> {
        let written = bind.listening.threads.as_ref()?;
        let ListenerOwner { kind, name: proxy } = owner;
        let missing = written.0.iter().filter_map(|range| range.group).find(|group| *group as usize > groups.len());
        let place = format!("in 'bind {}'", bind.text);
        if let Some(group) = missing {
            let message =
                format!("{kind} '{proxy}': 'thread' directive references non-existing thread group {group} {place}.");
            self.alert(bind.span, Form::Bare, message);
            return None;
        }
        let chosen = chosen(written, groups);
        if chosen.is_empty() {
            let message = format!("{kind} '{proxy}': 'thread' directive only references non-existing threads {place}.");
            self.alert(bind.span, Form::Bare, message);
        }
        (!chosen.is_empty()).then(|| chosen.into())
    }
}

/// The kind of an account.
#[derive(Clone, Copy)]
enum Account {
    User,
    Group,
}

impl Account {
    const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Group => "group",
        }
    }
}

/// Returns the threads that a set names, as indices from 0. A number counts within its group, or within the process
/// without a group.
fn chosen(written: &ThreadsSpec, groups: &[u32]) -> Vec<usize> {
    let threads = (1..).zip(groups).flat_map(|(group, size)| (1..=*size).map(move |place| (group, place)));
    let is_in = |number: u32, (group, place): (u32, u32)| {
        written.0.iter().any(|range| match range.group {
            None => range.contains(number),
            Some(of) => of == group && range.contains(place),
        })
    };
    (1..)
        .zip(threads)
        .filter(|(number, thread)| is_in(*number, *thread))
        .map(|(number, _)| number as usize - 1)
        .collect()
}

fn segments(written: &ListeningSpec) -> Segments {
    match written.mss {
        None => Segments::Default,
        Some(size) if size < 0 => Segments::ReducedBy(size.unsigned_abs()),
        Some(size) => Segments::Announced(size.unsigned_abs()),
    }
}

/// Returns the number of listening sockets of an address that `threads` threads serve; 1 for addresses that cannot be
/// shared.
pub(super) fn shards(bind: &BindSpec, global: &GlobalSpec, threads: u32) -> u32 {
    let written = bind.shards.or(global.tune.listener.default_shards).unwrap_or(ShardsSpec::ByGroup);
    match (&bind.address, written) {
        (address, _) if address.is_quic() => 1,
        (AddressSpec::Inet { .. }, ShardsSpec::Number(number)) => number.clamp(1, threads),
        (AddressSpec::Inet { .. }, ShardsSpec::ByThread) => threads,
        // There is only one group.
        (AddressSpec::Inet { .. }, ShardsSpec::ByGroup) => 1,
        (
            AddressSpec::Unix { .. }
            | AddressSpec::Abstract { .. }
            | AddressSpec::Descriptor { .. }
            | AddressSpec::Reverse { .. },
            _,
        ) => 1,
    }
}

/// Returns a `bind` line with the defaults of `unix-bind`.
pub(super) fn with_unix_defaults(bind: &BindSpec, defaults: &UnixBindSpec) -> BindSpec {
    let mut bind = bind.clone();
    if let AddressSpec::Unix { path, .. } = &mut bind.address {
        if let Some(prefix) = &defaults.prefix {
            path.insert_str(0, prefix);
        }
        bind.unix_mode = bind.unix_mode.or(defaults.mode);
        bind.listening.user = bind.listening.user.or_else(|| defaults.user.clone());
        bind.listening.group = bind.listening.group.or_else(|| defaults.group.clone());
    }
    bind
}

/// Compiles the parameters of a frontend's accepted connections.
pub(super) fn reception(written: &ProxySpec) -> Reception {
    let reception = *written.reception;
    Reception {
        keep_alive: written.options.clitcpka.then_some(reception.keep_alive),
        smart_accept: reception.smart_accept.unwrap_or(written.mode == Mode::Http),
        socket_stats: reception.socket_stats,
    }
}

/// GUIDs and their owners, named as in HAProxy's messages.
pub(super) struct Guids<'a> {
    spec: &'a Spec,
    /// GUIDs of proxies and servers, computed when an address needs them.
    given: Option<HashMap<String, String>>,
    /// The line of the last address, and the number of its previous addresses.
    line: Option<(Span, usize)>,
}

impl<'a> Guids<'a> {
    /// Creates the GUIDs of a specification.
    pub(super) fn of(spec: &'a Spec) -> Self {
        Self { spec, given: None, line: None }
    }

    fn written(spec: &Spec) -> HashMap<String, String> {
        let mut given = HashMap::new();
        for proxy in &spec.proxies {
            let name = &proxy.name.value;
            let kind = match proxy.kind {
                ProxyKind::Frontend => "frontend",
                ProxyKind::Backend => "backend",
                ProxyKind::Listen => "proxy",
            };
            given.extend(proxy.guid.iter().map(|guid| (guid.value.clone(), format!("{kind} {name}"))));
            given.extend(proxy.servers.iter().filter_map(|server| {
                Some((server.balance.guid.clone()?, format!("server {name}/{}", server.name.value)))
            }));
        }
        given
    }

    /// Assigns the GUID of the next address: its line's prefix and its index on the line. The error is HAProxy's
    /// message.
    pub(super) fn give(&mut self, bind: &BindSpec, proxy: &str) -> Result<Option<Box<str>>, String> {
        let number = match self.line {
            Some((span, number)) if span == bind.span => number + 1,
            _ => 0,
        };
        self.line = Some((bind.span, number));
        let Some(prefix) = &bind.listening.guid_prefix else { return Ok(None) };
        let guid = format!("{prefix}-{number}");
        let fail = |why: String| format!("error on GUID generation : {why}. You may fix it by adjusting guid-prefix.");
        if guid.len() > LONGEST_GUID {
            return Err(fail("invalid length".to_owned()));
        }
        let is_fine = |found: char| found.is_ascii_alphanumeric() || matches!(found, '-' | '_' | ':' | '.');
        if let Some(bad) = guid.chars().find(|found| !is_fine(*found)) {
            return Err(fail(format!("invalid character '{bad}'")));
        }
        let given = self.given.get_or_insert_with(|| Self::written(self.spec));
        if let Some(other) = given.get(&guid) {
            return Err(fail(format!("duplicate entry with {other}")));
        }
        given.insert(guid.clone(), format!("listener {proxy} (line {})", bind.span.line));
        Ok(Some(guid.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::tests::{bind, compiled, frontend, refused, spec};
    use crate::program::Bind;
    use config::spec::{Parity, SocketKind, ThreadRange};

    fn threads(group: Option<u32>, first: u32, last: Option<u32>, parity: Parity) -> Option<ThreadsSpec> {
        Some(ThreadsSpec(vec![ThreadRange { group, first, last, parity }]))
    }

    /// A frontend with these addresses, on four threads.
    fn listening(binds: Vec<BindSpec>) -> Spec {
        let mut front = frontend("f");
        front.binds = binds;
        let mut written = spec(vec![front]);
        written.global.nbthread = Some(4);
        written
    }

    fn binds(written: &Spec) -> Vec<Bind> {
        compiled(written).proxies[0].frontend.as_ref().unwrap().binds.clone()
    }

    #[test]
    fn a_thread_is_counted_in_its_group() {
        for (set, expected) in [
            (threads(Some(2), 1, None, Parity::All), &[3_usize][..]),
            (threads(Some(1), 2, None, Parity::All), &[1, 2]),
            (threads(Some(1), 1, None, Parity::Even), &[1]),
            (threads(None, 4, None, Parity::All), &[3]),
        ] {
            let mut one = bind();
            one.listening.threads = set;
            let mut written = listening(vec![one]);
            written.global.processors.thread_groups = Some(2);
            written.global.processors.groups = vec![(1, 3), (2, 1)];
            assert_eq!(binds(&written)[0].listening.threads.as_deref(), Some(expected));
        }
    }

    #[test]
    fn sets_of_threads_are_cut_to_those_that_exist() {
        for (set, expected) in [
            (threads(None, 1, None, Parity::All), &[0, 1, 2, 3][..]),
            (threads(None, 1, None, Parity::Odd), &[0, 2]),
            (threads(Some(1), 4, Some(9), Parity::All), &[3]),
        ] {
            let mut one = bind();
            one.listening.threads = set;
            one.shards = Some(ShardsSpec::ByThread);
            let compiled = &binds(&listening(vec![one]))[0];
            assert_eq!(compiled.listening.threads.as_deref(), Some(expected));
            assert_eq!(compiled.shards as usize, expected.len());
        }
        for (set, expected) in [
            (
                threads(None, 5, Some(6), Parity::All),
                "frontend 'f': 'thread' directive only references non-existing threads in 'bind :80'.",
            ),
            (
                threads(Some(2), 1, Some(1), Parity::All),
                "frontend 'f': 'thread' directive references non-existing thread group 2 in 'bind :80'.",
            ),
        ] {
            let mut one = bind();
            one.listening.threads = set;
            assert_eq!(refused(&listening(vec![one]))[0].1, expected);
        }
    }

    #[test]
    fn addresses_get_the_default_number_of_sockets() {
        let mut own = bind();
        own.shards = Some(ShardsSpec::ByGroup);
        let mut written = listening(vec![bind(), own]);
        let shards = |written: &Spec| -> Vec<u32> { binds(written).iter().map(|bind| bind.shards).collect() };
        assert_eq!(shards(&written), [1, 1]);
        written.global.tune.listener.default_shards = Some(ShardsSpec::ByThread);
        assert_eq!(shards(&written), [4, 1]);
    }

    #[test]
    fn unix_bind_holds_where_a_line_says_nothing() {
        let unix = |path: &str| AddressSpec::Unix { path: path.to_owned(), kind: SocketKind::Stream };
        let account = |number| Some(Spanned::new(AccountSpec::Number(number), Span::default()));
        let plain = BindSpec { address: unix("/a"), ..bind() };
        let mut own = BindSpec { address: unix("/b"), unix_mode: Some(0o600), ..bind() };
        own.listening.user = account(5);
        let mut written = listening(vec![plain, own, bind()]);
        written.global.unix_bind =
            UnixBindSpec { prefix: Some("/run".to_owned()), mode: Some(0o666), user: account(7), group: account(8) };
        let found: Vec<_> = binds(&written)
            .into_iter()
            .map(|bind| (bind.unix_mode, bind.listening.socket.user, bind.listening.socket.group))
            .collect();
        assert_eq!(found, [(Some(0o666), Some(7), Some(8)), (Some(0o600), Some(5), Some(8)), (None, None, None)]);
        let address = binds(&written)[0].address.clone();
        assert_eq!(address, crate::program::BindAddress::Unix("/run/a".into()));
        written.global.unix_bind.user =
            Some(Spanned::new(AccountSpec::Name("nobody-knows".to_owned()), Span::default()));
        assert_eq!(refused(&written)[0].1, "'user' : unknown user name 'nobody-knows'");
    }

    #[test]
    fn identifiers_number_the_addresses_of_a_line() {
        let with = |prefix: &str, line: u32| {
            let mut one = BindSpec { span: Span { line, ..bind().span }, ..bind() };
            one.listening.guid_prefix = Some(prefix.to_owned());
            one
        };
        let guids: Vec<_> = binds(&listening(vec![with("a", 1), with("a", 1), with("b", 2), bind()]))
            .into_iter()
            .map(|bind| bind.listening.guid.map(String::from))
            .collect();
        assert_eq!(guids, [Some("a-0".to_owned()), Some("a-1".to_owned()), Some("b-0".to_owned()), None]);
        for (second, why) in [
            ("a".to_owned(), "duplicate entry with listener f (line 1)"),
            ("a/b".to_owned(), "invalid character '/'"),
            ("a".repeat(126), "invalid length"),
        ] {
            let expected = format!("error on GUID generation : {why}. You may fix it by adjusting guid-prefix.");
            assert_eq!(refused(&listening(vec![with("a", 1), with(&second, 2)]))[0].1, expected);
        }
        let mut written = listening(vec![with("a", 1)]);
        written.proxies[0].guid = Some(Spanned::new("a-0".to_owned(), Span::default()));
        let expected = "error on GUID generation : duplicate entry with frontend f. You may fix it by adjusting \
                        guid-prefix.";
        assert_eq!(refused(&written)[0].1, expected);
    }
}
