//! Tests of filters with exact times (configuration manual, section 9): the amount of data with a bandwidth limit, and
//! the output of a trace.

use std::sync::{Mutex, PoisonError};

use testkit::{Peer, Service, Stopwatch, both};

use crate::messages::*;
use crate::world::*;

const LIMITS: &str = "filter bwlim-in up default-limit 10000 default-period 2s\n \
                      filter bwlim-out down default-limit 10000 default-period 2s";

/// Reads a limited body: the limit at once, and the same amount after every period.
async fn expect_limited(peer: &mut Peer, watch: Stopwatch, periods: usize) {
    peer.receive(10_000).await;
    watch.took(0);
    for period in 2..=periods {
        // It is sent evenly, in pieces of a tenth, and nothing may precede that.
        peer.receive(5_000).await;
        let half = watch.elapsed().as_millis() as usize;
        assert!((period * 2_000 - 1_200..=period * 2_000 - 800).contains(&half), "{half} in period {period}");
        peer.receive(5_000).await;
        watch.took(period as u64 * 2_000);
    }
}

#[test]
fn what_the_client_gets_is_limited_to_the_byte() {
    let rules = "http-request set-bandwidth-limit down";
    listen(&format!("{LIMITS}\n {rules}\n server s1 10.0.1.1:80")).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        let watch = Stopwatch::start();
        let sends = async {
            server.send("HTTP/1.1 200 OK\r\ncontent-length: 50000\r\n\r\n").await;
            server.send(vec![b'x'; 50_000]).await;
        };
        let receives = async {
            client.expect("HTTP/1.1 200 OK\r\ncontent-length: 50000\r\n\r\n").await;
            expect_limited(&mut client, watch, 5).await;
        };
        both(sends, receives).await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/10000 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn what_the_server_gets_is_limited_to_the_byte() {
    let rules = "http-request set-bandwidth-limit up";
    listen(&format!("{LIMITS}\n {rules}\n server s1 10.0.1.1:80")).run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(post(30_000)).await;
        let watch = Stopwatch::start();
        let mut server = s1.accept().await;
        server.expect(post_at_server(30_000)).await;
        both(client.send(vec![b'x'; 30_000]), expect_limited(&mut server, watch, 3)).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
    });
}

/// No timeout expires while Weir itself holds bytes back.
#[test]
fn a_pause_that_weir_makes_is_nobodys_timeout() {
    for rules in ["http-request set-bandwidth-limit down", "mode tcp\n tcp-request content set-bandwidth-limit down"] {
        let timeouts = "timeout client 1s\n timeout server 1s";
        listen(&format!("{timeouts}\n {LIMITS} min-size 9k\n {rules}\n server s1 10.0.1.1:80")).run(|_| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut server = s1.accept().await;
            server.receive_head().await;
            let watch = Stopwatch::start();
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 29000\r\n\r\n";
            let sends = async {
                server.send(head).await;
                server.send(vec![b'x'; 29_000]).await;
            };
            let receives = async {
                client.receive(head.len() + 29_000).await;
            };
            both(sends, receives).await;
            assert!(watch.elapsed().as_millis() > 5_000);
        });
    }
}

#[test]
fn a_rule_may_say_how_much_and_how_long() {
    for (rule, millis) in [
        ("limit 1000", 8_000),
        ("limit 1000 period 1s", 4_000),
        ("limit hdr(x-limit) period hdr(x-period),mul(2)", 2_000),
        ("limit hdr(nothing) period 0", 0),
    ] {
        // The second rule starts from the filter's own values.
        let rules = format!(
            "http-request set-bandwidth-limit down limit 1 period 1d\n http-request set-bandwidth-limit down {rule}"
        );
        listen(&format!("{LIMITS}\n {rules}\n server s1 10.0.1.1:80")).run(move |_| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send("GET / HTTP/1.1\r\nHost: a\r\nx-limit: 2000\r\nx-period: 500\r\n\r\n").await;
            let mut server = s1.accept().await;
            server.receive_head().await;
            let watch = Stopwatch::start();
            server.send(answer(&"x".repeat(4_000))).await;
            client.expect(answer_at_client(&"x".repeat(4_000))).await;
            watch.took(millis);
        });
    }
}

/// The lower limit applies, in either order.
#[test]
fn limits_add_up() {
    for limits in [
        "filter bwlim-out a default-limit 1000 default-period 1s\n filter bwlim-out b default-limit 500 default-period 1s",
        "filter bwlim-out a default-limit 500 default-period 1s\n filter bwlim-out b default-limit 1000 default-period 1s",
    ] {
        let rules = "http-request set-bandwidth-limit a\n http-response set-bandwidth-limit b";
        listen(&format!("{limits}\n {rules}\n server s1 10.0.1.1:80")).run(|_| async move {
            let (mut client, mut server, _s1) = asked().await;
            let watch = Stopwatch::start();
            server.send(answer(&"x".repeat(4_000))).await;
            client.expect(answer_at_client(&"x".repeat(4_000))).await;
            watch.took(8_000);
        });
    }
}

/// Rules in a frontend refer to its filters, those in a backend to the backend's: equal names do not conflict.
#[test]
fn a_filter_belongs_to_its_proxy() {
    let sections = "frontend l\n bind 10.0.0.1:80\n filter bwlim-out a default-limit 1000 default-period 1s\n \
                    default_backend b\nbackend b\n filter bwlim-out a default-limit 2000 default-period 1s\n \
                    http-request set-bandwidth-limit a\n server s1 10.0.1.1:80";
    config(sections).run(|_| async move {
        let (mut client, mut server, _s1) = asked().await;
        let watch = Stopwatch::start();
        server.send(answer(&"x".repeat(4_000))).await;
        client.expect(answer_at_client(&"x".repeat(4_000))).await;
        watch.took(2_000);
    });
}

#[test]
fn a_tunnel_is_limited() {
    let rules = "http-request set-bandwidth-limit up";
    listen(&format!("{LIMITS}\n {rules}\n server s1 10.0.1.1:80")).run(|_| async move {
        let (mut client, mut server, _s1) = upgraded().await;
        let watch = Stopwatch::start();
        let talk = async {
            client.send(vec![b'x'; 30_000]).await;
        };
        both(talk, expect_limited(&mut server, watch, 3)).await;
        server.send("behind").await;
        client.expect("behind").await;
        watch.took(6_000);
    });
}

static TOLD: Mutex<String> = Mutex::new(String::new());

/// The lines of traces since the last call, without the time and the number of the stream.
fn told() -> Vec<String> {
    let told = std::mem::take(&mut *TOLD.lock().unwrap_or_else(PoisonError::into_inner));
    let line = |line: &str| match line.split_once("] [strm ") {
        Some((before, behind)) => {
            let label = before.split_once('[').map_or("", |parts| parts.1).trim_end();
            let words: Vec<&str> = behind.split_once("] ").map_or("", |parts| parts.1).split_whitespace().collect();
            format!("{label} {}", words.join(" "))
        }
        None => line.to_owned(),
    };
    told.lines().map(line).collect()
}

fn tell(text: &[u8]) {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(text));
}

/// The order is that of HAProxy 3.5, whose traces contain its analysers as well.
#[test]
fn a_trace_tells_what_becomes_of_a_stream() {
    let sections = "frontend f\n bind 10.0.0.1:80\n filter trace name A\n filter trace name B hexdump\n \
                    filter bwlim-in a default-limit 1 default-period 1s\n filter-sequence request bwlim-in,trace\n \
                    default_backend b\nbackend b\n filter trace\n server s1 10.0.1.1:80";
    config(sections).workers(&[1]).seeds(0..1).telling(tell).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(post(3)).await;
        client.send("abc").await;
        let mut server = s1.accept().await;
        server.expect(post_at_server(3) + "abc").await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.take_log().await;
        let expected = "A/f trace_attach : filter-type=frontend
B/f trace_attach : filter-type=frontend
A/f trace_stream_start
B/f trace_stream_start
A/f trace_chn_start_analyze : channel=REQUEST - mode=HTTP (frontend)
TRACE/b trace_attach : filter-type=backend
A/f trace_stream_set_backend : backend=b
B/f trace_stream_set_backend : backend=b
TRACE/b trace_stream_set_backend : backend=b
TRACE/b trace_chn_start_analyze : channel=REQUEST - mode=HTTP (backend)
A/f trace_http_headers : channel=REQUEST - mode=HTTP (backend) POST / HTTP/1.1
A/f host: a
A/f content-length: 3
TRACE/b trace_http_headers : channel=REQUEST - mode=HTTP (backend) POST / HTTP/1.1
TRACE/b host: a
TRACE/b content-length: 3
A/f trace_http_payload : channel=REQUEST - mode=HTTP (backend) - len=3 - forward=3
A/f trace_http_end : channel=REQUEST - mode=HTTP (backend)
TRACE/b trace_http_payload : channel=REQUEST - mode=HTTP (backend) - len=3 - forward=3
TRACE/b trace_http_end : channel=REQUEST - mode=HTTP (backend)
A/f trace_chn_start_analyze : channel=RESPONSE - mode=HTTP (backend)
B/f trace_chn_start_analyze : channel=RESPONSE - mode=HTTP (backend)
TRACE/b trace_chn_start_analyze : channel=RESPONSE - mode=HTTP (backend)
A/f trace_http_headers : channel=RESPONSE - mode=HTTP (backend) HTTP/1.1 200 OK
A/f content-length: 2
B/f trace_http_headers : channel=RESPONSE - mode=HTTP (backend) HTTP/1.1 200 OK
B/f content-length: 2
TRACE/b trace_http_headers : channel=RESPONSE - mode=HTTP (backend) HTTP/1.1 200 OK
TRACE/b content-length: 2
A/f trace_http_payload : channel=RESPONSE - mode=HTTP (backend) - len=2 - forward=2
A/f trace_http_end : channel=RESPONSE - mode=HTTP (backend)
B/f trace_http_payload : channel=RESPONSE - mode=HTTP (backend) - len=2 - forward=2
\t0x000000: 6f 6b                                               |ok|
B/f trace_http_end : channel=RESPONSE - mode=HTTP (backend)
TRACE/b trace_http_payload : channel=RESPONSE - mode=HTTP (backend) - len=2 - forward=2
TRACE/b trace_http_end : channel=RESPONSE - mode=HTTP (backend)
A/f trace_chn_end_analyze : channel=REQUEST - mode=HTTP (backend)
TRACE/b trace_chn_end_analyze : channel=REQUEST - mode=HTTP (backend)
A/f trace_chn_end_analyze : channel=RESPONSE - mode=HTTP (backend)
B/f trace_chn_end_analyze : channel=RESPONSE - mode=HTTP (backend)
TRACE/b trace_chn_end_analyze : channel=RESPONSE - mode=HTTP (backend)
TRACE/b trace_detach : filter-type=backend
A/f trace_stream_stop
B/f trace_stream_stop
A/f trace_detach : filter-type=frontend
B/f trace_detach : filter-type=frontend";
        let told = told();
        let expected: Vec<&str> = expected.split('\n').collect();
        assert_eq!(told, expected, "{told:#?}");
    });
}
