//! Shared by the tests: runs under many seeds, and reading and writing whole messages.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;

use base::Buffer;

use crate::rt;
use rt::net::{Address, BindOptions, ConnectOptions, Listener, ListeningSocket, OwnedSocket, Stream};
use rt::{Class, Main};

/// Workers that do nothing by themselves.
pub fn idle() -> Main {
    Arc::new(|_| Box::pin(async {}))
}

/// Runs a script under many seeds, and one idle worker.
pub fn under_seeds<F: Future<Output = ()> + 'static>(script: impl Fn() -> F) {
    // Miri interprets: one run is sufficient.
    for seed in 0..if cfg!(miri) { 1 } else { 100 } {
        rt::sim::run(seed, 1, idle(), script());
    }
}

pub fn address(text: &str) -> Address {
    Address::Inet(text.parse().unwrap())
}

pub fn listen(text: &str) -> Arc<ListeningSocket> {
    Arc::new(ListeningSocket::bind(&address(text), &BindOptions::default()).unwrap())
}

pub async fn connect(to: &Address) -> io::Result<Stream> {
    Stream::connect(to, &ConnectOptions::default())?.await
}

pub async fn read(stream: &mut Stream, buffer: &mut Buffer) -> io::Result<usize> {
    poll_fn(|context| stream.poll_read(context, buffer)).await
}

pub async fn read_to_end(stream: &mut Stream) -> io::Result<Vec<u8>> {
    let (mut buffer, mut all) = (rt::buffer(), Vec::new());
    while read(stream, &mut buffer).await? > 0 {
        all.extend_from_slice(buffer.data());
        buffer.clear();
    }
    Ok(all)
}

pub async fn write_all(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
    let mut sent = 0;
    while sent < bytes.len() {
        let slices = [IoSlice::new(&bytes[sent..])];
        sent += poll_fn(|context| stream.poll_write_slices(context, &slices, false)).await?;
    }
    Ok(())
}

/// Returns two ends of one connection: the one that connected, and the accepted one.
pub async fn pair(service: &str) -> (Stream, Stream) {
    let socket = listen(service);
    let mut listener = Listener::new(Arc::clone(&socket)).unwrap();
    let client = connect(socket.local_address()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (client, Stream::adopt(server))
}

/// Echoes received bytes until the end.
pub async fn echo(mut stream: Stream) {
    let (mut buffer, mut nothing) = (rt::buffer(), Buffer::empty());
    while matches!(read(&mut stream, &mut buffer).await, Ok(1..)) {
        while !buffer.is_empty() {
            if poll_fn(|context| stream.poll_write(context, &mut buffer, &mut nothing, false)).await.is_err() {
                return;
            }
        }
    }
}

/// Accepts forever, and passes each connection to `serve`.
pub fn serve(socket: Arc<ListeningSocket>, serve: impl Fn(OwnedSocket) + 'static) {
    let mut listener = Listener::new(socket).unwrap();
    rt::spawn(Class::Normal, 0, async move {
        while let Ok((socket, _)) = listener.accept().await {
            serve(socket);
        }
    });
}

pub fn serve_echo(socket: Arc<ListeningSocket>) {
    serve(socket, |socket| rt::spawn(Class::Normal, 0, echo(Stream::adopt(socket))));
}

/// Returns bytes that differ at every position of interest.
pub fn text(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n % 251) as u8 ^ (n / 251) as u8).collect()
}
