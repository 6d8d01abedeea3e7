//! Several simulated workers: wakes, posts, parked streams across workers, signals.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::rt;
use crate::support::*;
use rt::net::{ParkedStream, Stream};
use rt::{Class, Main, Signal};

#[test]
fn tasks_on_different_workers_wake_each_other() {
    for seed in 0..50 {
        let place: Arc<Mutex<Option<Waker>>> = Arc::default();
        let value = Arc::new(AtomicUsize::new(0));
        let (kept, written) = (Arc::clone(&place), Arc::clone(&value));
        let main: Main = Arc::new(move |worker| {
            let (kept, written) = (Arc::clone(&kept), Arc::clone(&written));
            Box::pin(async move {
                if worker == 0 {
                    rt::sleep(Duration::from_millis(rt::random() % 3)).await;
                    written.store(7, Ordering::SeqCst);
                    if let Some(waker) = kept.lock().unwrap().take() {
                        waker.wake();
                    }
                }
            })
        });
        let got = rt::sim::run(
            seed,
            2,
            main,
            std::future::poll_fn(move |context| {
                *place.lock().unwrap() = Some(context.waker().clone());
                match value.load(Ordering::SeqCst) {
                    0 => Poll::Pending,
                    value => Poll::Ready(value),
                }
            }),
        );
        assert_eq!(got, 7);
    }
}

#[test]
fn the_script_has_a_worker_of_its_own() {
    let main: Main = Arc::new(|worker| {
        Box::pin(async move {
            assert_eq!((rt::worker(), rt::workers()), (worker, 3));
            assert!(worker < 3);
        })
    });
    let numbers = rt::sim::run(1, 3, main, async {
        rt::sleep(Duration::from_millis(1)).await;
        (rt::worker(), rt::workers())
    });
    assert_eq!(numbers, (3, 3));
}

/// Workers send requests over a pool of parked streams that all of them share, to a server that closes some.
#[test]
fn parked_streams_move_between_workers() {
    for seed in 0..40 {
        let pool: Arc<Mutex<Vec<ParkedStream>>> = Arc::default();
        let (done, moved) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counts = (Arc::clone(&done), Arc::clone(&moved));
        let main: Main = Arc::new(move |_| {
            let (pool, done, moved) = (Arc::clone(&pool), Arc::clone(&counts.0), Arc::clone(&counts.1));
            Box::pin(async move {
                for _ in 0..50 {
                    rt::sleep(Duration::from_micros(rt::random() % 3_000)).await;
                    one_request(&pool, &moved).await;
                    done.fetch_add(1, Ordering::SeqCst);
                }
            })
        });
        let finished = Arc::clone(&done);
        rt::sim::run(seed, 3, main, async move {
            serve(listen("10.0.0.1:80"), |socket| {
                rt::spawn(Class::Normal, 0, fickle_echo(Stream::adopt(socket)));
            });
            while finished.load(Ordering::SeqCst) < 150 {
                rt::sleep(Duration::from_millis(10)).await;
            }
        });
        assert!(moved.load(Ordering::SeqCst) > 10, "seed {seed}: streams were lent across workers");
    }

    async fn fickle_echo(mut stream: Stream) {
        let mut buffer = rt::buffer();
        loop {
            buffer.clear();
            while buffer.len() < 4 {
                if !matches!(read(&mut stream, &mut buffer).await, Ok(1..)) {
                    return;
                }
            }
            let text = buffer.data().to_vec();
            assert_eq!(text.len(), 4);
            if write_all(&mut stream, &text).await.is_err() || rt::random().is_multiple_of(8) {
                return;
            }
        }
    }

    async fn one_request(pool: &Mutex<Vec<ParkedStream>>, moved: &AtomicUsize) {
        loop {
            let parked = pool.lock().unwrap().pop();
            let foreign = parked.as_ref().is_some_and(|parked| parked.worker() != rt::worker());
            let lent = parked.and_then(ParkedStream::adopt);
            let was_lent = lent.is_some();
            let mut stream = match lent {
                Some(stream) => stream,
                // The service opens shortly after the workers start.
                None => match connect(&address("10.0.0.1:80")).await {
                    Ok(stream) => stream,
                    Err(_) => continue,
                },
            };
            let text = (rt::random() as u32).to_ne_bytes();
            let mut buffer = rt::buffer();
            let mut good = write_all(&mut stream, &text).await.is_ok();
            while good && buffer.len() < 4 {
                good = matches!(read(&mut stream, &mut buffer).await, Ok(1..));
            }
            if good {
                assert_eq!(buffer.data(), text, "the answer to somebody else's request");
                moved.fetch_add(usize::from(foreign && was_lent), Ordering::SeqCst);
                pool.lock().unwrap().push(stream.park());
                return;
            }
            assert!(was_lent, "a fresh connection failed");
        }
    }
}

#[test]
fn signals_come_from_the_script() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let main: Main = Arc::new(move |worker| {
        let noted = Arc::clone(&noted);
        Box::pin(async move {
            if worker == 0 {
                let mut signals = rt::signals(&[Signal::User1, Signal::Terminate]).unwrap();
                loop {
                    let number = signals.next().await;
                    noted.lock().unwrap().push(Signal::from_number(number).unwrap());
                }
            }
        })
    });
    rt::sim::run(3, 2, main, async {
        rt::sleep(Duration::from_millis(1)).await;
        rt::sim::raise(Signal::User1);
        rt::sim::raise(Signal::Hangup);
        rt::sim::raise(Signal::Terminate);
        rt::sleep(Duration::from_millis(1)).await;
    });
    assert_eq!(*seen.lock().unwrap(), [Signal::User1, Signal::Terminate]);
}

#[test]
fn a_paused_listener_takes_nothing_and_a_full_backlog_waits() {
    under_seeds(|| async {
        let options = rt::net::BindOptions { backlog: 2, ..rt::net::BindOptions::default() };
        let socket = rt::net::ListeningSocket::bind(&address("10.0.0.1:80"), &options).unwrap();
        let mut listener = rt::net::Listener::new(Arc::new(socket)).unwrap();
        listener.pause();
        let connected = Arc::new(AtomicUsize::new(0));
        for _ in 0..4 {
            let connected = Arc::clone(&connected);
            rt::spawn(Class::Normal, 0, async move {
                let _stream = connect(&address("10.0.0.1:80")).await.unwrap();
                connected.fetch_add(1, Ordering::SeqCst);
                rt::sleep(Duration::from_secs(100)).await;
            });
        }
        rt::sleep(Duration::from_secs(10)).await;
        assert_eq!(connected.load(Ordering::SeqCst), 2);
        listener.resume().unwrap();
        for _ in 0..4 {
            listener.accept().await.unwrap();
        }
        rt::sleep(Duration::from_secs(2)).await;
        assert_eq!(connected.load(Ordering::SeqCst), 4);
    });
}

#[test]
fn large_buffers_for_bulk_data_are_few_however_many_want_one() {
    rt::sim::run(1, 1, idle(), async {
        let held: Vec<_> = (0..500).map(|_| rt::bulk_buffer()).collect();
        let large = held.iter().filter(|buffer| buffer.capacity() == rt::large_buffer_size()).count();
        let small = held.iter().filter(|buffer| buffer.capacity() == rt::buffer_size()).count();
        assert!((1..=64).contains(&large), "{large} large buffers");
        assert_eq!(large + small, 500);
        drop(held);
        assert_eq!(rt::bulk_buffer().capacity(), rt::large_buffer_size(), "they come back");
    });
}

#[test]
fn whoever_used_up_a_slice_of_time_runs_behind_the_others() {
    let order: Arc<Mutex<String>> = Arc::default();
    let noted = Arc::clone(&order);
    let main: Main = Arc::new(move |_| {
        let noted = Arc::clone(&noted);
        Box::pin(async move {
            rt::sim::network().set_cost_of_work(Duration::from_micros(300));
            for name in ['s', 'q'] {
                let noted = Arc::clone(&noted);
                rt::spawn(Class::Normal, 0, async move {
                    for _ in 0..3 {
                        if name == 's' {
                            rt::measure();
                            assert!(rt::has_used_slice() && rt::slice_is_over());
                        }
                        noted.lock().unwrap().push(name);
                        rt::yield_now().await;
                        assert!(!rt::has_used_slice(), "each call has a slice of its own");
                    }
                });
            }
        })
    });
    rt::sim::run(1, 1, main, async { rt::sleep(Duration::from_secs(1)).await });
    assert_eq!(*order.lock().unwrap(), "sqqsqs", "both start; from then on the slow one comes last");
}

#[test]
fn tasks_that_are_behind_share_a_turn_of_bounded_length() {
    let turns: Arc<Mutex<Vec<usize>>> = Arc::default();
    let noted = Arc::clone(&turns);
    let main: Main = Arc::new(move |_| {
        let noted = Arc::clone(&noted);
        Box::pin(async move {
            rt::sim::network().set_cost_of_work(Duration::from_micros(150));
            let called = Arc::new(AtomicUsize::new(0));
            for _ in 0..10 {
                let called = Arc::clone(&called);
                rt::spawn(Class::Normal, 0, async move {
                    for _ in 0..4 {
                        rt::measure();
                        called.fetch_add(1, Ordering::SeqCst);
                        rt::yield_now().await;
                    }
                });
            }
            // Runs once per iteration, before them.
            loop {
                rt::yield_now().await;
                match called.swap(0, Ordering::SeqCst) {
                    0 => break,
                    calls => noted.lock().unwrap().push(calls),
                }
            }
        })
    });
    rt::sim::run(1, 1, main, async { rt::sleep(Duration::from_secs(1)).await });
    let turns = turns.lock().unwrap();
    assert_eq!((turns[0], turns.iter().sum::<usize>()), (10, 40), "{turns:?}");
    assert!(turns[1..].iter().all(|calls| *calls == 2), "two of them take long enough: {turns:?}");
}
