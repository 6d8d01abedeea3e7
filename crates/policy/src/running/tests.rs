//! Evaluates rows with a running program: the frontend `fe` uses the backend `be` with the server `srv`.

use super::TABLES;
use crate::compile::tests::{backend, compiled, frontend, spec};
use crate::program::Program;
use base::moment::{Moment, WallTime};
use bumpalo::Bump;
use expression::record::Timings;
use expression::sample::{
    Bytes, Context, CounterSource, Direction, EvalPlace, Meter, OwnLimits, Probes, SessionFacts, StreamFacts,
    Transaction, Transport, Value,
};
use expression::variable::Variables;
use expression::vocabulary::Vocabulary;
use expression::{Expression, Names};
use live::counters::Counters;
use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;
use wire::http::Head;

/// The names of that program.
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
        const ALL: &Vocabulary = &Vocabulary::new(&TABLES);
        ALL
    }

    fn userlist(&self, _: &str) -> Option<usize> {
        None
    }

    fn current(&self) -> Option<usize> {
        Some(0)
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, String> {
        Err(format!("no file '{path}' here"))
    }
}

/// Properties of a connected stream with limits of its own, whose client 192.0.2.1:1000 connected to 203.0.113.9:80.
struct FixedProbes(Option<Counters>);

impl Probes for FixedProbes {
    fn source(&self) -> Option<SocketAddr> {
        "192.0.2.1:1000".parse().ok()
    }

    fn destination(&self) -> Option<SocketAddr> {
        "203.0.113.9:80".parse().ok()
    }

    fn wall(&self) -> WallTime {
        WallTime::default()
    }

    fn random(&self) -> u64 {
        0
    }

    fn transport(&self, _: Transport) -> Option<Value<'static>> {
        None
    }

    fn counters(&self) -> Option<&dyn CounterSource> {
        self.0.as_ref().map(|counters| counters as _)
    }

    fn session(&self) -> Option<SessionFacts<'_>> {
        Some(SessionFacts::default())
    }

    fn stream(&self) -> Option<StreamFacts> {
        Some(StreamFacts {
            timings: Timings { connected: Some(Moment::ZERO), ..Timings::default() },
            start_date: WallTime::default(),
            termination: *b"--",
            retries: 0,
            redispatched: false,
            priority: (0, 0),
            server_queue: 0,
            backend_queue: 0,
            is_normal: true,
            bytes_in: 0,
            bytes_out: 0,
            sent: 0,
            received: 0,
            number: 0,
            client_streams: 0,
            link: None,
            own: OwnLimits { client: Some(Duration::from_millis(1_500)), retries: Some(7), ..OwnLimits::default() },
            last_rule: None,
            waiting_rule: None,
        })
    }
}

/// The data that an expression is evaluated with.
#[derive(Default)]
pub(crate) struct Scene {
    program: Option<Program>,
    request: Option<Head>,
}

impl Scene {
    pub(crate) fn running() -> Self {
        let (mut front, mut back) = (frontend("fe"), backend("be"));
        back.servers[0].name.value = "srv".to_owned();
        front.default_backend = Some(config::span::Spanned::new("be".to_owned(), back.span));
        Self { program: Some(compiled(&spec(vec![front, back]))), request: None }
    }

    /// No program, and a request with that line and fields.
    pub(crate) fn request(method: &str, target: &str, fields: &[(&str, &str)]) -> Self {
        let mut head = Head::new();
        head.set_method(method.as_bytes());
        head.set_target(target.as_bytes());
        fields.iter().for_each(|(name, value)| head.append(name.as_bytes(), value.as_bytes()));
        Self { program: None, request: Some(head) }
    }

    /// Calls `with` with an evaluation context.
    pub(crate) fn with<T>(&self, with: impl FnOnce(&Context<'_>) -> T) -> T {
        let arena = Bump::new();
        let program = self.program.as_ref();
        let live = program.map(|program| program.live(7));
        let probes = FixedProbes(program.map(|program| program.counters(2)));
        with(&Context {
            program: program.map(|program| program as _),
            live: live.as_ref().map(|live| live as _),
            lists: None,
            arena: &arena,
            limit: 16_384,
            now: Moment::from_nanos(1_000_000_000),
            probes: &probes,
            direction: Direction::Request,
            frontend: program.map(|_| 0),
            backend: program.map(|_| 1),
            server: program.map(|_| 0),
            request: self.request.as_ref(),
            unread: None,
            response: None,
            bytes: Bytes::new(&[], true),
            transaction: Transaction::default(),
            variables: Variables::default(),
            captures: None,
            incomplete: Cell::new(false),
            exhausted: Cell::new(false),
            meter: &Meter::default(),
        })
    }

    /// Evaluates an expression to text; `<none>` if there is no sample, `!` and the message if it is rejected.
    pub(crate) fn eval(&self, text: &str) -> String {
        let name = text.split(['(', ',']).next().unwrap_or_default();
        let row = TABLES.fetches.find(name);
        let place = row.and_then(|row| EvalPlace::ALL.into_iter().find(|place| row.places.has(*place)));
        match Expression::parse_all(text, place.unwrap_or(EvalPlace::FrontRequestHead), &FewNames) {
            Ok(expression) => self.with(|context| match expression.evaluate(context) {
                Some(value) => String::from_utf8_lossy(context.as_text(value).unwrap_or(b"<no text>")).into_owned(),
                None => "<none>".to_owned(),
            }),
            Err(error) => format!("!{}", error.message),
        }
    }
}

/// Compares expressions with their expected results.
#[track_caller]
pub(crate) fn check_rows(scene: &Scene, rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(scene.eval(text), *expected, "{text}");
    }
}

#[test]
fn names_are_unique_and_documented() {
    TABLES.fetches.assert_sound(|row| (row.doc, row.signature.required, row.signature.kinds.len()));
    TABLES.converters.assert_sound(|row| (row.doc, row.signature.required, row.signature.kinds.len()));
}
