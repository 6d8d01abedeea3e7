//! Shared by the targets of samples: names of a small configuration, and a context over any request. Must never make an
//! evaluation depend on anything that changes from run to run.

use base::moment::{Moment, WallTime};
use bumpalo::Bump;
use expression::Names;
use expression::sample::{Bytes, Context, Direction, Meter, Probes, Transaction, Transport, Value};
use expression::variable::{SessionStore, Store, Variables};
use expression::vocabulary::Vocabulary;
use policy::running::TABLES;
use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use wire::h1::{HeadLimits, Parse, Scan, parse_request};
use wire::http::Head;

/// Maximum size in bytes of a text that an evaluation may build.
pub const LIMIT: usize = 16_384;

/// One frontend, one backend with one server, one map.
pub struct FewNames;

impl Names for FewNames {
    fn frontend(&self, name: &str) -> Option<usize> {
        (name == "f").then_some(0)
    }

    fn backend(&self, name: &str) -> Option<usize> {
        (name == "b").then_some(1)
    }

    fn server(&self, name: &str) -> Result<(usize, usize), String> {
        if name == "b/s" { Ok((1, 0)) } else { Err(format!("unable to find server '{name}'")) }
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
        match path {
            "k" => Ok(include_bytes!("../../expression/tests/keys/p256.pub").to_vec()),
            "c" => Ok(include_bytes!("../../expression/tests/keys/rsa.crt").to_vec()),
            "m" => Ok(b"a 1\nb b\n10.0.0.0/8 192.0.2.1\n^x(.*)y \\1\n".to_vec()),
            _ => Err("no such file".to_owned()),
        }
    }
}

struct Fixed;

impl Probes for Fixed {
    fn source(&self) -> Option<SocketAddr> {
        Some(SocketAddr::from(([192, 0, 2, 1], 1000)))
    }

    fn destination(&self) -> Option<SocketAddr> {
        Some(SocketAddr::from(([203, 0, 113, 9], 80)))
    }

    fn wall(&self) -> WallTime {
        WallTime { seconds: 1_700_000_000, nanos: 123_456_789 }
    }

    fn random(&self) -> u64 {
        0x0123_4567_89ab_cdef
    }

    fn transport(&self, _: Transport) -> Option<Value<'static>> {
        None
    }

    fn is_local(&self, _: IpAddr) -> Option<bool> {
        Some(false)
    }
}

/// Provides a context over `input`: as a request with a body if it is one, and as a stream's first bytes in any case.
pub fn with_context<T>(input: &[u8], with: impl FnOnce(&Context<'_>) -> T) -> T {
    let limits = HeadLimits { max_fields: 101, max_head: 15_360, accept_unsafe: true, ..HeadLimits::default() };
    let mut head = Head::new();
    let parsed = parse_request(input, &limits, &mut Scan::default(), &mut head);
    let (request, bytes) = match parsed {
        Ok(Parse::Complete { consumed }) => (Some(&head), &input[consumed..]),
        _ => (None, input),
    };
    let (arena, session, stream) = (Bump::new(), SessionStore::default(), RefCell::new(Store::default()));
    with(&Context {
        program: None,
        live: None,
        lists: None,
        arena: &arena,
        limit: LIMIT,
        now: Moment::from_nanos(1_000_000_000),
        probes: &Fixed,
        direction: Direction::Request,
        frontend: None,
        backend: None,
        server: None,
        request,
        unread: None,
        response: None,
        bytes: Bytes::new(bytes, true),
        transaction: Transaction::default(),
        variables: Variables { session: Some(&session), stream: Some(&stream), ..Variables::default() },
        captures: None,
        incomplete: Cell::new(false),
        exhausted: Cell::new(false),
        meter: &Meter::default(),
    })
}
