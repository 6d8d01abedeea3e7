//! Measures the cost of rendering a log line: nanoseconds per line of each predefined format, into a reused buffer.
//! `cargo run --release -p weir-expression --example log_cost`. Must never measure more than the rendering.
#![allow(clippy::print_stdout)]

use base::moment::WallTime;
use config::spec::{LogFormatSpec, Mode};
use std::hint::black_box;
use std::time::Instant;
use weir_expression::log_format::LogFormat;
use weir_expression::record::{Endpoint, Record, Timers};

const ROUNDS: u32 = 1_000_000;

fn record() -> Record<'static> {
    Record {
        client: Endpoint::Inet(([10, 0, 1, 2], 33317).into()),
        destination: Endpoint::Inet(([10, 0, 3, 31], 80).into()),
        frontend: "http-in",
        backend: "static",
        server: "srv1",
        accept_date: WallTime { seconds: 1_795_182_933, nanos: 292_000_000 },
        request_date: WallTime { seconds: 1_795_182_933, nanos: 293_000_000 },
        local_offset: 3_600,
        timers: Timers { request: 10, queue: 0, connect: 30, response: 69, active: 109, ..Timers::default() },
        status: 200,
        bytes_to_client: 2750,
        method: b"GET",
        target: b"/some/directory/index.html?with=a&query=string&of=usual&length",
        version: b"HTTP/1.1",
        request_captures: const { &[Some(b"www.example.com".as_slice()), Some(b"Mozilla/5.0 (X11; Linux x86_64)")] },
        actconn: 1024,
        feconn: 1000,
        beconn: 90,
        srv_conn: 9,
        ..Record::default()
    }
}

fn main() {
    let with_captures = record();
    let plain = Record { request_captures: &[], ..with_captures };
    for (name, format, record) in [
        ("httplog", LogFormatSpec::Http, &plain),
        ("httplog, 2 captures", LogFormatSpec::Http, &with_captures),
        ("httplog clf", LogFormatSpec::HttpClf, &plain),
        ("tcplog", LogFormatSpec::Tcp, &plain),
        ("default", LogFormatSpec::Default, &plain),
    ] {
        let format = LogFormat::predefined(&format, Mode::Http);
        let mut line = Vec::new();
        let start = Instant::now();
        for _ in 0..ROUNDS {
            line.clear();
            format.render(black_box(record), &mut line);
            black_box(&line);
        }
        let nanos = start.elapsed().as_nanos() / u128::from(ROUNDS);
        println!("{name:<20} {nanos:>5} ns, {} bytes", line.len());
    }
}
