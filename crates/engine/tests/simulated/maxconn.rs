//! Tests of `maxconn` of listening addresses, frontends and the process, with workers that stop accepting at the limit.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use testkit::{Peer, Service, Stopwatch, sleep};

use crate::messages::*;
use crate::world::*;

const CLOSING: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const OK_CLOSING: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

/// Answers every request after `millis`.
fn serve_late(world: &World, millis: u64) {
    Service::at(S1).serve(&world.scope, move |mut peer, _| async move {
        while peer.receive_head().await.is_some() {
            sleep(millis).await;
            peer.send(OK).await;
        }
    });
}

/// Connects twelve clients to these addresses, with one request each; returns when all were answered.
async fn twelve(world: &World, addresses: &'static [&'static str]) {
    let done = Rc::new(Cell::new(0));
    for number in 0..12 {
        let done = Rc::clone(&done);
        world.scope.spawn(async move {
            let mut client = Peer::connect(addresses[number % addresses.len()]).await;
            client.send(CLOSING).await;
            client.expect(OK_CLOSING).await;
            client.expect_eof().await;
            done.set(done.get() + 1);
        });
    }
    while done.get() < 12 {
        rt::sleep(Duration::from_micros(200)).await;
    }
}

/// Three slots, twelve clients, 20 ms each: four rounds.
fn four_rounds(worlds: Worlds, addresses: &'static [&'static str], count: fn(&World) -> u32) {
    worlds.seeds(0..8).run(move |world| async move {
        serve_late(&world, 20);
        let (watching, most) = (world.clone(), Rc::new(Cell::new(0)));
        let seen = Rc::clone(&most);
        world.scope.spawn(async move {
            loop {
                seen.set(seen.get().max(count(&watching)));
                rt::sleep(Duration::from_micros(500)).await;
            }
        });
        let watch = Stopwatch::start();
        twelve(&world, addresses).await;
        assert!((80..=96).contains(&watch.elapsed().as_millis()), "{:?}", watch.elapsed());
        assert_eq!(most.get(), 3);
    });
}

fn feconn(world: &World) -> u32 {
    world.shared().live.proxies[0].feconn()
}

fn actconn(world: &World) -> u32 {
    world.shared().live.process.actconn()
}

#[test]
fn of_a_frontend() {
    four_rounds(listen("maxconn 3\n backlog 100\n server s1 10.0.1.1:80"), &[WEIR], feconn);
}

#[test]
fn of_a_frontend_with_two_addresses() {
    let worlds = listen("bind 10.0.0.1:81\n maxconn 3\n backlog 100\n server s1 10.0.1.1:80");
    four_rounds(worlds, &[WEIR, "10.0.0.1:81"], feconn);
}

#[test]
fn of_a_listening_address() {
    let worlds = config("listen l\n backlog 100\n bind 10.0.0.1:80 maxconn 3\n server s1 10.0.1.1:80");
    four_rounds(worlds, &[WEIR], feconn);
}

/// Two frontends.
const TWO: &str = "listen l\n bind 10.0.0.1:80\n backlog 100\n server s1 10.0.1.1:80\nlisten m\n bind 10.0.0.1:81\n backlog 100\n server s1 10.0.1.1:80";

#[test]
fn of_the_process() {
    four_rounds(config(TWO).global("maxconn 3"), &[WEIR, "10.0.0.1:81"], actconn);
}

#[test]
fn of_all_of_them_together() {
    let two = "listen l\n bind 10.0.0.1:80 maxconn 2\n maxconn 3\n backlog 100\n server s1 10.0.1.1:80\n\
               listen m\n bind 10.0.0.1:81\n maxconn 2\n backlog 100\n server s1 10.0.1.1:80";
    config(two).global("maxconn 3").seeds(0..20).run(|world| async move {
        serve_late(&world, 7);
        for _ in 0..3 {
            twelve(&world, &[WEIR, "10.0.0.1:81"]).await;
        }
    });
}

#[test]
fn an_idle_client_keeps_its_place_until_it_goes() {
    for leave in [Peer::close, Peer::reset] {
        listen("maxconn 1\n backlog 100\n server s1 10.0.1.1:80").run(move |world| async move {
            serve_late(&world, 0);
            let (mut first, mut second) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
            first.send(GET).await;
            first.expect(OK_AT_CLIENT).await;
            second.send(GET).await;
            second.expect_silence(5000).await;
            leave(first);
            let watch = Stopwatch::start();
            second.expect(OK_AT_CLIENT).await;
            watch.took(0);
            world
                .expect_log(&[
                    r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#,
                    r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#,
                ])
                .await;
        });
    }
}

#[test]
fn clients_that_give_up_before_they_are_accepted_take_no_place() {
    listen("maxconn 1\n backlog 100\n server s1 10.0.1.1:80").seeds(0..8).run(|world| async move {
        serve_late(&world, 0);
        let mut first = Peer::connect(WEIR).await;
        first.send(GET).await;
        first.expect(OK_AT_CLIENT).await;
        for number in 0..8 {
            let mut impatient = Peer::connect(WEIR).await;
            impatient.send(GET).await;
            if number % 2 == 0 { impatient.close() } else { impatient.reset() }
        }
        let mut last = Peer::connect(WEIR).await;
        last.send(GET).await;
        last.expect_silence(100).await;
        first.close();
        last.expect(OK_AT_CLIENT).await;
    });
}
