//! Rows registered from outside of the crate: a fetch, a converter and an action that a configuration uses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use base::moment::{Moment, WallTime};
use bumpalo::Bump;
use config::environment::Environment;
use config::keyword::rule::HTTP_REQUEST;
use config::spec::Family;
use config::{InputFile, LoadOptions, LoadedConfiguration};
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_policy as policy;
use wire::h1::{HeadLimits, Parse, Scan, parse_request};
use wire::http::Head;

use expression::convert::Converter;
use expression::fetch::Fetch;
use expression::rows::Unregistered;
use expression::sample::{
    Bytes, Context, Direction, EvalPlace, Meter, Places, Probes, Transaction, Transport, Type, Value,
};
use expression::variable::Variables;
use expression::vocabulary::Vocabulary;
use expression::{Expression, Kind, Names, Signature};
use policy::program::Program;
use policy::registry::Registry;
use policy::rule::{Action, Edit, RegisteredAction, RuleError};

fn path_length() -> Fetch {
    Fetch::owned("x.path_length", Signature::NONE, Type::Int, Places::REQUEST, |context, _| {
        Some(Value::Int(context.request?.target().len() as i64))
    })
}

/// A converter that multiplies and counts its calls.
fn times(calls: &Arc<AtomicUsize>) -> Converter {
    let calls = Arc::clone(calls);
    let signature = Signature::owned(1, vec![Kind::Int, Kind::Int]);
    Converter::owned("x.times", signature, Type::Int, Type::Int, move |_, value, arguments| {
        calls.fetch_add(1, Ordering::Relaxed);
        let Value::Int(number) = value else { return None };
        Some(Value::Int(number * arguments.int(0)? + arguments.int(1).unwrap_or(0)))
    })
}

/// `x.mark(<name>) <format>`: sets a header field.
fn mark() -> RegisteredAction {
    RegisteredAction::new("x.mark", HTTP_REQUEST, |words, parsing| {
        let name = words.parentheses().ok_or_else(|| RuleError::new("expects a name in parentheses"))?;
        let format = parsing.format(words.expect("expects a format")?)?;
        Ok(Action::Edit(Edit::SetHeader(name.as_bytes().into(), format)))
    })
}

fn registry(calls: &Arc<AtomicUsize>) -> Registry {
    let mut registry = Registry::none();
    registry.vocabulary.add_fetch(path_length()).unwrap();
    registry.vocabulary.add_converter(times(calls)).unwrap();
    registry.add_action(mark()).unwrap();
    registry
}

struct TestRegistry(Registry);

impl policy::Resolver for TestRegistry {
    fn resolve(&mut self, host: &str, _: Family) -> Result<IpAddr, String> {
        Err(format!("{host} is not looked up"))
    }

    fn registry(&self) -> &Registry {
        &self.0
    }
}

impl Names for TestRegistry {
    fn frontend(&self, _: &str) -> Option<usize> {
        None
    }

    fn backend(&self, _: &str) -> Option<usize> {
        None
    }

    fn server(&self, name: &str) -> Result<(usize, usize), String> {
        Err(format!("no server '{name}'"))
    }

    fn userlist(&self, _: &str) -> Option<usize> {
        None
    }

    fn current(&self) -> Option<usize> {
        None
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, String> {
        Err(format!("no file '{path}'"))
    }

    fn vocabulary(&self) -> &Vocabulary {
        &self.0.vocabulary
    }
}

/// A frontend with these rules.
fn load(rules: &str) -> LoadedConfiguration {
    let text =
        format!("frontend f\n mode http\n timeout client 1s\n bind 127.0.0.1:8080\n{rules}\n http-request deny\n");
    let file = InputFile { name: "haproxy.cfg".to_owned(), bytes: text.into_bytes() };
    config::load(&[file], Environment::new(), &LoadOptions::default())
}

/// Returns the program, or the errors with their hints.
fn compile(rules: &str, registry: Registry) -> Result<Program, Vec<String>> {
    let loaded = load(rules);
    let mut found = loaded.diagnostics;
    let limits = policy::SystemLimits { descriptors: 2_000, ..policy::SystemLimits::default() };
    let program = policy::compile(&loaded.spec, &mut TestRegistry(registry), &limits, &mut found);
    let alerts = found.into_iter().filter(|diagnostic| diagnostic.is_alert());
    let errors: Vec<_> = alerts
        .map(|alert| [Some(alert.message), alert.hint].into_iter().flatten().collect::<Vec<_>>().join(" | "))
        .collect();
    if errors.is_empty() { Ok(program.unwrap()) } else { Err(errors) }
}

struct Nothing;

impl Probes for Nothing {
    fn source(&self) -> Option<SocketAddr> {
        None
    }

    fn destination(&self) -> Option<SocketAddr> {
        None
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
}

/// Evaluates the rules of a program for a request, and returns the resulting fields.
fn fields(program: &Program, request: &str) -> Vec<(String, String)> {
    let mut head = Head::new();
    let parsed = parse_request(request.as_bytes(), &HeadLimits::default(), &mut Scan::default(), &mut head);
    assert!(matches!(parsed, Ok(Parse::Complete { .. })), "{parsed:?}");
    for rule in &program.proxies[0].rules.http_request {
        let Action::Edit(edit) = &rule.action else { continue };
        let mut text = Vec::new();
        let (arena, meter) = (Bump::new(), Meter::default());
        let context = Context {
            program: Some(program),
            live: None,
            lists: None,
            arena: &arena,
            limit: 16_384,
            now: Moment::from_nanos(1),
            probes: &Nothing,
            direction: Direction::Request,
            frontend: None,
            backend: None,
            server: None,
            request: Some(&head),
            unread: None,
            response: None,
            bytes: Bytes::new(b"", true),
            transaction: Transaction::default(),
            variables: Variables::default(),
            captures: None,
            incomplete: Cell::new(false),
            exhausted: Cell::new(false),
            meter: &meter,
        };
        if rule.condition.as_ref().is_none_or(|condition| condition.holds(&context)) {
            edit.format().unwrap().render_in(&context, &mut text);
            edit.apply(&mut head, &text, 16_384).unwrap();
        }
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    head.fields().map(|(name, value)| (text(name), text(value))).collect()
}

#[test]
fn a_configuration_uses_registered_rows() {
    let calls = Arc::new(AtomicUsize::new(0));
    let rules = " acl long x.path_length gt 4\n\
                 http-request x.mark(a) %[x.path_length,x.times(10)] if long\n\
                 http-request x.mark(b) %[x.path_length,x.times(2,1),mul(2)] if { x.path_length,x.times(2) eq 4 }";
    let program = compile(rules, registry(&calls)).unwrap();
    let row = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(fields(&program, "GET /long HTTP/1.1\r\n\r\n"), [row("a", "50")]);
    assert_eq!(calls.load(Ordering::Relaxed), 2, "once for the format, once for the condition that does not hold");
    assert_eq!(fields(&program, "GET /x HTTP/1.1\r\n\r\n"), [row("b", "10")]);
}

#[test]
fn unknown_names_stay_errors_whose_hints_know_what_is_registered() {
    let calls = Arc::default();
    let rows = [
        (" http-request set-header a %[x.path_lenght]", "did you mean 'x.path_length'?"),
        (" http-request set-header a %[x.path_length,x.time(1)]", "did you mean 'x.times'?"),
        (" http-request deny if { x.path_lenght gt 1 }", "did you mean 'x.path_length'?"),
        (" http-request x.marc(a) b", "but got 'x.marc(a)'. | did you mean 'x.mark'?"),
        (" http-response x.mark(a) b", "but got 'x.mark(a)'."),
        (" http-request x.mark b", "expects a name in parentheses"),
        (" http-request set-header a %[x.path_length,x.times]", "in converter 'x.times' : expected type 'integer'"),
        (" http-response set-header a %[x.path_length]", "may not be reliably used here"),
    ];
    for (rules, expected) in rows {
        let errors = compile(rules, registry(&calls)).expect_err(rules);
        assert!(errors.len() == 1 && errors[0].contains(expected), "{rules}: {errors:?}");
    }
    let errors = compile(" tcp-request content lua.f", registry(&calls)).unwrap_err();
    assert!(errors[0].contains("'tcp-request content' expects") && errors[0].contains("(got 'lua.f')"), "{errors:?}");
    let errors = compile(" http-request x.mark(a) %[x.path_length]", Registry::none()).unwrap_err();
    assert!(errors[0].contains("'http-request' expects"), "{errors:?}");
}

#[test]
fn names_that_are_taken_or_that_nobody_could_write_are_refused() {
    let fetch = |name: &str| {
        let places = Places::REQUEST;
        registry(&Arc::default()).vocabulary.add_fetch(Fetch::owned(
            name,
            Signature::NONE,
            Type::Int,
            places,
            |_, _| None,
        ))
    };
    let waiting = expression::fetch::ROWS.waiting()[0];
    for taken in ["path", "hdr_beg", waiting, "x.path_length"] {
        assert_eq!(fetch(taken), Err(Unregistered::Taken), "{taken}");
    }
    for malformed in ["", "a b", "a(b)", "a,b", "ä"] {
        assert_eq!(fetch(malformed), Err(Unregistered::Malformed), "{malformed}");
    }
    assert_eq!(fetch("x.other"), Ok(()));
    let mut registry = registry(&Arc::default());
    let mut converter = |name: &str| {
        registry.vocabulary.add_converter(Converter::owned(
            name,
            Signature::NONE,
            Type::Int,
            Type::Int,
            |_, value, _| Some(value),
        ))
    };
    assert_eq!(
        ["upper", "x.times", "x.same"].map(&mut converter),
        [Err(Unregistered::Taken), Err(Unregistered::Taken), Ok(())]
    );
    let mut action =
        |name: &str| registry.add_action(RegisteredAction::new(name, HTTP_REQUEST, |_, _| Ok(Action::Nothing)));
    let expected = [Err(Unregistered::Malformed), Err(Unregistered::Taken), Ok(())];
    assert_eq!(["deny", "x.mark", "x.nothing"].map(&mut action), expected);
}

#[test]
fn expressions_of_rows_that_were_registered_anew_differ() {
    let calls = Arc::default();
    let (one, other) = (TestRegistry(registry(&calls)), TestRegistry(registry(&calls)));
    let read =
        |text: &str, names: &TestRegistry| Expression::parse_all(text, EvalPlace::FrontRequestHead, names).unwrap();
    for text in ["x.path_length", "path,length,x.times(2)"] {
        assert_eq!(read(text, &one), read(text, &TestRegistry(one.0.clone())), "{text}");
        assert_ne!(read(text, &one), read(text, &other), "{text}");
    }
    assert_eq!(read("path,length", &one), read("path,length", &other));
}

#[test]
fn a_backend_that_the_runtime_api_adds_finds_what_its_program_was_compiled_with() {
    let later = load(" http-request deny\nbackend late\n mode http\n http-request x.mark(a) b").spec;
    let add = |registry: Registry| {
        let program = compile("", registry).unwrap();
        policy::compile::add_backend(&later, &program, 0).map(|(proxy, _)| proxy.rules.http_request.len())
    };
    assert_eq!(add(registry(&Arc::default())), Ok(2), "with the line that follows all");
    assert!(add(Registry::none()).unwrap_err().contains("but got 'x.mark(a)'"));
}
