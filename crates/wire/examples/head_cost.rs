//! Measures the cost of a head: parsing and encoding a request of ten fields and 400 bytes, and a response. Prints the
//! results; it asserts nothing.
//!
//! `cargo run --release -p weir-wire --example head_cost`

use std::hint::black_box;
use std::time::{Duration, Instant};

use base::Buffer;
use weir_wire::h1::{
    ConnectionLine, Edits, HeadLimits, Parse, RequestContext, Scan, encode_request, encode_response, parse_request,
    parse_response,
};
use weir_wire::http::Head;

const REQUEST: &[u8] = b"GET /static/images/logo.png?version=20261120 HTTP/1.1\r\n\
    Host: www.example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101\r\n\
    Accept: image/avif,image/webp,image/png,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br\r\n\
    Referer: https://www.example.com/\r\n\
    Cookie: session=0123456789abcdef01234567\r\n\
    Sec-Fetch-Dest: image\r\n\
    Sec-Fetch-Mode: no-cors\r\n\
    Connection: keep-alive\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\n\
    Date: Fri, 20 Nov 2026 13:30:25 GMT\r\n\
    Server: origin\r\n\
    Content-Type: text/html; charset=utf-8\r\n\
    Content-Length: 1024\r\n\
    Cache-Control: public, max-age=3600\r\n\
    ETag: \"5f3c-61a2b3c4d5e6f\"\r\n\
    Vary: Accept-Encoding\r\n\r\n";

const SMALL: &[u8] = b"GET /index.html HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

const ROUNDS: u32 = 200_000;

fn main() {
    report("parse request, 10 fields", REQUEST.len(), parse_requests(REQUEST));
    report("encode request, 10 fields", REQUEST.len(), encode_requests(REQUEST));
    report("parse request, 1 field", SMALL.len(), parse_requests(SMALL));
    report("encode request, 1 field", SMALL.len(), encode_requests(SMALL));
    report("parse response, 7 fields", RESPONSE.len(), parse_responses());
    report("encode response, 7 fields", RESPONSE.len(), encode_responses());
    report("request byte by byte", REQUEST.len(), trickle());
}

fn report(what: &str, bytes: usize, time: Duration) {
    let nanos = time.as_nanos() as f64 / f64::from(ROUNDS);
    // An example prints to standard output.
    #[allow(clippy::print_stdout)]
    {
        println!("{what:28} {bytes:4} bytes {nanos:8.1} ns");
    }
}

/// Returns the shortest of several runs, since the machine may be busy.
fn best(mut run: impl FnMut()) -> Duration {
    let times = (0..15).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

fn parse_requests(input: &[u8]) -> Duration {
    let limits = HeadLimits::default();
    let mut head = Head::new();
    best(|| {
        for _ in 0..ROUNDS {
            let parsed = parse_request(black_box(input), &limits, &mut Scan::default(), &mut head);
            assert_eq!(parsed, Ok(Parse::Complete { consumed: input.len() }));
            black_box(&head);
        }
    })
}

fn parse_responses() -> Duration {
    let limits = HeadLimits::default();
    let mut head = Head::new();
    best(|| {
        for _ in 0..ROUNDS {
            let context = RequestContext::default();
            let parsed = parse_response(black_box(RESPONSE), &limits, &context, &mut Scan::default(), &mut head);
            assert_eq!(parsed, Ok(Parse::Complete { consumed: RESPONSE.len() }));
            black_box(&head);
        }
    })
}

fn encode_requests(input: &[u8]) -> Duration {
    let mut head = Head::new();
    let _ = parse_request(input, &HeadLimits::default(), &mut Scan::default(), &mut head);
    head.append(b"x-forwarded-for", b"192.0.2.1");
    let mut out = Buffer::with_capacity(16384);
    best(|| {
        for _ in 0..ROUNDS {
            out.clear();
            let (connection, version) = ConnectionLine::for_request(&head, true);
            let edits = Edits { connection, framing: head.framing, version, ..Edits::default() };
            assert!(encode_request(black_box(&head), &edits, &mut out).is_ok());
            black_box(out.data());
        }
    })
}

fn encode_responses() -> Duration {
    let mut head = Head::new();
    let _ =
        parse_response(RESPONSE, &HeadLimits::default(), &RequestContext::default(), &mut Scan::default(), &mut head);
    let mut out = Buffer::with_capacity(16384);
    best(|| {
        for _ in 0..ROUNDS {
            out.clear();
            let connection = ConnectionLine::for_response(head.version(), head.version(), true);
            let edits = Edits { connection, framing: head.framing, version: head.version(), ..Edits::default() };
            assert!(encode_response(black_box(&head), &edits, &mut out).is_ok());
            black_box(out.data());
        }
    })
}

fn trickle() -> Duration {
    let limits = HeadLimits::default();
    let mut head = Head::new();
    let rounds = ROUNDS / 100;
    let time = best(|| {
        for _ in 0..rounds {
            let mut scan = Scan::default();
            for length in 1..=REQUEST.len() {
                let _ = black_box(parse_request(&REQUEST[..length], &limits, &mut scan, &mut head));
            }
        }
    });
    time * 100
}
