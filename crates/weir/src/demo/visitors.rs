//! The demonstration's own clients, which give the dashboard something to show. Must never hold more connections than
//! there are visitors, nor keep what they receive.

use rt::net::{Address, ConnectOptions, Stream};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::time::Duration;

/// Number of visitors, each with one connection at a time.
const VISITORS: usize = 4;

/// Longest pause of a visitor between two requests, in milliseconds; the shortest is none.
const LONGEST_PAUSE: u64 = 700;

/// Pause after a connection that failed.
const REST: Duration = Duration::from_secs(1);

/// Requested paths; one is chosen at random.
const PATHS: [&str; 16] = [
    "/",
    "/",
    "/",
    "/",
    "/",
    "/",
    "/",
    "/",
    "/",
    "/",
    "/large/5000",
    "/large/20000",
    "/large/100000",
    "/large/500000",
    "/status/404",
    "/slow",
];

/// Starts the visitors of an address.
pub fn start(address: SocketAddr) {
    for _ in 0..VISITORS {
        rt::spawn(rt::Class::Normal, rt::NO_TAG, visit(address));
    }
}

/// Sends requests until the process ends.
async fn visit(address: SocketAddr) {
    loop {
        rt::sleep(Duration::from_millis(rt::random() % LONGEST_PAUSE)).await;
        let path = PATHS[rt::random() as usize % PATHS.len()];
        if request(address, path).await.is_err() {
            rt::sleep(REST).await;
        }
    }
}

/// Sends one request and reads its answer.
async fn request(address: SocketAddr, path: &str) -> io::Result<()> {
    let mut stream = Stream::connect(&Address::Inet(address), &ConnectOptions::default())?.await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nuser-agent: visitor\r\nconnection: close\r\n\r\n");
    let mut rest = request.as_bytes();
    while !rest.is_empty() {
        let written = poll_fn(|context| stream.poll_write_slices(context, &[IoSlice::new(rest)], false)).await?;
        rest = &rest[written..];
    }
    let mut answer = rt::buffer();
    // The frontend ends the answer: its timeouts apply.
    while poll_fn(|context| stream.poll_read(context, &mut answer)).await? > 0 {
        answer.clear();
    }
    Ok(())
}
