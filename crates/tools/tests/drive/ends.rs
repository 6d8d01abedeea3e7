//! Ends of runs, and errors before them.

use std::cell::Cell;
use std::rc::Rc;

use testkit::{Service, sleep};
use weir_tools::load::counters::Errors;
use weir_tools::load::plan::{Pace, Plan};

use crate::support::*;

fn server() -> rt::net::Address {
    rt::net::Address::Inet(SERVER.parse().unwrap())
}

#[test]
fn time_is_over_and_what_was_begun_is_answered() {
    let plan = Plan { connections: 3, duration: Some(millis(2_500)), ..plan() };
    let run = run(plan, |scope| async move { drop(serve(&scope, SERVER, || 1_000)) });
    assert_eq!((run.total.requests, run.total.answers, run.total.unanswered), (9, 9, 0));
    assert!(run.length > seconds(3) && run.length < millis(3_100), "{:?}", run.length);
    assert_eq!(run.seconds.last().unwrap().2, 0);
}

#[test]
fn an_io_that_takes_too_long_ends_its_connection() {
    let plan = Plan { requests: Some(5), timeout: Some(millis(300)), ..plan() };
    let number = Rc::new(Cell::new(0));
    let run = run(plan, move |scope| async move {
        Service::at(SERVER).serve(&scope.clone(), move |mut peer, _| {
            let number = Rc::clone(&number);
            async move {
                while peer.try_receive_head().await.is_some() {
                    number.set(number.get() + 1);
                    match number.get() {
                        2 => sleep(10_000).await,
                        // Each piece is received in time.
                        4 => peer.send_slowly(ANSWER, 10, 200).await,
                        _ => drop(peer.try_send(ANSWER).await),
                    }
                }
            }
        });
    });
    assert_eq!(run.total.errors, Errors { timeout: 1, ..Errors::default() });
    assert_eq!((run.total.requests, run.total.answers, run.total.connections), (5, 4, 2));
}

#[test]
fn failures_are_told_apart() {
    const CUT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello";
    const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    const JUNK: &str = "220 mail.example.com ESMTP\r\n\r\n";
    let plan = Plan { requests: Some(40), ..plan() };
    let run = run(plan, |scope| async move {
        Service::at(SERVER).serve(&scope.clone(), |mut peer, number| async move {
            while peer.try_receive_head().await.is_some() {
                match number {
                    0 => drop(peer.try_send(CUT).await),
                    1 => drop(peer.try_send(JUNK).await),
                    2 => return peer.reset(),
                    3 => drop(peer.try_send("HTTP/1.0 200 OK\r\n\r\nto the end").await),
                    _ => {
                        peer.try_send(NOT_FOUND).await;
                        continue;
                    }
                }
                return;
            }
        });
    });
    assert_eq!(run.total.errors, Errors { reset: 2, protocol: 1, status: 36, ..Errors::default() });
    assert_eq!((run.total.requests, run.total.answers), (40, 37));
    assert_eq!((run.total.statuses[100], run.total.statuses[304]), (1, 36));
    assert_eq!(run.total.connections, 5);
}

#[test]
fn ports_that_run_out_are_failures_to_connect_and_come_back() {
    const NO_PORT: i32 = 99;
    let plan = Plan { connections: 2, duration: Some(seconds(3)), requests_per_connection: Some(1), ..plan() };
    let run = run(plan, |scope| async move {
        drop(serve(&scope, SERVER, || 10));
        sleep(1_000).await;
        rt::sim::network().fail_to_connect(&server(), Some(NO_PORT));
        sleep(1_000).await;
        rt::sim::network().fail_to_connect(&server(), None);
    });
    let connect = run.total.errors.connect;
    assert!((20..80).contains(&connect), "{connect}: it pauses longer and longer");
    assert_eq!(run.total.errors, Errors { connect, ..Errors::default() });
    assert!(run.seconds[2].3 > 100 && run.total.requests == run.total.answers);
    assert!(run.trouble.unwrap().contains("no source port is free"));
}

#[test]
fn a_peer_that_nobody_reaches_ends_the_run() {
    let plan = Plan { connections: 5, threads: 2, requests: Some(10), ..plan() };
    let run = run(plan, |_| async {});
    assert!(run.length < millis(1_200) && run.total.answers == 0 && run.total.errors.connect > 5);
    assert!(run.trouble.unwrap().starts_with("10.0.0.1:80: "));
}

#[test]
fn the_first_failure_ends_the_run_that_asks_for_it() {
    let plan = Plan { connections: 5, threads: 2, stop_on_error: true, ..plan() };
    let run = run(plan, |scope| async move {
        drop(serve(&scope, SERVER, || 1));
        sleep(1_500).await;
        rt::sim::network().reset(&server());
    });
    assert!(run.total.errors.reset >= 1 && run.length < millis(1_600), "{:?}", run.total.errors);
    assert!(run.trouble.is_some());
}

#[test]
fn a_signal_ends_the_run_in_order_and_a_second_one_at_once() {
    let plan = Plan { connections: 4, threads: 2, ..plan() };
    let run = run(plan, |scope| async move {
        let delay = || if elapsed() < 1_000 { 100 } else { 20_000 };
        drop(serve(&scope, SERVER, delay));
        sleep(1_500).await;
        rt::sim::raise(rt::Signal::Interrupt);
        sleep(2_000).await;
        rt::sim::raise(rt::Signal::Terminate);
    });
    assert_eq!((run.total.unanswered, run.total.requests), (4, run.total.answers + 4));
    assert!(run.length > millis(3_400) && run.length < millis(3_700), "{:?}", run.length);
    assert_eq!(run.total.last_byte.len(), run.total.requests);
}

#[test]
fn a_connection_that_closed_while_it_was_idle_is_no_failure() {
    let plan = Plan { connections: 2, duration: Some(seconds(10)), pace: Pace::AtMost(4.0), ..plan() };
    let run = run(plan, |scope| async move {
        Service::at(SERVER).serve(&scope.clone(), |mut peer, _| async move {
            if peer.try_receive_head().await.is_some() {
                peer.try_send(ANSWER).await;
                sleep(50).await;
            }
        });
    });
    assert_eq!((run.total.errors.failures(), run.total.answers), (0, run.total.requests));
    assert_eq!(run.total.connections, run.total.requests.max(2));
}
