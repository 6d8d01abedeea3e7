//! Workers that never wait for events: their results must not depend on it.

use crate::rt;
use rt::{Config, Handle};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn a_spinning_worker_serves_timers_and_can_be_calmed() {
    let config = Config { spin: true, ..Config::default() };
    let main: rt::Main = Arc::new(|_| {
        Box::pin(async {
            assert!(rt::is_spinning());
            rt::sleep(Duration::from_millis(1)).await;
            rt::stop_spinning();
            assert!(!rt::is_spinning());
            rt::sleep(Duration::from_millis(1)).await;
            rt::stop();
        })
    });
    std::thread::spawn(move || rt::run(&config, main).unwrap()).join().unwrap();
}

/// Returns how often the worker's event loop has run. Asking adds an iteration, or few.
fn turns(worker: &Handle) -> u64 {
    let (send, receive) = mpsc::channel();
    worker.post(0, Box::new(move || send.send(rt::activity().turns).unwrap()));
    receive.recv_timeout(Duration::from_secs(60)).unwrap()
}

/// A worker without tasks, timers and events runs its loop nevertheless, which it does not after that.
#[test]
fn a_spinning_worker_does_not_wait() {
    const QUESTIONS: u64 = 50;
    let (send, receive) = mpsc::channel();
    let config = Config { spin: true, ..Config::default() };
    let main: rt::Main = Arc::new(move |_| {
        send.send(rt::handle()).unwrap();
        Box::pin(std::future::pending())
    });
    let runtime = std::thread::spawn(move || rt::run(&config, main).unwrap());
    let worker = receive.recv_timeout(Duration::from_secs(60)).unwrap();
    let first = turns(&worker);
    let mut asked = 0;
    while turns(&worker) - first < 100 * (QUESTIONS + asked) {
        asked += 1;
        assert!(asked < 50_000, "the worker waits");
        std::thread::sleep(Duration::from_millis(1));
    }
    worker.post(0, Box::new(rt::stop_spinning));
    let calm = turns(&worker);
    for _ in 0..QUESTIONS {
        turns(&worker);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(turns(&worker) - calm < 10 * QUESTIONS, "the worker does not wait");
    worker.stop();
    runtime.join().unwrap();
}
