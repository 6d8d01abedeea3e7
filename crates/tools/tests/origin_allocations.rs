//! A warm origin answers a keep-alive request without a single allocation: over real sockets, counted in the whole
//! process. One test in a process of its own, since it counts every allocation.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::System;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use rt::net::{Address, BindOptions, ListeningSocket};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use weir_tools::origin::serve::Service;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Requests before and while allocations are counted.
const WARM_UP: usize = 300;
const COUNTED: usize = 300;

/// Sends the request repeatedly and reads the same number of bytes as the first response had; returns the allocations
/// of the later ones.
fn allocations(client: &mut TcpStream, request: &str) -> usize {
    client.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let text = String::from_utf8(head.clone()).unwrap();
    let chunked = text.contains("chunked");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    // A chunked body here is `3E8`, CR LF, 1000 bytes, CR LF and the last chunk.
    let length: usize = length.unwrap_or(if chunked { 5 + 1000 + 2 + 5 } else { 0 });
    let mut body = vec![0; length];
    client.read_exact(&mut body).unwrap();
    head.reserve(1024);
    // A head may be a digit longer or shorter than the previous one: it contains the response's delay.
    let mut ask = |times: usize| {
        for _ in 0..times {
            client.write_all(request.as_bytes()).unwrap();
            head.clear();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            client.read_exact(&mut body).unwrap();
        }
    };
    ask(WARM_UP);
    let region = Region::new(ALLOCATOR);
    ask(COUNTED);
    let change = region.change();
    change.allocations + change.reallocations
}

#[test]
fn a_warm_origin_allocates_nothing_for_an_answer() {
    let region = Region::new(ALLOCATOR);
    drop(vec![0_u8; 100]);
    assert_eq!(region.change().allocations, 1, "allocations are counted");
    let any = Address::Inet("127.0.0.1:0".parse().unwrap());
    let socket = ListeningSocket::bind(&any, &BindOptions::default()).unwrap();
    let address = socket.local_address().inet().unwrap();
    let service = Service {
        sockets: vec![socket.into()],
        quic: Vec::new(),
        datagrams: Vec::new(),
        workers: 1,
        most: 100,
        line: None,
        starter: None,
        at_end: rt::stop,
    };
    let (tell, told) = mpsc::channel();
    let (tell, serve) = (Mutex::new(tell), service.into_main());
    let main: rt::Main = Arc::new(move |worker| {
        tell.lock().unwrap().send(rt::handle()).unwrap();
        serve(worker)
    });
    let thread = thread::spawn(move || rt::run(&rt::Config::default(), main).unwrap());
    let handle = told.recv().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.set_nodelay(true).unwrap();
    let fields = "Host: a.example\r\nUser-Agent: test\r\nAccept: */*\r\n";
    let rows = [
        ("a small answer", format!("GET /?s=64 HTTP/1.1\r\n{fields}\r\n")),
        ("one with every parameter", format!("GET /?s=64&r=404&c=0&K=1&R=1&A=0&v=0 HTTP/1.1\r\n{fields}\r\n")),
        ("a large answer", format!("GET /?s=100k HTTP/1.1\r\n{fields}\r\n")),
        ("a chunked answer", format!("GET /?s=1000&k=1 HTTP/1.1\r\n{fields}\r\n")),
        ("a delayed answer", format!("GET /?s=10&t=1 HTTP/1.1\r\n{fields}\r\n")),
        ("a request with a body", format!("POST /?s=10 HTTP/1.1\r\n{fields}Content-Length: 5\r\n\r\nhello")),
        (
            "one with a chunked body",
            format!("POST /?s=10 HTTP/1.1\r\n{fields}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ),
    ];
    for (what, request) in rows {
        assert_eq!(allocations(&mut client, &request), 0, "{COUNTED} times {what}");
    }
    drop(client);
    handle.stop();
    thread.join().unwrap();
}
