//! The runtime on the kernel's own sockets, over loopback.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::Buffer;
use weir_rt as rt;

use rt::net::{Address, BindOptions, ConnectOptions, Listener, ListeningSocket, Stream};
use rt::{Class, Config, MainFuture};

fn start(workers: usize, main: impl Fn(u16) -> MainFuture + Send + Sync + 'static) {
    rt::run(&Config { workers, ..Config::default() }, Arc::new(main)).unwrap();
}

fn listen() -> Arc<ListeningSocket> {
    let address = Address::Inet("127.0.0.1:0".parse().unwrap());
    Arc::new(ListeningSocket::bind(&address, &BindOptions::default()).unwrap())
}

async fn read(stream: &mut Stream, buffer: &mut Buffer) -> std::io::Result<usize> {
    poll_fn(|context| stream.poll_read(context, buffer)).await
}

async fn write_all(stream: &mut Stream, bytes: &[u8]) {
    let mut sent = 0;
    while sent < bytes.len() {
        let slices = [std::io::IoSlice::new(&bytes[sent..])];
        sent += poll_fn(|context| stream.poll_write_slices(context, &slices, false)).await.unwrap();
    }
}

async fn connect(address: &Address) -> Stream {
    Stream::connect(address, &ConnectOptions::default()).unwrap().await.unwrap()
}

async fn echo(mut stream: Stream) {
    let (mut buffer, mut nothing) = (rt::buffer(), Buffer::empty());
    while read(&mut stream, &mut buffer).await.unwrap() > 0 {
        while !buffer.is_empty() {
            poll_fn(|context| stream.poll_write(context, &mut buffer, &mut nothing, false)).await.unwrap();
        }
    }
}

#[test]
fn bytes_go_there_and_back() {
    let socket = listen();
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    start(1, move |_| {
        let (socket, seen) = (Arc::clone(&socket), Arc::clone(&counted));
        Box::pin(async move {
            let address = socket.local_address().clone();
            let mut listener = Listener::new(socket).unwrap();
            rt::spawn(Class::Normal, 1, async move {
                loop {
                    let (socket, _) = listener.accept().await.unwrap();
                    rt::spawn(Class::Normal, 2, echo(Stream::adopt(socket)));
                }
            });
            let mut stream = connect(&address).await;
            let mut buffer = rt::buffer();
            for round in 0..100 {
                let text = format!("message {round}");
                write_all(&mut stream, text.as_bytes()).await;
                while buffer.len() < text.len() {
                    read(&mut stream, &mut buffer).await.unwrap();
                }
                assert_eq!(buffer.data(), text.as_bytes());
                buffer.clear();
                seen.fetch_add(1, Ordering::SeqCst);
            }
            rt::stop();
        })
    });
    assert_eq!(seen.load(Ordering::SeqCst), 100);
}
