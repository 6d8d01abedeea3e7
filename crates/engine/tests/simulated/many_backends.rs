//! Tests of backends and servers that commands add and remove for months: the slots of removed ones are reused, and the
//! cost of a command does not depend on the number of others.

use base::append_only_vec::visits;
use testkit::{Peer, sleep};

use crate::api;
use crate::messages::*;
use crate::reloaded_proxies::sections;
use crate::reloads::serve;
use crate::world::*;

const ROUNDS: usize = 200;

fn world(backends: usize) -> Worlds {
    let head = "defaults http\n mode http\n balance roundrobin\n timeout server 3s\n timeout connect 3s\n timeout client 3s\n\
                frontend web\n bind 10.0.0.1:80\n use_backend %[path,field(3,/)] if { path_beg /to/ }\n";
    let each = |number| format!("backend b{number}\n server a 10.0.1.1:80\n server b 10.0.1.1:80\n");
    sections(&format!("{head}{}", (0..backends).map(each).collect::<String>()))
}

/// The numbers of slots of backends, and of servers of all backends.
fn places(world: &World) -> (usize, usize) {
    let program = world.shared().generation().program.clone();
    let backends = (0..program.proxies.places()).filter_map(|place| program.proxies.get(place)?.backend.as_ref());
    (program.proxies.places(), backends.map(|backend| backend.servers.places()).sum())
}

#[test]
fn backends_that_come_and_go_take_no_more_places_than_there_are_at_one_time() {
    world(2).workers(&[2]).seeds(0..1).run(|world| async move {
        serve(&world, S1, "s1");
        let mut most = (0, 0);
        for round in 0..ROUNDS {
            let (one, other) = (format!("x{round}"), format!("y{round}"));
            for name in [&one, &other] {
                assert!(api::ask(&format!("add backend {name} from http")).await.contains("registered"), "{round}");
                for server in ["s", "t"] {
                    let added = api::ask(&format!("add server {name}/{server}{round} 10.0.1.1:80")).await;
                    assert!(added.contains("registered"), "{added}");
                }
            }
            // No counter of the previous one is visible.
            let shown = api::ask("show stat").await;
            let row = shown.lines().find(|row| row.starts_with(&format!("{one},BACKEND"))).unwrap();
            assert_eq!(row.split(',').nth(7), Some("0"), "{row}");
            assert!(round == 0 || !shown.contains(&format!("x{},", round - 1)), "{shown}");
            api::ask(&format!("enable server {one}/s{round}; publish backend {one}")).await;
            if round % 10 == 0 {
                let mut client = Peer::connect(WEIR).await;
                client.send(get(&format!("/to/{one}"))).await;
                client.expect(answer_at_client("s1")).await;
            }
            api::ask(&format!("unpublish backend {one}; disable server {one}/s{round}")).await;
            for name in [&one, &other] {
                for server in ["s", "t"] {
                    let told = api::ask(&format!("del server {name}/{server}{round}")).await;
                    assert!(told.contains("deleted"), "{told}");
                }
                assert!(api::ask(&format!("del backend {name}")).await.contains("deleted"));
            }
            sleep(2_000).await;
            let now = places(&world);
            if round == 0 {
                most = now;
            }
            assert_eq!(now, most, "{round}");
        }
        assert_eq!(most, (5, 8));
    });
}

#[test]
fn servers_that_come_and_go_take_no_more_places_than_there_are_at_one_time() {
    world(1).workers(&[2]).seeds(0..1).run(|world| async move {
        serve(&world, S1, "s1");
        for round in 0..ROUNDS {
            assert!(api::ask(&format!("add server b0/t{round} 10.0.1.1:80")).await.contains("registered"), "{round}");
            assert!(api::ask(&format!("del server b0/t{round}")).await.contains("deleted"), "{round}");
            sleep(100).await;
        }
        assert_eq!(places(&world), (2, 3));
    });
}

/// Of ten thousand servers with the same parameters none has sockets' options of its own.
#[test]
fn servers_with_equal_parameters_share_their_route() {
    world(2).workers(&[2]).seeds(0..1).run(|world| async move {
        let added =
            "add server b0/t 10.0.1.1:80; add server b1/t 10.0.1.2:81; add server b1/u 10.0.1.1:80 source 10.0.0.9";
        assert_eq!(api::ask(added).await.matches("registered").count(), 3);
        let shared = world.shared();
        let is_shared =
            |serial| std::ptr::eq(shared.outgoing.route(0).unwrap(), shared.outgoing.route(serial).unwrap());
        assert_eq!([1, 3, 5, 6].map(is_shared), [true, true, true, false]);
        assert!(shared.outgoing.route(0).unwrap().options.source.is_none());
        assert!(shared.outgoing.route(6).unwrap().options.source.is_some());
    });
}

/// A slot is not reused while a request uses it.
#[test]
fn the_place_of_a_backend_is_kept_while_a_request_names_it() {
    world(0).workers(&[2]).seeds(0..1).run(|world| async move {
        serve(&world, S1, "s1");
        api::ask("add backend x from http; add server x/s 10.0.1.1:80; enable server x/s; publish backend x").await;
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/to/x")).await;
        client.expect(answer_at_client("s1")).await;
        api::ask("unpublish backend x; disable server x/s").await;
        assert!(api::ask("del server x/s; del backend x").await.contains("Backend deleted"));
        sleep(2_000).await;
        assert!(api::ask("add backend y from http").await.contains("registered"));
        assert!(api::ask("add backend x from http").await.contains("registered"));
        assert!(api::ask("add backend y from http").await.contains("already used"));
        assert_eq!(places(&world), (3, 1));
        assert!(api::ask("show stat").await.contains("y,BACKEND"));
    });
}

/// The number of list entries visited by the commands of one round, with that number of other backends.
fn work(backends: usize) -> usize {
    let counted = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let found = std::sync::Arc::clone(&counted);
    world(backends).workers(&[1]).seeds(0..1).run(move |_| {
        let counted = std::sync::Arc::clone(&counted);
        async move {
            let round = |name: String| async move {
                for order in [
                    format!("add backend {name} from http"),
                    format!("add server {name}/s 10.0.1.1:80"),
                    format!("enable server {name}/s"),
                    format!("publish backend {name}"),
                    format!("set server {name}/s weight 50%"),
                    format!("unpublish backend {name}"),
                    format!("disable server {name}/s"),
                    format!("del server {name}/s"),
                    format!("del backend {name}"),
                ] {
                    let told = api::ask(&order).await;
                    assert!(!told.contains("No such") && !told.contains("annot"), "{order}: {told}");
                }
            };
            // The first search visits all of them.
            round("first".to_owned()).await;
            let before = visits();
            round("second".to_owned()).await;
            counted.store(visits() - before, std::sync::atomic::Ordering::Relaxed);
        }
    });
    found.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn an_order_costs_the_same_beside_any_number_of_backends() {
    let (few, many) = (work(20), work(400));
    assert!(many <= few + 50, "{few} entries are looked at beside 20 backends, {many} beside 400");
}
