//! Tests of slots of servers: those of removed servers are reused for new ones, once no reference to the previous one
//! is left, so that a process does not grow with its reloads.

use engine::free_slots::Vacancies;
use std::cell::Cell;
use std::rc::Rc;

use live::ServerPlace;
use testkit::{Peer, sleep};

use crate::api;
use crate::messages::*;
use crate::reloads::{answers, column, serve, servers};
use crate::world::*;

const RELOADS: usize = 1_000;

/// The number of slots of the proxy's servers.
fn places(world: &World) -> usize {
    world.shared().generation().program.proxies[0].backend.as_ref().unwrap().servers.places()
}

/// Every reload removes a server and adds another one, with another name, address, weight and check; some clients stay
/// from the first to the last, others connect and disconnect.
#[test]
fn a_thousand_reloads_take_no_more_places_than_servers() {
    fn numbered(number: usize) -> Worlds {
        let (address, weight) = (["10.0.1.1:80", "10.0.1.2:80"][number % 2], 1 + number % 7);
        servers(&format!(
            "server a{number} {address} weight {weight} check inter {}ms\n server s3 10.0.1.3:80 weight 4",
            100 + number % 50
        ))
    }
    numbered(0).workers(&[2]).run(|world| async move {
        for (address, name) in [(S1, "s1"), (S2, "s2"), ("10.0.1.3:80", "s3")] {
            serve(&world, address, name);
        }
        let mut first = Peer::connect(WEIR).await;
        let counted = Rc::new(Cell::new(0));
        for number in 1..=RELOADS {
            assert_eq!(world.adopt(&numbered(number)), Ok(()));
            sleep(30).await;
            if number % 50 == 0 {
                let mut late = Peer::connect(WEIR).await;
                let (own, other) = (["s1", "s2"][number % 2], ["s2", "s1"][number % 2]);
                for client in [&mut first, &mut late] {
                    let found = answers(client, 11).await;
                    assert!(found.iter().any(|name| name == own), "{number}: {found:?}");
                    assert!(!found.iter().any(|name| name == other), "{number}: {found:?}");
                }
                counted.set(counted.get() + 1);
            }
            assert!(places(&world) <= 4, "{number}: {} places", places(&world));
        }
        assert_eq!(counted.get(), RELOADS / 50);
        let shown = api::ask("show servers state l").await;
        let names: Vec<&str> = shown.lines().filter_map(|line| line.split(' ').nth(3)).collect();
        assert!(names.contains(&"a1000") && names.contains(&"s3") && names.len() == 3, "{shown}");
        assert_eq!(column("a1000", "weight").await, (1 + RELOADS % 7).to_string());
        assert_eq!(world.shared().generations(), 2, "the first client has the first one");
    });
}

/// The slot of a server that still serves a request is not reused, and neither is that of one whose answer a client has
/// not received completely: the log line contains the right name.
#[test]
fn a_server_that_is_in_use_keeps_its_place() {
    servers("server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, s1) = asked().await;
        serve(&world, S2, "s2");
        assert_eq!(world.adopt(&servers("server s2 10.0.1.2:80")), Ok(()));
        sleep(5_000).await;
        assert!(world.shared().service::<Vacancies>().all().is_empty());
        assert_eq!(world.adopt(&servers("server s3 10.0.1.2:80")), Ok(()));
        assert_eq!(places(&world), 3);
        sleep(5).await;
        server.send(answer("s1")).await;
        client.expect(answer_at_client("s1")).await;
        drop(s1);
        sleep(2_500).await;
        let free: Vec<_> = world.shared().service::<Vacancies>().all().into_iter().collect();
        assert_eq!(free, [ServerPlace { proxy: 0, server: 0 }, ServerPlace { proxy: 0, server: 1 }]);
        // The counters of the next server do not include those of the previous one.
        assert_eq!(world.adopt(&servers("server s3 10.0.1.2:80\n server s4 10.0.1.2:80")), Ok(()));
        assert_eq!(places(&world), 3);
        sleep(5).await;
        assert_eq!([column("s4", "stot").await, column("s4", "rtime").await], ["0", "0"]);
        assert_eq!(answers(&mut client, 2).await, ["s2", "s2"]);
        assert_eq!(column("s4", "stot").await, "1");
    });
}

/// Connection parameters belong to the slot: a server with different ones gets another slot.
#[test]
fn a_server_that_is_reached_in_another_way_gets_another_place() {
    servers("server s1 10.0.1.1:80\n server s2 10.0.1.2:80").run(|world| async move {
        serve(&world, S1, "s1");
        serve(&world, S2, "s2");
        let mut client = Peer::connect(WEIR).await;
        assert_eq!(answers(&mut client, 2).await, ["s1", "s2"]);
        assert_eq!(world.adopt(&servers("server s2 10.0.1.2:80")), Ok(()));
        sleep(2_000).await;
        assert_eq!(world.adopt(&servers("server s2 10.0.1.2:80\n server s1 10.0.1.1:80 max-reuse 3")), Ok(()));
        assert_eq!(places(&world), 3);
        sleep(5).await;
        assert_eq!(world.adopt(&servers("server s2 10.0.1.2:80")), Ok(()));
        sleep(2_000).await;
        // Both are vacant, each with its parameters.
        assert_eq!(world.shared().service::<Vacancies>().all().len(), 2);
        assert_eq!(world.adopt(&servers("server s2 10.0.1.2:80\n server s1 10.0.1.1:80 max-reuse 3")), Ok(()));
        assert_eq!(places(&world), 3);
        assert!(world.shared().service::<Vacancies>().has(ServerPlace { proxy: 0, server: 0 }));
        sleep(5).await;
        assert_eq!(answers(&mut client, 2).await, ["s1", "s2"]);
    });
}

/// Commands and reloads reuse the same slots, whichever has removed the previous server.
#[test]
fn orders_and_reloads_share_the_places() {
    servers("server s1 10.0.1.1:80").run(|world| async move {
        serve(&world, S1, "s1");
        serve(&world, S2, "s2");
        let mut old = Peer::connect(WEIR).await;
        assert_eq!(answers(&mut old, 1).await, ["s1"]);
        for round in 0..30 {
            api::ask(&format!("add server l/x{round} 10.0.1.2:80")).await;
            api::order(&format!("enable server l/x{round}")).await;
            assert_eq!(answers(&mut old, 2).await, ["s1", "s2"]);
            assert_eq!(world.adopt(&servers("server s1 10.0.1.1:80")), Ok(()), "{round}");
            sleep(2_000).await;
            assert_eq!(answers(&mut old, 2).await, ["s1", "s1"]);
        }
        assert_eq!(places(&world), 2);
    });
}
