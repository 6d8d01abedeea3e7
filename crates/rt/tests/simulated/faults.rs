//! Network faults, and that equal seeds reproduce them.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use crate::rt;
use crate::support::*;
use rt::sim::{Link, Options, Simulation};

/// Returns the output of a future if it completes within a time.
async fn within<T>(time: Duration, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut timer) = (Box::pin(future), rt::Timer::new());
    timer.arm(Some(rt::now() + time));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => timer.poll_expired(context).map(|()| None),
    })
    .await
}

#[test]
fn nobody_listening_and_refusal_are_errors() {
    under_seeds(|| async {
        let service = address("10.0.0.1:80");
        assert_eq!(connect(&service).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        serve_echo(listen("10.0.0.1:80"));
        rt::sim::network().refuse(&service, true);
        assert_eq!(connect(&service).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        rt::sim::network().refuse(&service, false);
        connect(&service).await.unwrap();
    });
}

#[test]
fn a_black_hole_never_answers_and_holds_open_streams_up() {
    under_seeds(|| async {
        let service = address("10.0.0.1:80");
        let (mut client, mut server) = pair("10.0.0.1:80").await;
        rt::sim::network().black_hole(&service, true);
        assert!(within(Duration::from_secs(60), connect(&service)).await.is_none());
        write_all(&mut client, b"late").await.unwrap();
        client.shutdown_write().unwrap();
        let mut buffer = rt::buffer();
        assert!(within(Duration::from_secs(60), read(&mut server, &mut buffer)).await.is_none());
        rt::sim::network().black_hole(&service, false);
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"late");
    });
}

#[test]
fn the_network_resets_connections() {
    under_seeds(|| async {
        let service = address("10.0.0.1:80");
        let (mut client, mut server) = pair("10.0.0.1:80").await;
        assert_eq!(rt::sim::network().open_ends(&service), 2);
        assert_eq!(rt::sim::network().reset(&service), 1);
        for stream in [&mut client, &mut server] {
            let error = read(stream, &mut rt::buffer()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
    });
}

#[test]
fn latency_is_kept_to() {
    under_seeds(|| async {
        let link = Link { latency: Duration::from_millis(40), jitter: Duration::ZERO, ..Link::default() };
        rt::sim::network().set_link(&address("10.0.0.1:80"), link);
        serve_echo(listen("10.0.0.1:80"));
        let begun = rt::now();
        let mut stream = connect(&address("10.0.0.1:80")).await.unwrap();
        let connected = rt::now();
        assert!((80..85).contains(&connected.millis_since(begun)));
        write_all(&mut stream, b"x").await.unwrap();
        read(&mut stream, &mut rt::buffer()).await.unwrap();
        assert!((80..85).contains(&rt::now().millis_since(connected)));
    });
}

/// Runs a crowd of clients, some of which give up; returns the fingerprint of the run.
fn crowd(seed: u64) -> u64 {
    rt::sim::run(seed, 3, crowd_main(), async {
        let served = Rc::new(Cell::new(0));
        for _ in 0..30 {
            let served = Rc::clone(&served);
            rt::spawn(rt::Class::Normal, 0, async move {
                rt::sleep(Duration::from_micros(rt::random() % 5_000)).await;
                if let Ok(mut stream) = connect(&address("10.0.0.1:80")).await {
                    let text = text((rt::random() % 3_000) as usize);
                    let _ = write_all(&mut stream, &text).await;
                    if !rt::random().is_multiple_of(4) {
                        stream.shutdown_write().unwrap();
                        assert!(read_to_end(&mut stream).await.unwrap() == text);
                    }
                }
                served.set(served.get() + 1);
            });
        }
        while served.get() < 30 {
            rt::sleep(Duration::from_millis(1)).await;
        }
        rt::sim::network().fingerprint()
    })
}

/// Every worker accepts; connections are handed to any worker.
fn crowd_main() -> rt::Main {
    let socket: std::sync::Mutex<Option<std::sync::Arc<rt::net::ListeningSocket>>> = std::sync::Mutex::default();
    std::sync::Arc::new(move |_| {
        let shared = socket.lock().unwrap().get_or_insert_with(|| listen("10.0.0.1:80")).clone();
        Box::pin(async move {
            serve(shared, |socket| {
                let to = (rt::random() % rt::workers() as u64) as u16;
                rt::post(
                    to,
                    Box::new(move || {
                        rt::spawn(rt::Class::Normal, 0, echo(rt::net::Stream::adopt(socket)));
                    }),
                );
            });
        })
    })
}

#[test]
fn equal_seeds_run_alike_and_others_do_not() {
    let prints: Vec<u64> = (0..10).map(crowd).collect();
    assert_eq!(prints, (0..10).map(crowd).collect::<Vec<_>>());
    let distinct: std::collections::BTreeSet<u64> = prints.iter().copied().collect();
    assert_eq!(distinct.len(), prints.len());
}

#[test]
#[should_panic(expected = "nothing is left to happen")]
fn a_script_that_waits_for_nothing_is_found_out() {
    rt::sim::run(1, 1, idle(), std::future::pending::<()>());
}

#[test]
#[should_panic(expected = "not done after")]
fn a_script_that_never_ends_is_found_out() {
    let options = Options { limit: Duration::from_secs(5), ..Options::default() };
    Simulation::new(options).run(idle(), async {
        loop {
            rt::sleep(Duration::from_millis(100)).await;
        }
    });
}

#[test]
#[should_panic(expected = "the script's own words")]
fn a_panic_of_the_script_fails_the_run() {
    rt::sim::run(1, 1, idle(), async { panic!("the script's own words") });
}

#[test]
#[should_panic(expected = "1 tasks or jobs panicked")]
fn a_contained_panic_fails_the_run() {
    rt::sim::run(1, 1, idle(), async {
        rt::spawn(rt::Class::Normal, 0, async { panic!("contained") });
        rt::sleep(Duration::from_secs(1)).await;
    });
}

#[test]
fn a_simulation_can_be_prepared_before_it_begins() {
    let options = Options { seed: 5, workers: 2, panics_allowed: true, ..Options::default() };
    let simulation = Simulation::new(options);
    let socket = simulation.enter(|| listen("10.0.0.1:0"));
    let service = socket.local_address().clone();
    let socket = std::sync::Mutex::new(Some(socket));
    let main: rt::Main = std::sync::Arc::new(move |worker| {
        let socket = socket.lock().unwrap().clone().filter(|_| worker == 1);
        Box::pin(async move {
            if let Some(socket) = socket {
                serve_echo(socket);
            }
        })
    });
    let echoed = simulation.run(main, async move {
        rt::spawn(rt::Class::Normal, 0, async { panic!("allowed here") });
        let mut stream = connect(&service).await.unwrap();
        write_all(&mut stream, b"hello").await.unwrap();
        stream.shutdown_write().unwrap();
        read_to_end(&mut stream).await.unwrap()
    });
    assert_eq!(echoed, b"hello");
}
