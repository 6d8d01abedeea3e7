//! Evaluation of expressions on made-up samples, and rejected expressions.

use super::*;
use crate::capture::CapturePlan;
use crate::key::TokenLimits;
use crate::record::Timings;
use crate::sample::{
    Bytes, Configuration, Cost, Direction, Probes, ProcessFacts, SessionFacts, StreamFacts, Transaction, Transport,
};
use crate::sample::{ConnectionError, LinkFacts, OwnLimits, ProtocolFacts, RulePlace, Unread};
use crate::sample::{Meter, UsageOf};
use crate::variable::{SessionStore, Store, Variables};
use crate::vocabulary::Tables;
use crate::{convert, fetch};
use base::moment::{Moment, WallTime, ZoneName};
use bumpalo::Bump;
use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;
use std::time::Duration;
use wire::http::Head;
use wire::proxy_protocol::{Header, ParsedHeader};

/// The names of a configuration with one frontend `fe` and one backend `be` that has the server `srv`.
pub(crate) struct FewNames;

impl Names for FewNames {
    fn frontend(&self, name: &str) -> Option<usize> {
        (name == "fe").then_some(0)
    }

    fn backend(&self, name: &str) -> Option<usize> {
        (name == "be").then_some(1)
    }

    fn server(&self, name: &str) -> Result<(usize, usize), String> {
        if name == "be/srv" { Ok((1, 0)) } else { Err(format!("unable to find server '{name}'")) }
    }

    fn vocabulary(&self) -> &Vocabulary {
        static TABLES: Tables = Tables { fetches: &fetch::ROWS, converters: &convert::ROWS };
        const PLAIN: &Vocabulary = &Vocabulary::new(&TABLES);
        PLAIN
    }

    fn userlist(&self, _: &str) -> Option<usize> {
        None
    }

    fn sink(&self, name: &str) -> Option<Sink> {
        match name {
            "buf0" => Some(Sink::Ring(0)),
            "r1" => Some(Sink::Ring(1)),
            "stdout" => Some(Sink::Descriptor(1)),
            "stderr" => Some(Sink::Descriptor(2)),
            _ => None,
        }
    }

    fn current(&self) -> Option<usize> {
        Some(0)
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, String> {
        let content: &[u8] = match path {
            "m.map" => {
                b"a first\na second\n/a short\n/a/b longest\n.gif picture\ndir directory\ndom.org domain\nsub part\n"
            }
            "n.map" => b"12 144\n144 1\n",
            "i.map" => b"10.0.0.0/8 192.0.2.1\n10.1.0.0/16 192.0.2.2\n",
            "r.map" => b"^host-([0-9]+)$ n\\1\n",
            "routes.map" => b"# Routes\n*/* all\nexample.com/a/* a\nexample.com/a/*;header:x=1 x\n",
            "bad-routes.map" => b"*/* all\na.b/;method:GET b\n",
            "rsa.pub" => include_bytes!("../../tests/keys/rsa.pub"),
            "rsa.crt" => include_bytes!("../../tests/keys/rsa.crt"),
            "p256.pub" => include_bytes!("../../tests/keys/p256.pub"),
            "p521.pub" => include_bytes!("../../tests/keys/p521.pub"),
            _ => return Err(format!("no file '{path}' here")),
        };
        Ok(content.to_vec())
    }
}

/// A client at 192.0.2.1:1000 connected to 203.0.113.9:80, as announced by a balancer at 192.0.2.77:7777. Its stream
/// began a second ago.
#[derive(Default)]
pub(crate) struct FixedProbes {
    header: Option<Header>,
}

thread_local! {
    /// The output of `debug`, with more capacity than any test needs.
    static TOLD: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(16 * 1024));
}

/// The lines that `debug` has written on this thread, each after the name of its sink.
pub(crate) fn told() -> Vec<String> {
    TOLD.with_borrow(|told| String::from_utf8_lossy(told).lines().map(str::to_owned).collect())
}

/// A PROXY header with an authority and an identifier.
fn header() -> Option<Header> {
    let mut bytes = wire::proxy_protocol::SIGNATURE.to_vec();
    bytes.extend([0x21, 0x11, 0, 25, 192, 0, 2, 1, 203, 0, 113, 9, 3, 232, 0, 80, 2, 0, 3]);
    bytes.extend(b"a.b\x05\x00\x04id-1");
    match wire::proxy_protocol::decode(&bytes, 16_384) {
        Ok(ParsedHeader::Complete { header, .. }) => Some(header),
        _ => None,
    }
}

impl Probes for FixedProbes {
    fn unique_id(&self) -> Option<&[u8]> {
        Some(b"id-7")
    }

    fn local_offset(&self, _: i64) -> i32 {
        3_600
    }

    fn zone_name(&self, _: i64) -> ZoneName {
        ZoneName::new(b"CET")
    }

    fn source(&self) -> Option<SocketAddr> {
        "192.0.2.1:1000".parse().ok()
    }

    fn destination(&self) -> Option<SocketAddr> {
        "203.0.113.9:80".parse().ok()
    }

    fn wall(&self) -> WallTime {
        WallTime { seconds: 1_700_000_000, nanos: 123_456_789 }
    }

    fn random(&self) -> u64 {
        0x0123_4567_89ab_cdef
    }

    fn transport(&self, fact: Transport) -> Option<Value<'static>> {
        match fact {
            Transport::ClientRtt => Some(Value::Int(1500)),
            Transport::ServerRtt => Some(Value::Int(2500)),
            Transport::ClientAddress => Some(Value::Ipv4([192, 0, 2, 77].into())),
            Transport::ClientPort => Some(Value::Int(7777)),
            _ => None,
        }
    }

    fn lend_saved_syn(&self, take: &mut dyn FnMut(&[u8])) {
        take(&[0x45, 0, 0, 0x2c]);
    }

    fn cost(&self) -> Option<Cost> {
        Some(Cost { calls: 4, busy: Duration::from_nanos(6_002), late: Duration::from_nanos(900) })
    }

    fn usage(&self, of: UsageOf) -> Option<u32> {
        Some(if of == UsageOf::Worker { 30 } else { 20 })
    }

    fn tell(&self, sink: Sink, line: &[u8]) {
        let sink: &[u8] = match sink {
            Sink::Descriptor(1) => b"stdout ",
            Sink::Descriptor(_) => b"stderr ",
            Sink::Ring(0) => b"buf0 ",
            Sink::Ring(_) => b"ring ",
        };
        TOLD.with_borrow_mut(|told| [sink, line, b"\n"].iter().for_each(|part| told.extend_from_slice(part)));
    }

    fn is_local(&self, address: IpAddr) -> Option<bool> {
        Some(address == IpAddr::from([203, 0, 113, 9]))
    }

    fn process(&self) -> ProcessFacts<'_> {
        ProcessFacts { pid: 42, thread: 3, stopping: false, uptime: 7, hostname: "lb1", quic: true }
    }

    fn environment(&self, name: &[u8]) -> Option<&[u8]> {
        (name == b"HOME").then_some(b"/home/weir")
    }

    fn session(&self) -> Option<SessionFacts<'_>> {
        let accept_date = WallTime { seconds: 1_600_000_000, nanos: 0 };
        Some(SessionFacts {
            bind: 0,
            accept_date,
            header: self.header.as_ref(),
            error: ConnectionError::PROXY_TIMEOUT,
            tls: None,
            is_secure: false,
            protocol: ProtocolFacts::default(),
        })
    }

    fn stream(&self) -> Option<StreamFacts> {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        Some(StreamFacts {
            priority: (0, 0),
            timings: Timings {
                start: at(0),
                handshake: None,
                first_byte: Some(at(100)),
                request: Some(at(150)),
                queued: Some(at(160)),
                connected: Some(at(180)),
                response: Some(at(210)),
            },
            start_date: WallTime { seconds: 1_600_000_000, nanos: 250_000_000 },
            termination: *b"SD",
            retries: 2,
            redispatched: true,
            server_queue: 4,
            backend_queue: 5,
            is_normal: false,
            bytes_in: 11,
            bytes_out: 22,
            sent: 33,
            received: 44,
            number: 9,
            client_streams: 3,
            link: Some(LinkFacts { answers: 1, ..LinkFacts::default() }),
            own: OwnLimits { client: Some(Duration::from_millis(1_500)), retries: Some(7), ..OwnLimits::default() },
            last_rule: Some(RulePlace { file: 0, line: 12 }),
            waiting_rule: None,
        })
    }
}

/// A configuration that contains only files.
pub(crate) struct Files(pub &'static [&'static str]);

impl Configuration for Files {
    fn keys(&self) -> &Keys {
        static NONE: LazyLock<Keys> = LazyLock::new(Keys::default);
        &NONE
    }

    fn tokens(&self) -> &TokenLimits {
        &TokenLimits::DEFAULT
    }

    fn file(&self, number: u32) -> Option<&str> {
        self.0.get(number as usize).copied()
    }

    fn is_http(&self, _: usize) -> bool {
        true
    }

    fn captures(&self, _: usize) -> Option<&CapturePlan> {
        None
    }
}

/// The context of an evaluation in a test.
#[derive(Default)]
pub(crate) struct Scene {
    /// Head of the request.
    pub request: Option<Head>,
    /// Head of the response.
    pub response: Option<Head>,
    /// The inspected bytes, or the body.
    pub bytes: Vec<u8>,
    /// No more bytes will arrive.
    pub complete: bool,
    /// State of request and response as a pair.
    pub transaction: Transaction,
    /// File names of the configuration; the frontend speaks HTTP.
    pub files: Option<Files>,
}

impl Scene {
    /// A request with that line and those fields.
    pub(crate) fn request(method: &str, target: &str, fields: &[(&str, &str)]) -> Self {
        let mut head = Head::new();
        head.set_method(method.as_bytes());
        head.set_target(target.as_bytes());
        fields.iter().for_each(|(name, value)| head.append(name.as_bytes(), value.as_bytes()));
        Self { request: Some(head), complete: true, ..Self::default() }
    }

    /// A response with that status and those fields, to a request for `/`.
    pub(crate) fn response(status: u16, fields: &[(&str, &str)]) -> Self {
        let mut head = Head::new();
        head.set_status(status, b"");
        fields.iter().for_each(|(name, value)| head.append(name.as_bytes(), value.as_bytes()));
        Self { response: Some(head), ..Self::request("GET", "/", &[]) }
    }

    /// Those bytes, of which no more will arrive.
    pub(crate) fn bytes(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), complete: true, ..Self::default() }
    }

    /// Calls `with` with the context.
    pub(crate) fn with<T>(&self, with: impl FnOnce(&Context<'_>) -> T) -> T {
        // As large as a worker's arena for evaluations, so that it never grows here.
        let arena = Bump::with_capacity(64 * 1024);
        let (session, stream) = (SessionStore::default(), RefCell::new(Store::default()));
        let variables = Variables { session: Some(&session), stream: Some(&stream), ..Variables::default() };
        let probes = FixedProbes { header: header() };
        let unread = Unread::default();
        with(&Context {
            program: self.files.as_ref().map(|files| files as _),
            live: None,
            lists: None,
            arena: &arena,
            limit: 16_384,
            now: Moment::from_nanos(1_000_000_000),
            probes: &probes,
            direction: if self.response.is_some() { Direction::Response } else { Direction::Request },
            frontend: self.files.as_ref().map(|_| 0),
            backend: None,
            server: None,
            request: self.request.as_ref(),
            unread: Some(&unread),
            response: self.response.as_ref(),
            bytes: Bytes::new(&self.bytes, self.complete),
            transaction: self.transaction,
            variables,
            captures: None,
            incomplete: Cell::new(false),
            exhausted: Cell::new(false),
            meter: &Meter::default(),
        })
    }

    /// The sample of an expression as text; `<none>` without a sample, `<incomplete>` when it may still arrive, `!` and
    /// the message when the expression is rejected.
    pub(crate) fn eval(&self, text: &str) -> String {
        let expression = match parse_anywhere(text) {
            Ok(expression) => expression,
            Err(error) => return format!("!{}", error.message),
        };
        self.with(|context| {
            let result = match expression.evaluate(context) {
                None if context.incomplete.get() => "<incomplete>".to_owned(),
                None => "<none>".to_owned(),
                Some(Value::Bin(bytes)) => base::hex::encode_lower(bytes),
                Some(value) => String::from_utf8_lossy(context.as_text(value).unwrap_or(b"<no text>")).into_owned(),
            };
            let counted = allocation_counter::measure(|| {
                let _ = expression.evaluate(context);
            });
            // The first evaluation has allocated all memory needed.
            assert!(may_allocate(text) || counted.count_total == 0, "{text} allocates {} times", counted.count_total);
            result
        })
    }
}

/// Whether an expression allocates at every evaluation: the groups of a match are recorded per lookup, and tokens are
/// verified and decrypted in allocated memory.
fn may_allocate(text: &str) -> bool {
    ["map_regm", "jwt_verify", "jwt_decrypt"].iter().any(|name| text.contains(name))
}

/// Parses an expression at the first place where its fetch is available.
pub(crate) fn parse_anywhere(text: &str) -> Result<Expression, ExpressionError> {
    let name = text.split(['(', ',']).next().unwrap_or_default();
    let place = fetch::ROWS.find(name).and_then(|row| EvalPlace::ALL.into_iter().find(|place| row.places.has(*place)));
    Expression::parse_all(text, place.unwrap_or(EvalPlace::FrontRequestHead), &FewNames)
}

/// Evaluates expressions and compares the results.
#[track_caller]
pub(crate) fn check_rows(scene: &Scene, rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(scene.eval(text), *expected, "{text}");
    }
}

#[test]
fn expressions_are_evaluated() {
    check_rows(
        &Scene::default(),
        &[
            ("str(abc)", "abc"),
            ("str('a,b'),length", "3"),
            ("str(aBc),upper,lower", "abc"),
            ("int(-5)", "-5"),
            ("bin(00ff)", "00ff"),
            ("ipv4(1.2.3.4)", "1.2.3.4"),
            ("ipv6(::1)", "::1"),
            ("bool(true),not", "0"),
            ("var(txn.x)", "<none>"),
            ("var(txn.x,none)", "none"),
            ("always_true", "1"),
        ],
    );
}

#[test]
fn what_is_wrong_is_told() {
    check_rows(
        &Scene::default(),
        &[
            ("strr(a)", "!unknown fetch method 'strr'"),
            ("int", "!fetch method 'int' : expected type 'integer' at position 1, but got nothing"),
            (
                "str(a),iif(a)",
                "!invalid arg 2 in converter 'iif' : missing arguments (got 1/2), type 'string' expected",
            ),
            (
                "str(a),field",
                "!invalid arg 1 in converter 'field' : expected type 'integer' at position 1, but got nothing",
            ),
            ("str(a", "!fetch method 'str' : expected ')'"),
            ("always_true(1)", "!fetch method 'always_true' : expected ')' before '1)'"),
            ("int(x)", "!fetch method 'int' : failed to parse 'x' as type 'integer' at position 1"),
            ("str(a),nothing", "!unknown converter 'nothing'"),
            ("str(a),", "a"),
            ("str(a),,upper,", "A"),
            ("str(a)x", "!missing comma after fetch keyword"),
            (
                "internal.htx.size",
                "!fetch method 'internal.htx.size' shows how HAProxy keeps messages in memory; Weir keeps them in another way and has nothing to show there",
            ),
            (
                "var(nope)",
                "!invalid args in fetch method 'var' : invalid variable name 'nope'. A variable name must start with its scope. The scope can be 'proc', '(p)sess', '(p)txn', '(p)req', '(p)res' or 'check'",
            ),
        ],
    );
}
