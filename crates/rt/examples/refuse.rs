//! The baseline of the rates of refusals and redirects: accepts, reads, responds with one fixed redirect or with
//! nothing, closes. It parses no head, evaluates no rule, keeps no time and counts nothing.
//!
//! ```text
//! refuse redirect 9000       responds with a redirect; closes the connection if the client asks for that
//! refuse content 9000        reads once, closes
//! refuse connection 9000     resets every connection
//! ```
//! `weir bench` compares it with the other proxies in the scenarios `redirect-onecore`, `redirect-keep-alive-onecore`,
//! `reject-content-onecore` and `reject-connection-onecore`, with `--set refuse=target/release/examples/refuse`.
#![allow(clippy::print_stderr, clippy::unwrap_used, reason = "an example")]

use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use rt::net::{Address, BindOptions, Listener, ListeningSocket, Stream};
use rt::{Class, Config};
use weir_rt as rt;

const CLOSES: &[u8] = b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /elsewhere\r\ncache-control: no-cache\r\n\
    connection: close\r\n\r\n";
const STAYS: &[u8] =
    b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /elsewhere\r\ncache-control: no-cache\r\n\r\n";

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Redirect,
    Content,
    Connection,
}

/// Whether a request has `Connection: close`.
fn asks_to_close(request: &[u8]) -> bool {
    request.windows(17).any(|window| window.eq_ignore_ascii_case(b"connection: close"))
}

async fn serve(mut client: Stream, what: What) -> io::Result<()> {
    loop {
        let mut buffer = rt::buffer();
        if poll_fn(|context| client.poll_read(context, &mut buffer)).await? == 0 || what == What::Content {
            return Ok(());
        }
        let closes = asks_to_close(buffer.data());
        let mut left = if closes { CLOSES } else { STAYS };
        while !left.is_empty() {
            let slices = [io::IoSlice::new(left)];
            let sent = poll_fn(|context| client.poll_write_slices(context, &slices, closes)).await?;
            left = &left[sent..];
        }
        if closes {
            return Ok(());
        }
        drop(buffer);
        poll_fn(|context| client.poll_readable(context)).await;
    }
}

async fn accept(at: Address, what: What) {
    // As in the engine: no immediate acknowledgement without data; accepted sockets inherit `SO_LINGER`, which saves
    // setting it on each.
    let options = BindOptions { no_quick_ack: true, linger_zero: what == What::Connection, ..BindOptions::default() };
    let mut listener = Listener::new(Arc::new(ListeningSocket::bind(&at, &options).unwrap())).unwrap();
    loop {
        poll_fn(|context| listener.poll_acceptable(context)).await;
        if let Ok(Some((client, _))) = listener.try_accept()
            && what != What::Connection
        {
            rt::spawn(Class::Normal, 0, async move {
                let _ = serve(Stream::adopt(client), what).await;
            });
        }
        if !listener.rest_until_told() {
            rt::yield_now().await;
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let what = match arguments.first().map(String::as_str) {
        Some("redirect") => What::Redirect,
        Some("content") => What::Content,
        Some("connection") => What::Connection,
        _ => return eprintln!("usage: refuse redirect|content|connection PORT"),
    };
    let Some(at) = arguments.get(1).and_then(|port| format!("127.0.0.1:{port}").parse().ok()) else {
        return eprintln!("refuse: that is no port");
    };
    rt::process::raise_descriptor_limit(20_000).unwrap();
    rt::run(&Config::default(), Arc::new(move |_| Box::pin(accept(Address::Inet(at), what)))).unwrap();
}
