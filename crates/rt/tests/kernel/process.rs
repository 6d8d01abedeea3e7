//! Signals, cores and limits of this very process.

use crate::rt;
use crate::support::*;
use rt::{Signal, process};

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
fn cores_can_be_pinned() {
    let cores = process::available_cores();
    assert!(!cores.is_empty());
    std::thread::spawn(move || {
        process::pin_to(cores[0]).unwrap();
        assert_eq!(process::available_cores(), [cores[0]]);
    })
    .join()
    .unwrap();
    assert!(process::pin_to(usize::MAX).is_err());
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
