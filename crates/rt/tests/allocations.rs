//! A warm worker allocates nothing: not for a wake, a timer, a read, a write, a task, a future or a parked stream.
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
use rt::net::{Address, BindOptions, ConnectOptions, Listener, ListeningSocket, ParkedStream, Stream};
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

#[test]
fn a_warm_worker_allocates_nothing() {
    let allocations = Arc::new(AtomicUsize::new(usize::MAX));
    let noted = Arc::clone(&allocations);
    let main: rt::Main = Arc::new(move |_| {
        let noted = Arc::clone(&noted);
        Box::pin(async move {
            noted.store(measure().await, Ordering::SeqCst);
            rt::stop();
        })
    });
    rt::run(&Config::default(), main).unwrap();
    assert_eq!(allocations.load(Ordering::SeqCst), 0);
}
