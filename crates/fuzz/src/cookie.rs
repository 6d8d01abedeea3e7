//! Any bytes as the cookies of a request and of a response: no panic, a cookie hidden from servers is removed by one
//! pass, and at most one cookie is added to a response.


use config::spec::{CookieMode, CookieSpec};
use live::persistence::{Answering, Cookie, CookieServer, Lookup, RequestCookieState};
use wire::http::{Head, Method};

/// Server 0 is `a`, server 1 is `b`; that of `d` is down.
struct Servers;

impl Lookup for Servers {
    fn find(&self, value: &[u8]) -> CookieServer {
        match value {
            b"a" => CookieServer::Server(0),
            b"b" => CookieServer::Server(1),
            b"d" => CookieServer::Down,
            _ => CookieServer::Unknown,
        }
    }

    fn is_usable(&self, server: usize) -> bool {
        server < 2
    }
}

/// Returns the cookie settings for the first two bytes.
fn cookie(mode: u8, flags: u8) -> Cookie {
    let is = |bit: u8| flags >> bit & 1 == 1;
    let modes = [None, Some(CookieMode::Insert), Some(CookieMode::Rewrite), Some(CookieMode::Prefix)];
    Cookie::new(&CookieSpec {
        name: "S".to_owned(),
        mode: modes[usize::from(mode % 4)],
        indirect: is(0),
        nocache: is(1),
        postonly: is(2),
        preserve: is(3),
        max_idle: u32::from(is(4)) * 100,
        max_life: u32::from(is(5)) * 1_000,
        ..CookieSpec::default()
    })
}

fn set_cookies(head: &Head) -> usize {
    head.all(b"set-cookie").count()
}

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [mode, flags, rest @ ..] = data else { return };
    let cookie = cookie(*mode, *flags);
    let (mut request, mut answer) = (Head::new(), Head::new());
    for (number, line) in rest.split(|byte| *byte == b'\n').enumerate().take(16) {
        match number % 2 {
            0 => request.append(b"cookie", line),
            _ => answer.append(b"set-cookie", line),
        }
    }
    let now = 1_700_000_000;
    let mut state = cookie.read(&mut request, now, flags >> 6 & 1 == 1, &Servers);
    assert!(state.server.is_none_or(|server| server < 2));
    if cookie.indirect && cookie.mode == Some(CookieMode::Insert) {
        let again = cookie.read(&mut request, now, false, &Servers);
        assert!(again.presented == RequestCookieState::None, "{request:?}");
    }
    let before = set_cookies(&answer);
    let method = if flags >> 7 == 1 { Method::Post } else { Method::Get };
    answer.set_status(200, b"OK");
    cookie.answer(&mut answer, &mut state, &Answering { value: Some(b"a"), method, now });
    assert!(set_cookies(&answer) <= before + 1);
}
