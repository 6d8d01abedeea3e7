//! Tests of connections per second (`rate-limit sessions`, `maxconnrate`, `maxsessrate`): further ones wait in the
//! system's backlog, and are accepted at the same times as in HAProxy.

use std::cell::RefCell;
use std::rc::Rc;

use testkit::{Peer, Stopwatch, sleep};

use crate::messages::*;
use crate::world::*;

const CLOSING: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const OK_CLOSING: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

/// Connects clients that all arrive at once; returns the times of their answers in milliseconds.
async fn rush(world: &World, addresses: &'static [&'static str], clients: usize) -> Vec<u128> {
    let watch = Rc::new(Stopwatch::start());
    let answered = Rc::new(RefCell::new(Vec::new()));
    for number in 0..clients {
        let (watch, answered) = (Rc::clone(&watch), Rc::clone(&answered));
        world.scope.spawn(async move {
            let mut client = Peer::connect(addresses[number % addresses.len()]).await;
            client.send(CLOSING).await;
            client.expect(OK_CLOSING).await;
            answered.borrow_mut().push(watch.elapsed().as_millis());
        });
    }
    while answered.borrow().len() < clients {
        sleep(1).await;
    }
    let mut answered = answered.take();
    answered.sort_unstable();
    answered
}

/// Thirty clients, ten per second: ten at once, and a second later one every 100 ms.
fn ten_a_second(worlds: Worlds, addresses: &'static [&'static str]) {
    worlds.seeds(0..4).run(move |world| async move {
        serve_ok(&world.scope, S1);
        let answered = rush(&world, addresses, 30).await;
        for (number, millis) in answered.iter().enumerate() {
            let due = if number < 10 { 0 } else { 1000 + 100 * (number as u128 - 10) };
            assert!((due..due + 5).contains(millis), "number {number} after {millis} ms: {answered:?}");
        }
    });
}

const SERVER: &str = "backlog 100\n server s1 10.0.1.1:80";

#[test]
fn of_a_frontend() {
    ten_a_second(listen(&format!("rate-limit sessions 10\n {SERVER}")), &[WEIR]);
}

#[test]
fn of_a_frontend_with_two_addresses() {
    let worlds = listen(&format!("bind 10.0.0.1:81\n rate-limit sessions 10\n {SERVER}"));
    ten_a_second(worlds, &[WEIR, "10.0.0.1:81"]);
}

#[test]
fn of_the_process_over_two_frontends() {
    for limit in ["maxconnrate 10", "maxsessrate 10"] {
        let two = format!("listen l\n bind {WEIR}\n {SERVER}\nlisten m\n bind 10.0.0.1:81\n {SERVER}");
        ten_a_second(config(&two).global(limit), &[WEIR, "10.0.0.1:81"]);
    }
}

#[test]
fn of_both_the_lower_one_counts() {
    ten_a_second(listen(&format!("rate-limit sessions 10\n {SERVER}")).global("maxconnrate 12"), &[WEIR]);
    ten_a_second(listen(&format!("rate-limit sessions 1000\n {SERVER}")).global("maxsessrate 10"), &[WEIR]);
}

#[test]
fn a_frontend_at_its_rate_does_not_hold_up_another() {
    let two =
        format!("listen l\n bind {WEIR}\n rate-limit sessions 1\n {SERVER}\nlisten m\n bind 10.0.0.1:81\n {SERVER}");
    config(&two).global("maxconn 5").run(|world| async move {
        serve_ok(&world.scope, S1);
        let waiting = world.clone();
        world.scope.spawn(async move {
            rush(&waiting, &[WEIR], 4).await;
        });
        sleep(10).await;
        let watch = Stopwatch::start();
        rush(&world, &["10.0.0.1:81"], 20).await;
        assert!(watch.elapsed().as_millis() < 50, "{:?}", watch.elapsed());
        sleep(4000).await;
    });
}

#[test]
fn who_waits_does_not_wait_for_ever_when_the_process_stops() {
    listen(&format!("rate-limit sessions 1\n {SERVER}")).run(|world| async move {
        serve_ok(&world.scope, S1);
        let rushing = world.clone();
        world.scope.spawn(async move {
            rush(&rushing, &[WEIR], 3).await;
        });
        sleep(100).await;
        world.stop();
        let watch = Stopwatch::start();
        while !world.is_drained().await {
            sleep(1).await;
        }
        assert!(watch.elapsed().as_millis() < 500, "{:?}", watch.elapsed());
    });
}
