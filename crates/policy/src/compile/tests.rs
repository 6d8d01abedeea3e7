//! Hand-made specifications, the programs that they are compiled to, and the errors of invalid ones.

use super::*;
use crate::program::{ServerAddress, ServerPort};
use config::diagnostic::Severity;
use config::span::Spanned;
use config::spec::*;

pub(super) fn span(line: u32) -> Span {
    Span { file: 0, line, start: 2, end: 9 }
}

fn at<T>(value: T, line: u32) -> Spanned<T> {
    Spanned::new(value, span(line))
}

pub(crate) fn spec(proxies: Vec<ProxySpec>) -> Spec {
    Spec { proxies, ..Spec::default() }
}

fn proxy(kind: ProxyKind, name: &str) -> ProxySpec {
    ProxySpec {
        udp: None,
        fcgi_app: None,
        stick_table: None,
        span: span(1),
        kind,
        name: at(name.to_owned(), 1),
        check: Default::default(),
        email_alert: Default::default(),
        persistence: Default::default(),
        id: 2,
        id_is_written: false,
        state: Default::default(),
        mode: Mode::Http,
        upgrades: false,
        disabled: false,
        description: None,
        binds: Vec::new(),
        used_certificates: Vec::new(),
        servers: Vec::new(),
        maxconn: None,
        backlog: None,
        fullconn: None,
        limits: Default::default(),
        balance: BalanceSpec::default(),
        hash: HashSpec::default().into(),
        allbackups: false,
        unpublished: false,
        default_servers: Vec::new(),
        added_defaults: None,
        added: Vec::new(),
        guid: None,
        default_backend: None,
        captures: config::spec::CapturesSpec::default().into(),
        rules: Default::default(),
        filters: Default::default(),
        compression: Default::default(),
        timeouts: TimeoutsSpec::default().into(),
        retries: 3,
        http_reuse: HttpReuse::default(),
        close_mode: CloseMode::default(),
        forwardfor: None,
        http: HttpSpec::default().into(),
        monitor_uri: None,
        stats: None,
        error_files: Vec::new(),
        error_answers: Vec::new(),
        options: OptionsSpec::default(),
        reception: ReceptionSpec::default().into(),
        logs: Vec::new(),
        log_format: LogFormatSpec::default(),
        log_lines: LogLinesSpec::default().into(),
        log_tag: None,
        otel: None,
        connecting: ConnectingDefaultsSpec::default().into(),
    }
}

pub(crate) fn inet(host: HostSpec, port: PortSpec) -> AddressSpec {
    AddressSpec::Inet { host, family: Family::Unspecified, port, kind: SocketKind::Stream, multipath: false }
}

pub(crate) fn bind() -> BindSpec {
    BindSpec {
        span: span(7),
        address: inet(HostSpec::Any, PortSpec::Exact(80)),
        text: ":80".to_owned(),
        name: None,
        maxconn: None,
        backlog: None,
        defer_accept: false,
        v6only: false,
        v4v6: false,
        shards: None,
        id: None,
        unix_mode: None,
        access: config::spec::RuntimeAccess::default(),
        listening: ListeningSpec::default(),
        tls: None,
    }
}

/// A frontend with one address.
pub(crate) fn frontend(name: &str) -> ProxySpec {
    ProxySpec { binds: vec![bind()], ..proxy(ProxyKind::Frontend, name) }
}

pub(crate) fn server(name: &str, address: AddressSpec) -> ServerSpec {
    ServerSpec {
        span: span(12),
        name: at(name.to_owned(), 12),
        address: at(address, 12),
        weight: 1,
        id_is_written: false,
        maxconn: None,
        maxqueue: None,
        balance: ServerBalanceSpec::default().into(),
        limits: Default::default(),
        id: 1,
        disabled: false,
        backup: false,
        pool_max_conn: None,
        pool_purge_delay: 5_000,
        connecting: ConnectingSpec::default().into(),
        log: ServerLogSpec::default(),
        check: Default::default(),
        persistence: Default::default(),
        tls: None,
    }
}

pub(crate) fn backend(name: &str) -> ProxySpec {
    let address = inet(HostSpec::Ip(IpAddr::from([127, 0, 0, 1])), PortSpec::Exact(8_080));
    ProxySpec { servers: vec![server("s1", address)], ..proxy(ProxyKind::Backend, name) }
}

fn log_line(target: LogTargetSpec) -> LogSpec {
    LogSpec {
        span: span(3),
        target,
        length: 1_024,
        format: None,
        sample: None,
        profile: None,
        facility: 16,
        max_level: LogLevel::Debug,
        min_level: None,
    }
}

/// A resolver that knows one name.
pub(crate) struct Names;

impl Resolver for Names {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, String> {
        match (host, family) {
            ("known", Family::V6) => Ok(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])),
            ("known", _) => Ok(IpAddr::from([192, 0, 2, 7])),
            _ => Err("no such name".to_owned()),
        }
    }
}

fn build(spec: &Spec) -> (Option<Program>, Vec<Diagnostic>) {
    let mut out = Vec::new();
    let program = compile(spec, &mut Names, &SystemLimits { descriptors: 2_000, ..SystemLimits::default() }, &mut out);
    (program, out)
}

pub(crate) fn compiled(spec: &Spec) -> Program {
    let (program, out) = build(spec);
    program.unwrap_or_else(|| panic!("{out:?}"))
}

/// The messages of a specification that cannot be compiled.
pub(crate) fn refused(spec: &Spec) -> Vec<(u32, String)> {
    let (program, out) = build(spec);
    assert!(program.is_none());
    assert!(out.iter().all(|diagnostic| matches!(diagnostic.severity, Severity::Alert | Severity::Diag)));
    out.into_iter().map(|diagnostic| (diagnostic.span.map_or(0, |span| span.line), diagnostic.message)).collect()
}

/// `use_backend` without a condition.
fn switch(name: &str) -> config::spec::RuleLineSpec {
    let word = config::document::Word { text: name.to_owned(), ..Default::default() };
    config::spec::RuleLineSpec { words: vec![word], ..Default::default() }
}

#[test]
fn a_frontend_leads_to_the_first_use_backend_then_the_default_then_itself() {
    let mut front = frontend("f");
    let listen = ProxySpec { binds: vec![bind()], kind: ProxyKind::Listen, ..backend("l") };
    let nowhere = frontend("nowhere");
    front.default_backend = Some(at("b".to_owned(), 5));
    let mut written = spec(vec![front, backend("a"), backend("b"), listen, nowhere]);
    let targets = |spec: &Spec| -> Vec<Option<usize>> {
        compiled(spec).proxies.iter().filter_map(|proxy| proxy.frontend.as_ref()).map(|front| front.at_once).collect()
    };
    assert_eq!(targets(&written), [Some(2), Some(3), None]);
    written.proxies[0].rules.switching = vec![switch("a"), switch("b")];
    written.proxies[3].default_backend = Some(at("a".to_owned(), 8));
    assert_eq!(targets(&written), [Some(1), Some(1), None]);
}

#[test]
fn servers_are_numbered_through_and_sides_follow_the_section() {
    let mut second = backend("b");
    second.servers.push(second.servers[0].clone());
    let program = compiled(&spec(vec![backend("a"), frontend("f"), second]));
    let backends: Vec<_> = program.proxies.iter().map(|proxy| proxy.backend.as_ref()).collect();
    assert!(backends[1].is_none() && program.proxies[1].frontend.is_some() && program.proxies[0].frontend.is_none());
    let serials: Vec<usize> =
        backends.iter().flatten().flat_map(|backend| &backend.servers).map(|s| s.serial).collect();
    assert_eq!((serials.as_slice(), program.servers), (&[0, 1, 2][..], 3));
}

#[test]
fn addresses_are_resolved_where_they_are_used() {
    let mut back = backend("b");
    back.servers = vec![
        server("offset", inet(HostSpec::Name("known".to_owned()), PortSpec::Offset(-5))),
        server("same", inet(HostSpec::Name("known".to_owned()), PortSpec::None)),
        server("path", AddressSpec::Unix { path: "/run/app".to_owned(), kind: SocketKind::Stream }),
        server("zero", inet(HostSpec::Name("known".to_owned()), PortSpec::Exact(0))),
    ];
    let program = compiled(&spec(vec![back]));
    let servers = &program.proxies[0].backend.as_ref().unwrap().servers;
    let ip = IpAddr::from([192, 0, 2, 7]);
    assert_eq!(servers[0].address, ServerAddress::Inet { ip, port: ServerPort::Offset(-5) });
    assert_eq!(servers[1].address, ServerAddress::Inet { ip, port: ServerPort::Offset(0) });
    assert_eq!(servers[2].address, ServerAddress::Unix("/run/app".into()));
    assert_eq!(servers[3].address, ServerAddress::Inet { ip, port: ServerPort::Offset(0) });
    assert_eq!([ServerPort::Offset(-5).resolve(100), ServerPort::Exact(80).resolve(100)], [95, 80]);
}

#[test]
fn what_cannot_be_resolved_is_said_in_haproxys_words_and_all_at_once() {
    let gone = |port| inet(HostSpec::Name("gone".to_owned()), PortSpec::Exact(port));
    let mut front = frontend("f");
    front.binds[0].address = gone(80);
    front.binds[0].text = "gone:80".to_owned();
    front.logs = vec![log_line(LogTargetSpec::Address(gone(514)))];
    front.default_backend = Some(at("missing".to_owned(), 9));
    let mut back = backend("b");
    back.servers = vec![server("s1", gone(80))];
    let expected = [
        (7, "'bind' : invalid address: 'gone' in 'gone:80'"),
        (9, "Proxy 'f': unable to find required backend: 'missing'."),
        (3, "log : invalid address: 'gone' in 'gone:514'"),
        (12, "'server b/s1' : could not resolve address 'gone'."),
        (0, "Failed to initialize server(s) addr."),
    ];
    let found = refused(&spec(vec![front, back]));
    assert_eq!(found, expected.map(|(line, message)| (line, message.to_owned())));
}

#[test]
fn an_error_that_was_reported_before_is_not_repeated() {
    let mut front = frontend("f");
    front.default_backend = Some(at("missing".to_owned(), 9));
    let mut out = vec![Diagnostic::alert(span(9), "known")];
    assert!(compile(&spec(vec![front]), &mut Names, &SystemLimits::default(), &mut out).is_none());
    assert_eq!(out.len(), 1);
}

#[test]
fn frontends_share_the_global_maxconn_unless_they_have_their_own() {
    let mut own = frontend("own");
    (own.maxconn, own.backlog) = (Some(77), Some(9));
    own.binds[0].backlog = Some(5);
    let mut zero = frontend("zero");
    zero.maxconn = Some(0);
    let mut written = spec(vec![own, zero]);
    written.global.maxconn = Some(500);
    let program = compiled(&written);
    let fronts: Vec<_> = program.proxies.iter().filter_map(|proxy| proxy.frontend.as_ref()).collect();
    assert_eq!([fronts[0].maxconn, fronts[0].backlog, fronts[0].binds[0].backlog], [77, 9, 5]);
    assert_eq!([fronts[1].maxconn, fronts[1].backlog, fronts[1].binds[0].backlog], [500, 500, 500]);
}

#[test]
fn fullconn_is_a_tenth_of_what_may_come() {
    let mut first = frontend("f");
    (first.maxconn, first.default_backend) = (Some(300), Some(at("b".to_owned(), 9)));
    let mut second = frontend("g");
    (second.maxconn, second.rules.switching) = (Some(191), vec![switch("a"), switch("b")]);
    let mut written = backend("c");
    written.fullconn = Some(123);
    let program = compiled(&spec(vec![first, second, backend("a"), backend("b"), written, backend("unused")]));
    let found: Vec<u32> = program.proxies.iter().filter_map(|p| p.backend.as_ref()).map(|b| b.fullconn).collect();
    assert_eq!(found, [20, 50, 123, 1]);
}

#[test]
fn defaults_depend_on_the_mode_and_zero_means_unlimited() {
    let mut tcp = backend("t");
    tcp.mode = Mode::Tcp;
    let mut off = backend("off");
    off.options.abortonclose = Some(false);
    (off.servers[0].maxconn, off.servers[0].maxqueue) = (Some(0), Some(0));
    (off.timeouts.connect, off.timeouts.queue, off.timeouts.server) = (Some(4_000), None, Some(0));
    let program = compiled(&spec(vec![backend("h"), tcp, off]));
    let backends: Vec<_> = program.proxies.iter().filter_map(|proxy| proxy.backend.as_ref()).collect();
    assert_eq!([0, 1, 2].map(|index| backends[index].abortonclose), [true, false, false]);
    assert_eq!((backends[2].servers[0].maxconn, backends[2].servers[0].maxqueue), (None, None));
    let timeouts = program.proxies[2].timeouts;
    assert_eq!((timeouts.queued(), timeouts.server), (Some(Duration::from_secs(4)), None));
}

#[test]
fn every_status_has_a_page_and_a_file_replaces_it() {
    let mut back = backend("b");
    back.error_files = vec![
        ErrorFileSpec { status: 503, path: "/503".to_owned(), content: b"HTTP/1.0 503 Mine\r\n\r\n".to_vec() },
        ErrorFileSpec { status: 400, path: "/dev/null".to_owned(), content: Vec::new() },
    ];
    let program = compiled(&spec(vec![back]));
    let errors = &program.proxies[0].errors;
    for status in wire::http::error_pages::PAGES.iter().map(|page| &page.status) {
        let expected: &[u8] = match status {
            503 => b"HTTP/1.0 503 Mine\r\n\r\n",
            400 => b"",
            _ => format!("HTTP/1.1 {status} ").leak().as_bytes(),
        };
        assert!(errors.page(*status).starts_with(expected), "{status}");
        assert_eq!(errors.page(*status).is_empty(), *status == 400);
    }
    assert!(errors.page(599).starts_with(b"HTTP/1.1 500 "));
}

#[test]
fn global_sizes_are_rounded_and_bounded() {
    let mut written = spec(Vec::new());
    written.global.tune.bufsize = Some(1_001);
    written.global.tune.maxrewrite = Some(4_000);
    written.global.tune.maxaccept = Some(-1);
    written.global.maxconn = Some(1_000);
    let global = compiled(&written).global;
    assert_eq!((global.bufsize, global.maxrewrite, global.maxaccept), (1_008, 504, usize::MAX));
    assert_eq!((global.descriptors, global.pool_low_descriptors, global.pool_high_descriptors), (2_013, 402, 503));
    written.global.ulimit_n = Some(9_000);
    assert_eq!(compiled(&written).global.descriptors, 9_000);
}

#[test]
fn log_lines_get_the_default_format_and_port() {
    let named = inet(HostSpec::Name("known".to_owned()), PortSpec::None);
    let mut written = spec(Vec::new());
    written.global.logs = vec![log_line(LogTargetSpec::Address(named)), log_line(LogTargetSpec::Descriptor(1))];
    let logs = compiled(&written).global.logs;
    assert_eq!(logs[0].address, crate::program::LogAddress::Inet(([192, 0, 2, 7], 514).into()));
    assert_eq!((logs[0].format, logs[1].format), (SyslogFormat::Local, SyslogFormat::Local));
    written.global.log_send_hostname = Some(None);
    assert_eq!(compiled(&written).global.logs[1].format, SyslogFormat::Rfc3164);
}

#[test]
fn binds_without_an_id_get_the_lowest_that_is_left() {
    let mut front = frontend("f");
    front.binds = vec![bind(); 4];
    (front.binds[1].id, front.binds[2].shards) = (Some(2), Some(ShardsSpec::Number(64)));
    front.binds[3].name = Some("public".to_owned());
    let mut written = spec(vec![front]);
    written.global.nbthread = Some(4);
    let program = compiled(&written);
    let binds = &program.proxies[0].frontend.as_ref().unwrap().binds;
    let ids: Vec<(u32, &str)> = binds.iter().map(|bind| (bind.id, &*bind.name)).collect();
    assert_eq!(ids, [(1, "1"), (2, "2"), (3, "3"), (4, "public")]);
    assert_eq!([binds[0].shards, binds[2].shards], [1, 4]);
}
