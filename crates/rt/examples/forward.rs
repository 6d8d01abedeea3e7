//! The baseline of every measurement: a proxy that finds the end of a head and forwards, and does nothing else; with an
//! origin server and a load generator. Prints the CPU time and the number of requests, which give the cost of one.
//!
//! ```text
//! forward origin 9001 &
//! forward proxy 9000 9001 &
//! forward load 9000 64 200000
//! ```
//! `weir bench` compares it with the other proxies in the scenarios `keep-alive` and `bodies-tcp`, with
//! `--set forward=target/release/examples/forward`.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used, reason = "an example")]

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::Buffer;
use rt::net::{
    Address, BindOptions, ConnectOptions, Listener, ListeningSocket, ParkedStream, Stream, poll_parked_events,
};
use rt::{Class, Config};
use weir_rt as rt;

const REQUEST: &[u8] = b"GET /index.html HTTP/1.1\r\nHost: example.com\r\nUser-Agent: load\r\nAccept: */*\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Length: 10\r\n\r\n0123456789";

/// Size in bytes of the bodies that the proxy forwards: those of its own origin, or of another server.
fn body() -> usize {
    static BODY: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *BODY.get_or_init(|| std::env::args().nth(4).and_then(|text| text.parse().ok()).unwrap_or(10))
}

fn local(port: &str) -> Address {
    Address::Inet(format!("127.0.0.1:{port}").parse().unwrap())
}

/// Length of a message with a body of `body` bytes; `None` while its head is incomplete.
fn message_length(data: &[u8], body: usize) -> Option<usize> {
    data.windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|head| head + 4 + body)
        .filter(|end| *end <= data.len())
}

async fn read_message(stream: &mut Stream, buffer: &mut Buffer, body: usize) -> io::Result<bool> {
    while message_length(buffer.data(), body).is_none() {
        if poll_fn(|context| stream.poll_read(context, buffer)).await? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn write_all(stream: &mut Stream, buffer: &mut Buffer) -> io::Result<()> {
    let mut nothing = Buffer::empty();
    while !buffer.is_empty() {
        poll_fn(|context| stream.poll_write(context, buffer, &mut nothing, false)).await?;
    }
    Ok(())
}

type Pool = Rc<RefCell<Vec<ParkedStream>>>;

async fn proxy_connection(mut client: Stream, origin: Address, pool: Pool) -> io::Result<()> {
    let mut timer = rt::Timer::new();
    loop {
        poll_fn(|context| client.poll_readable(context)).await;
        let mut buffer = rt::buffer();
        timer.arm(Some(rt::now() + Duration::from_secs(30)));
        if !read_message(&mut client, &mut buffer, 0).await? {
            return Ok(());
        }
        // The future of a request in progress is boxed in recycled memory, as in the engine.
        rt::boxed(exchange(&mut client, &origin, &pool, buffer)).await?;
    }
}

async fn exchange(client: &mut Stream, origin: &Address, pool: &Pool, mut buffer: Buffer) -> io::Result<()> {
    let parked = pool.borrow_mut().pop().and_then(ParkedStream::adopt);
    let mut server = match parked {
        Some(server) => server,
        None => Stream::connect(origin, &ConnectOptions::default())?.await?,
    };
    write_all(&mut server, &mut buffer).await?;
    // A task that waits holds no buffer: the next task uses this one while it is in the cache.
    drop(buffer);
    poll_fn(|context| server.poll_readable(context)).await;
    let mut buffer = rt::buffer();
    if !read_message(&mut server, &mut buffer, body()).await? {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    write_all(client, &mut buffer).await?;
    pool.borrow_mut().push(server.park());
    Ok(())
}

async fn proxy(listen: Address, origin: Address) {
    let pool = Pool::default();
    let reaped = Rc::clone(&pool);
    rt::spawn(Class::Normal, 0, async move {
        let mut ids = Vec::new();
        loop {
            poll_fn(|context| poll_parked_events(context, &mut ids)).await;
            reaped.borrow_mut().retain(|parked| !ids.contains(&parked.id()));
            ids.clear();
        }
    });
    accept(listen, move |client| {
        let (origin, pool) = (origin.clone(), Rc::clone(&pool));
        rt::spawn(Class::Normal, 0, async move {
            let _ = proxy_connection(client, origin, pool).await;
        });
    })
    .await;
}

/// One direction of [`copy_connection`]: reads up to a large buffer's size, writes it, and repeats.
async fn copy(source: &RefCell<Stream>, sink: &RefCell<Stream>) -> io::Result<()> {
    loop {
        let mut buffer = rt::large_buffer();
        poll_fn(|context| source.borrow_mut().poll_readable(context)).await;
        if poll_fn(|context| source.borrow_mut().poll_read(context, &mut buffer)).await? == 0 {
            return sink.borrow_mut().shutdown_write();
        }
        while !buffer.is_empty() {
            poll_fn(|context| sink.borrow_mut().poll_write(context, &mut buffer, &mut Buffer::empty(), false)).await?;
        }
    }
}

/// Copies bytes in both directions, and nothing else.
async fn copy_connection(client: Stream, origin: Address) -> io::Result<()> {
    let server = RefCell::new(Stream::connect(&origin, &ConnectOptions::default())?.await?);
    let client = RefCell::new(client);
    let (mut up, mut down) = (Box::pin(copy(&client, &server)), Box::pin(copy(&server, &client)));
    let (mut up_ended, mut down_ended) = (false, false);
    poll_fn(|context| {
        up_ended = up_ended || up.as_mut().poll(context).is_ready();
        down_ended = down_ended || down.as_mut().poll(context).is_ready();
        if up_ended && down_ended { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    Ok(())
}

async fn copy_all(listen: Address, origin: Address) {
    accept(listen, move |client| {
        let origin = origin.clone();
        rt::spawn(Class::Normal, 0, async move {
            let _ = copy_connection(client, origin).await;
        });
    })
    .await;
}

async fn accept(at: Address, serve: impl Fn(Stream)) {
    let socket = ListeningSocket::bind(&at, &BindOptions::default()).unwrap();
    let mut listener = Listener::new(Arc::new(socket)).unwrap();
    loop {
        serve(Stream::adopt(listener.accept().await.unwrap().0));
    }
}

async fn origin(listen: Address) {
    accept(listen, |mut client| {
        rt::spawn(Class::Normal, 0, async move {
            let mut buffer = rt::buffer();
            while let Ok(true) = read_message(&mut client, &mut buffer, 0).await {
                buffer.clear();
                assert!(buffer.push(RESPONSE));
                if write_all(&mut client, &mut buffer).await.is_err() {
                    return;
                }
            }
        });
    })
    .await;
}

async fn load(to: Address, connections: usize, requests: u64) {
    let (left, running) = (Rc::new(Cell::new(requests)), Rc::new(Cell::new(connections)));
    for _ in 0..connections {
        let (to, left, running) = (to.clone(), Rc::clone(&left), Rc::clone(&running));
        rt::spawn(Class::Normal, 0, async move {
            let mut stream = Stream::connect(&to, &ConnectOptions::default()).unwrap().await.unwrap();
            let mut buffer = rt::buffer();
            while left.get() > 0 {
                left.set(left.get() - 1);
                assert!(buffer.push(REQUEST));
                write_all(&mut stream, &mut buffer).await.unwrap();
                assert!(read_message(&mut stream, &mut buffer, 10).await.unwrap());
                buffer.clear();
            }
            running.set(running.get() - 1);
            if running.get() == 0 {
                rt::stop();
            }
        });
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    rt::process::raise_descriptor_limit(20_000).unwrap();
    let main: rt::Main = Arc::new(move |_| {
        let arguments = arguments.clone();
        Box::pin(async move {
            match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["origin", at] => origin(local(at)).await,
                ["proxy", at, origin] | ["proxy", at, origin, _] => proxy(local(at), local(origin)).await,
                ["copy", at, origin] => copy_all(local(at), local(origin)).await,
                ["load", to, connections, requests] => {
                    load(local(to), connections.parse().unwrap(), requests.parse().unwrap()).await;
                }
                _ => {
                    eprintln!(
                        "usage: forward origin PORT | proxy PORT PORT [BODY] | copy PORT PORT | load PORT CONNECTIONS REQUESTS"
                    );
                    rt::stop();
                }
            }
        })
    });
    rt::run(&Config::default(), main).unwrap();
}
