//! A warm worker allocates nothing: not for a wake, a timer, a read, a write, a task, a future, a parked stream or a
//! datagram.
//!
//! One test in a process of its own, since it counts what the whole process allocates.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::Buffer;
use rt::net::{
    Address, BindOptions, ConnectOptions, DatagramSocket, Ecn, Listener, ListeningSocket, ParkedStream, ReceiveBatch,
    Stream, Transmit,
};
use rt::{Class, Config, Timer};
use weir_rt as rt;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

async fn read(stream: &mut Stream, buffer: &mut Buffer) -> io::Result<usize> {
    poll_fn(|context| stream.poll_read(context, buffer)).await
}

async fn write_all(stream: &mut Stream, buffer: &mut Buffer) -> io::Result<()> {
    let mut nothing = Buffer::empty();
    while !buffer.is_empty() {
        poll_fn(|context| stream.poll_write(context, buffer, &mut nothing, false)).await?;
    }
    Ok(())
}

/// One request over a parked stream, with a timeout that is extended, in a boxed future.
async fn request(parked: ParkedStream, timer: &mut Timer) -> ParkedStream {
    let mut stream = parked.adopt().expect("a quiet stream");
    timer.arm(Some(rt::now() + Duration::from_secs(30)));
    let mut buffer = rt::buffer();
    assert!(buffer.push(b"request"));
    write_all(&mut stream, &mut buffer).await.unwrap();
    poll_fn(|context| {
        let _ = timer.poll_expired(context);
        stream.poll_readable(context)
    })
    .await;
    while buffer.len() < 7 {
        assert!(read(&mut stream, &mut buffer).await.unwrap() > 0);
    }
    rt::sleep(Duration::ZERO).await;
    rt::sleep(Duration::from_micros(1)).await;
    stream.park()
}

async fn echo(mut stream: Stream) {
    loop {
        poll_fn(|context| stream.poll_readable(context)).await;
        let mut buffer = rt::buffer();
        if read(&mut stream, &mut buffer).await.unwrap() == 0 {
            return;
        }
        write_all(&mut stream, &mut buffer).await.unwrap();
    }
}

async fn measure() -> usize {
    let any = Address::Inet("127.0.0.1:0".parse().unwrap());
    let socket = Arc::new(ListeningSocket::bind(&any, &BindOptions::default()).unwrap());
    let mut listener = Listener::new(Arc::clone(&socket)).unwrap();
    let stream = Stream::connect(socket.local_address(), &ConnectOptions::default()).unwrap().await.unwrap();
    let (peer, _) = listener.accept().await.unwrap();
    rt::spawn(Class::Normal, 0, echo(Stream::adopt(peer)));
    let (mut parked, mut timer, ended) = (stream.park(), Timer::new(), Rc::new(Cell::new(0)));
    let mut warm = 0;
    for round in 0..600 {
        if round == 100 {
            warm = ALLOCATIONS.load(Ordering::Relaxed);
        }
        parked = rt::boxed(request(parked, &mut timer)).await;
        let counted = Rc::clone(&ended);
        rt::spawn(Class::Normal, 0, async move { counted.set(counted.get() + 1) });
        rt::yield_now().await;
    }
    assert_eq!(ended.get(), 600);
    ALLOCATIONS.load(Ordering::Relaxed) - warm
}

/// Receives messages until there were `count` datagrams, and answers each message with its own bytes.
async fn answer(socket: &DatagramSocket, mut count: usize) {
    let mut batch = ReceiveBatch::new();
    while count > 0 {
        poll_fn(|context| socket.poll_receive(context, &mut batch)).await.unwrap();
        for message in batch.iter() {
            count = count.saturating_sub(message.iter().count());
            let (destination, source, segment_size) = (message.peer, message.local_ip, Some(message.stride));
            let transmit = Transmit { destination, source, ecn: message.ecn, contents: message.bytes, segment_size };
            assert_eq!(socket.try_send(&mut [transmit]), 1);
        }
    }
}

async fn receive_datagrams(socket: &DatagramSocket, mut count: usize) {
    let mut batch = ReceiveBatch::new();
    while count > 0 {
        poll_fn(|context| socket.poll_receive(context, &mut batch)).await.unwrap();
        count -= batch.iter().map(|message| message.iter().count()).sum::<usize>();
    }
}

/// Ten datagrams for each of two peers and back, in batches.
async fn measure_datagrams() -> usize {
    let bind = || DatagramSocket::bind("127.0.0.1:0".parse().unwrap(), &BindOptions::default()).unwrap();
    let (client, servers, contents) = (bind(), [bind(), bind()], [7; 9 * 1200 + 50]);
    let mut warm = 0;
    for round in 0..600 {
        if round == 100 {
            warm = ALLOCATIONS.load(Ordering::Relaxed);
        }
        let mut transmits = [0, 1].map(|at: usize| Transmit {
            destination: servers[at].local_address(),
            source: Some([127, 0, 0, 1].into()),
            ecn: Some(Ecn::Ect0),
            contents: &contents,
            segment_size: Some(1200),
        });
        let mut rest = &mut transmits[..];
        while !rest.is_empty() {
            let done = poll_fn(|context| client.poll_send(context, rest)).await.unwrap();
            rest = &mut rest[done..];
        }
        answer(&servers[0], 10).await;
        answer(&servers[1], 10).await;
        receive_datagrams(&client, 20).await;
    }
    ALLOCATIONS.load(Ordering::Relaxed) - warm
}

#[test]
fn a_warm_worker_allocates_nothing() {
    let allocations = Arc::new(AtomicUsize::new(usize::MAX));
    let noted = Arc::clone(&allocations);
    let main: rt::Main = Arc::new(move |_| {
        let noted = Arc::clone(&noted);
        Box::pin(async move {
            noted.store(measure().await + measure_datagrams().await, Ordering::SeqCst);
            rt::stop();
        })
    });
    rt::run(&Config::default(), main).unwrap();
    assert_eq!(allocations.load(Ordering::SeqCst), 0);
}
