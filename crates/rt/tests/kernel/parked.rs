//! Parked streams: adopted on their worker and on others, and never after an event on them.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::rt;
use crate::support::*;
use rt::Class;
use rt::net::{ParkedId, ParkedStream, Stream, poll_parked_events};

/// Returns a client that has sent and received once, so that it is watched and drained, and its peer.
async fn used_pair() -> (Stream, Stream) {
    let (mut client, mut server) = pair().await;
    let mut buffer = rt::buffer();
    write_all(&mut client, b"request").await.unwrap();
    read_exactly(&mut server, &mut buffer, 7).await;
    write_all(&mut server, b"answer").await.unwrap();
    buffer.clear();
    read_exactly(&mut client, &mut buffer, 6).await;
    (client, server)
}

async fn next_event() -> Vec<ParkedId> {
    let mut ids = Vec::new();
    poll_fn(|context| poll_parked_events(context, &mut ids)).await;
    ids
}

#[test]
fn a_quiet_stream_is_taken_up_again() {
    on_one_worker(|| async {
        let (mut client, mut server) = used_pair().await;
        for _ in 0..3 {
            let parked = client.park();
            turns(3).await;
            client = parked.adopt().expect("nothing happened on it");
            write_all(&mut client, b"again").await.unwrap();
            let mut buffer = rt::buffer();
            read_exactly(&mut server, &mut buffer, 5).await;
            write_all(&mut server, b"and again").await.unwrap();
            buffer.clear();
            read_exactly(&mut client, &mut buffer, 9).await;
        }
    });
}

#[test]
fn a_close_a_reset_and_a_stray_byte_spoil_a_parked_stream() {
    on_one_worker(|| async {
        for what in ["close", "reset", "byte"] {
            let (client, mut server) = used_pair().await;
            let parked = client.park();
            let id = parked.id();
            match what {
                "close" => drop(server),
                "reset" => {
                    server.set_linger_zero().unwrap();
                    drop(server);
                }
                _ => {
                    write_all(&mut server, b"x").await.unwrap();
                    std::mem::forget(server);
                }
            }
            assert_eq!(next_event().await, [id], "{what}");
            assert!(parked.adopt().is_none(), "{what}");
        }
    });
}

#[test]
fn what_happened_before_parking_is_reported() {
    on_one_worker(|| async {
        // Never watched, and the end has arrived already.
        let (mut client, server) = pair().await;
        drop(server);
        until(|| !client.is_clean()).await;
        let parked = client.park();
        assert_eq!(next_event().await, [parked.id()]);
        assert!(parked.adopt().is_none());
        // The read filled the buffer, and there is more to read.
        let (mut client, mut server) = pair().await;
        write_all(&mut server, b"12345678").await.unwrap();
        let mut small = base::Buffer::with_capacity(4);
        read_exactly(&mut client, &mut small, 4).await;
        assert!(!client.is_clean());
        let parked = client.park();
        assert_eq!(next_event().await, [parked.id()]);
        assert!(parked.adopt().is_none());
    });
}

#[test]
fn a_clean_stream_is_told_from_one_with_leftovers() {
    on_one_worker(|| async {
        let (mut client, mut server) = pair().await;
        write_all(&mut server, b"1234").await.unwrap();
        let mut small = base::Buffer::with_capacity(4);
        read_exactly(&mut client, &mut small, 4).await;
        assert!(client.is_clean(), "the read filled the buffer, and nothing is left");
        write_all(&mut server, b"5").await.unwrap();
        until(|| !client.is_clean()).await;
    });
}

/// Parks a stream on worker 0, lets `happen` act on its peer, and adopts the stream on worker 1.
fn adopt_elsewhere(happen: fn(Stream), expect_stream: bool) {
    let taken = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&taken);
    start(2, move |worker| {
        let noted = Arc::clone(&noted);
        Box::pin(async move {
            if worker != 0 {
                return;
            }
            let (client, server) = used_pair().await;
            let parked = client.park();
            happen(server);
            if !expect_stream {
                assert_eq!(next_event().await, [parked.id()]);
            }
            rt::post(1, Box::new(move || take_up(parked, noted)));
        })
    });
    assert_eq!(*taken.lock().unwrap(), Some(expect_stream));
}

fn take_up(parked: ParkedStream, noted: Arc<Mutex<Option<bool>>>) {
    let stream = parked.adopt();
    *noted.lock().unwrap() = Some(stream.is_some());
    let Some(mut stream) = stream else { return rt::stop() };
    rt::spawn(Class::Normal, 0, async move {
        let mut buffer = rt::buffer();
        write_all(&mut stream, b"echo").await.unwrap();
        read_exactly(&mut stream, &mut buffer, 4).await;
        rt::stop();
    });
}

#[test]
fn another_worker_takes_a_quiet_stream_up() {
    adopt_elsewhere(|server| rt::spawn(Class::Normal, 0, echo(server)), true);
}

#[test]
fn another_worker_does_not_take_up_a_closed_stream() {
    adopt_elsewhere(drop, false);
}

#[test]
fn another_worker_does_not_take_up_a_stream_with_stray_bytes() {
    let speak = |mut server: Stream| {
        server.try_write(b"unasked", false).unwrap();
        std::mem::forget(server);
    };
    adopt_elsewhere(speak, false);
}

#[test]
fn a_stream_outlives_the_worker_that_it_was_parked_on() {
    let place: Arc<Mutex<Vec<ParkedStream>>> = Arc::default();
    let kept = Arc::clone(&place);
    start(1, move |_| {
        let kept = Arc::clone(&kept);
        Box::pin(async move {
            let (client, server) = used_pair().await;
            kept.lock().unwrap().push(client.park());
            kept.lock().unwrap().push(server.park());
            rt::stop();
        })
    });
    on_one_worker(move || {
        let mut parked = std::mem::take(&mut *place.lock().unwrap());
        async move {
            let mut server = parked.pop().unwrap().adopt().expect("nothing happened on it");
            drop(parked);
            assert_eq!(read_to_end(&mut server).await.unwrap(), b"");
        }
    });
}

/// Four workers exchange parked streams while a server closes some of them at odd times.
#[test]
fn parked_streams_survive_a_crowd() {
    const WORKERS: usize = 4;
    const REQUESTS: usize = 3_000;
    let socket = listen();
    let pool: Arc<Mutex<Vec<ParkedStream>>> = Arc::default();
    let (done, reused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&done), Arc::clone(&reused));
    start(WORKERS, move |_| {
        let (socket, pool) = (Arc::clone(&socket), Arc::clone(&pool));
        let (done, reused) = (Arc::clone(&counts.0), Arc::clone(&counts.1));
        Box::pin(async move {
            let address = socket.local_address().clone();
            serve(socket, |socket| rt::spawn(Class::Normal, 0, fickle_echo(Stream::adopt(socket))));
            rt::spawn(Class::Normal, 0, reap(Arc::clone(&pool)));
            for _ in 0..4 {
                rt::spawn(Class::Normal, 0, request(address.clone(), Arc::clone(&pool), reused.clone(), done.clone()));
            }
        })
    });
    assert!(done.load(Ordering::SeqCst) >= REQUESTS);
    assert!(reused.load(Ordering::SeqCst) > REQUESTS / 4, "streams were lent again and again");

    /// Answers until the client requests to close, or closes unasked after an answer.
    async fn fickle_echo(mut stream: Stream) {
        let mut buffer = rt::buffer();
        loop {
            buffer.clear();
            if !matches!(read(&mut stream, &mut buffer).await, Ok(1..)) {
                return;
            }
            assert_eq!(buffer.len(), 4, "a request comes whole and alone");
            let text = buffer.data().to_vec();
            if write_all(&mut stream, &text).await.is_err() {
                return;
            }
            match rt::random() % 16 {
                0 => return,
                1 => rt::yield_now().await,
                2 => {
                    rt::sleep(std::time::Duration::from_millis(1)).await;
                    let _ = stream.set_linger_zero();
                    return;
                }
                _ => {}
            }
        }
    }

    async fn reap(pool: Arc<Mutex<Vec<ParkedStream>>>) {
        loop {
            let ids = next_event().await;
            let spoilt: Vec<ParkedStream> = {
                let mut pool = pool.lock().unwrap();
                let (out, keep) = std::mem::take(&mut *pool).into_iter().partition(|one| ids.contains(&one.id()));
                *pool = keep;
                out
            };
            assert!(spoilt.into_iter().all(|one| one.adopt().is_none()));
        }
    }

    async fn request(
        address: rt::net::Address,
        pool: Arc<Mutex<Vec<ParkedStream>>>,
        reused: Arc<AtomicUsize>,
        done: Arc<AtomicUsize>,
    ) {
        let mut buffer = rt::buffer();
        while done.load(Ordering::SeqCst) < REQUESTS {
            let parked = pool.lock().unwrap().pop();
            let lent = parked.and_then(ParkedStream::adopt);
            let was_lent = lent.is_some();
            let mut stream = match lent {
                Some(stream) => stream,
                None => connect(&address).await,
            };
            buffer.clear();
            let text = (rt::random() as u32).to_ne_bytes();
            let sent = write_all(&mut stream, &text).await;
            let mut received = sent.is_ok();
            while received && buffer.len() < 4 {
                received = matches!(read(&mut stream, &mut buffer).await, Ok(1..));
            }
            if !received {
                // A parked stream may fail under the request; a new one may not.
                assert!(was_lent, "a fresh connection failed");
                continue;
            }
            assert_eq!(buffer.data(), text, "the answer to somebody else's request");
            reused.fetch_add(usize::from(was_lent), Ordering::SeqCst);
            done.fetch_add(1, Ordering::SeqCst);
            pool.lock().unwrap().push(stream.park());
        }
        rt::stop();
    }
}
