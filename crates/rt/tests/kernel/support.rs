//! Shared by the tests: starting workers, and reading and writing whole messages.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::task::Poll;

use base::Buffer;

use crate::rt;
use rt::net::{Address, BindOptions, ConnectOptions, Listener, ListeningSocket, OwnedSocket, Stream};
use rt::{Class, Config, MainFuture};

/// Runs workers until they are stopped. A test that hangs ends the whole run after two minutes: it has failed.
pub fn start(workers: usize, main: impl Fn(u16) -> MainFuture + Send + Sync + 'static) {
    let (done, ended) = std::sync::mpsc::channel::<()>();
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    std::thread::spawn(move || {
        if ended.recv_timeout(std::time::Duration::from_secs(120)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{test} hangs");
            std::process::abort();
        }
    });
    let _done = done;
    rt::run(&Config { workers, ..Config::default() }, Arc::new(main)).unwrap();
}

/// Runs one worker until `test` ends. A panic in it is propagated.
pub fn on_one_worker<F: Future<Output = ()> + 'static>(test: impl Fn() -> F + Send + Sync + 'static) {
    let failed = Arc::new(std::sync::Mutex::new(None));
    let seen = Arc::clone(&failed);
    start(1, move |_| {
        let (test, seen) = (test(), Arc::clone(&seen));
        Box::pin(async move {
            *seen.lock().unwrap() = catch(test).await.err();
            rt::stop();
        })
    });
    let failed = failed.lock().unwrap().take();
    if let Some(payload) = failed {
        std::panic::resume_unwind(payload);
    }
}

/// Runs a future and turns a panic into a value.
pub async fn catch<F: Future>(future: F) -> std::thread::Result<F::Output> {
    let mut future: Pin<Box<F>> = Box::pin(future);
    poll_fn(|context| {
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(payload)),
        }
    })
    .await
}

pub fn any_port() -> Address {
    Address::Inet("127.0.0.1:0".parse().unwrap())
}

pub fn listen_at(address: &Address) -> Arc<ListeningSocket> {
    Arc::new(ListeningSocket::bind(address, &BindOptions::default()).unwrap())
}

pub fn listen() -> Arc<ListeningSocket> {
    listen_at(&any_port())
}

/// Returns a name for a socket in the test's own directory.
pub fn scratch(name: &str) -> std::path::PathBuf {
    let directory = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    directory.join(format!("{}-{name}", std::process::id()))
}

pub async fn read(stream: &mut Stream, buffer: &mut Buffer) -> io::Result<usize> {
    poll_fn(|context| stream.poll_read(context, buffer)).await
}

/// Reads until the buffer holds `wanted` bytes.
pub async fn read_exactly(stream: &mut Stream, buffer: &mut Buffer, wanted: usize) {
    while buffer.len() < wanted {
        assert!(read(stream, buffer).await.unwrap() > 0, "the stream ended early");
    }
}

/// Reads to the end.
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

pub async fn connect(address: &Address) -> Stream {
    Stream::connect(address, &ConnectOptions::default()).unwrap().await.unwrap()
}

/// Returns two ends of one connection on the current worker: the one that connected, and the accepted one.
pub async fn pair() -> (Stream, Stream) {
    let socket = listen();
    let mut listener = Listener::new(Arc::clone(&socket)).unwrap();
    let client = connect(socket.local_address()).await;
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

/// Serves echoes on the current worker.
pub fn serve_echo(socket: Arc<ListeningSocket>) {
    serve(socket, |socket| rt::spawn(Class::Normal, 0, echo(Stream::adopt(socket))));
}

/// Waits for a number of iterations.
pub async fn turns(count: usize) {
    for _ in 0..count {
        rt::yield_now().await;
    }
}

/// Waits until `done`.
pub async fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        rt::sleep(std::time::Duration::from_millis(1)).await;
    }
}
