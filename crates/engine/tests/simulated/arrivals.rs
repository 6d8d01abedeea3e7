//! Tests of servers that the runtime API adds and removes repeatedly, on the virtual clock.

use live::Checker;
use testkit::{Peer, Service, sleep};

use crate::api::*;
use crate::messages::*;
use crate::world::*;

/// Milliseconds after which no reference is left to an idle server that was removed.
const REST: u64 = 500;

/// A backend without servers at first. Added servers stay in its program, so each run has one of its own.
fn empty(seed: u64, workers: usize) -> Worlds {
    let worlds = listen("http-reuse always\nbalance roundrobin\ntimeout check 1s").global(SOCKET);
    worlds.seeds(seed..seed + 1).workers(&[workers])
}

async fn fetch(service: &mut Service) {
    let mut client = Peer::connect(WEIR).await;
    client.send(GET).await;
    let mut server = service.accept().await;
    server.expect(GET_AT_SERVER).await;
    server.send(OK).await;
    client.expect(OK_AT_CLIENT).await;
}

async fn add(name: &str, rest: &str) {
    assert_eq!(ask(&format!("add server l/{name} {rest}")).await, "New server registered.\n\n");
}

async fn remove(name: &str) {
    order(&format!("disable server l/{name}")).await;
    assert_eq!(ask(&format!("del server l/{name}")).await, "Server deleted.\n\n");
}

/// The number of slots ever used for servers, and the number of servers.
fn places(world: &World) -> (usize, usize) {
    let generation = world.shared().generation();
    let servers = &generation.program.proxies[0].backend.as_ref().unwrap().servers;
    (servers.places(), servers.len())
}

#[test]
fn a_place_that_is_free_serves_again() {
    for (seed, workers) in [(0, 1), (1, 2)] {
        empty(seed, workers).run(|world| async move {
            let mut services = [Service::at(S1), Service::at(S2)];
            for round in 0..20 {
                let (name, service) = (format!("n{round}"), round % 2);
                add(&name, &format!("{} maxconn 10", [S1, S2][service])).await;
                order(&format!("set server l/{name} weight 7")).await;
                order(&format!("enable server l/{name}")).await;
                fetch(&mut services[service]).await;
                let told = ask("show servers conn l").await;
                assert!(told.contains(&format!("l/{name} 2/1 ")), "{told}");
                let shared = world.shared();
                let generation = shared.generation();
                let server = &generation.program.proxies[0].backend.as_ref().unwrap().servers[0];
                let sessions = shared
                    .counters
                    .of(|worker| worker.known_server(server.serial))
                    .count(|counters| &counters.sessions);
                assert_eq!((&*server.name, sessions), (&*name, 1), "what the one before did is forgotten");
                remove(&name).await;
                sleep(REST).await;
            }
            assert_eq!(places(&world), (1, 0));
        });
    }
}

#[test]
fn another_kind_of_server_gets_a_place_of_its_own() {
    empty(0, 1).run(|world| async move {
        let rows = [
            // Milliseconds before the server is added, its line, the number of slots from then on.
            (0, S1, 1),
            (REST, S1, 1),
            (REST, "10.0.1.1:80 weight 9", 2),
            (REST, "10.0.1.3:80 weight 9", 2),
            (REST, S2, 2),
            (REST, "10.0.1.1:80 cookie c", 3),
        ];
        for (step, (pause, rest, expected)) in rows.into_iter().enumerate() {
            sleep(pause).await;
            add(&format!("n{step}"), rest).await;
            assert_eq!(places(&world), (expected, 1), "{rest}");
            remove(&format!("n{step}")).await;
        }
    });
}

#[test]
fn what_checked_the_one_before_never_checks_the_next_one() {
    const EVERY: u64 = 30_000;
    empty(0, 1).run(|world| async move {
        let mut service = Service::at(S1);
        add("a", &format!("{S1} check inter 30s")).await;
        order("enable health l/a").await;
        order("enable server l/a").await;
        service.accept().await.expect_end().await;
        remove("a").await;
        // The task that checked it may still be sleeping.
        sleep(REST).await;
        add("x", &format!("{S1} check inter 30s")).await;
        assert_eq!(places(&world), (1, 1));
        remove("x").await;
        sleep(REST).await;
        add("b", &format!("{S1} check inter 30s")).await;
        assert_eq!(places(&world), (1, 1));
        order("enable health l/b").await;
        order("enable server l/b").await;
        service.accept().await.expect_end().await;
        let begun = rt::now();
        for _ in 0..5 {
            service.accept().await.expect_end().await;
        }
        let took = rt::now().saturating_since(begun).as_millis() as u64;
        assert!((5 * EVERY - 500..5 * EVERY + 500).contains(&took), "one check an interval: {took}");
        let health = world.shared().live.proxies[0].health(0, Checker::Health);
        assert!(health.is_some_and(|health| health.is_up()));
        remove("b").await;
        // The check task detects the removal.
        sleep(2 * EVERY).await;
    });
}
