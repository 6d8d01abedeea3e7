//! Signals, core dumps and limits of this process.

use crate::rt;
use crate::support::*;
use rt::{Signal, process};
use std::sync::{Arc, Mutex};

#[test]
fn signals_are_delivered_and_counted() {
    on_one_worker(|| async {
        let mut signals = rt::signals(&[Signal::User1, Signal::User2]).unwrap();
        for signal in [Signal::User1, Signal::User2, Signal::User1] {
            process::kill(process::id(), signal).unwrap();
            assert_eq!(signals.next().await, signal.number());
        }
        for _ in 0..3 {
            rt::process::kill(process::id(), Signal::User2).unwrap();
        }
        assert_eq!(signals.next().await, Signal::User2.number());
    });
}

#[test]
fn a_process_is_never_killed_by_a_group_number() {
    assert!(process::kill(0, Signal::Terminate).is_err());
    assert!(process::kill(u32::MAX, Signal::Terminate).is_err());
}

#[test]
fn threads_can_be_bound() {
    let all = process::available_processors();
    let first = all.iter().take(1).collect();
    std::thread::spawn(move || {
        process::bind_to(&first).unwrap();
        assert_eq!(process::available_processors(), first);
    })
    .join()
    .unwrap();
    assert!(process::bind_to(&[1023].into_iter().collect()).is_err());
}

#[test]
fn workers_run_where_they_are_told() {
    let all = process::available_processors();
    let alone = all.iter().skip(1).chain(all.iter()).take(1).collect();
    let config = rt::Config { workers: 2, processors: vec![None, Some(alone)], ..rt::Config::default() };
    // Worker 0 runs on another thread, so that the test's own stays free.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    let main: rt::Main = Arc::new(move |worker| {
        let notes = Arc::clone(&notes);
        Box::pin(async move {
            let mut notes = notes.lock().unwrap();
            notes.push((worker, process::available_processors()));
            if notes.len() == 2 {
                rt::stop();
            }
        })
    });
    std::thread::spawn(move || rt::run(&config, main).unwrap()).join().unwrap();
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_by_key(|(worker, _)| *worker);
    assert_eq!(seen, [(0, all), (1, alone)]);
}

#[test]
fn the_descriptor_limit_is_raised_as_far_as_may_be() {
    let (soft, _) = process::descriptor_limit().unwrap();
    let (raised, hard) = process::raise_descriptor_limit(soft + 1).unwrap();
    assert!(raised > soft || raised == hard);
    assert_eq!(process::raise_descriptor_limit(10).unwrap().0, raised, "it is never lowered");
}

#[test]
fn users_are_found_by_name() {
    assert_eq!(process::user_by_name("root").unwrap(), Some((0, 0)));
    assert_eq!(process::group_by_name("root").unwrap(), Some(0));
    assert_eq!(process::user_by_name("no such user").unwrap(), None);
    assert_eq!(process::group_by_name("no such group").unwrap(), None);
}

#[test]
fn a_process_with_threads_does_not_fork() {
    // The test harness runs tests on threads of its own.
    assert_eq!(process::fork().unwrap_err().kind(), std::io::ErrorKind::Unsupported);
}
