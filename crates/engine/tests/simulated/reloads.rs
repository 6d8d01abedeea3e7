//! Tests of servers that are added, removed and changed by a new configuration: their requests in progress are
//! completed, and all other servers are unaffected.

use std::cell::Cell;
use std::rc::Rc;

use testkit::{Peer, PeerOptions, Service, sleep};

use crate::api;
use crate::messages::*;
use crate::world::*;

const S3: &str = "10.0.1.3:80";

/// A proxy with these servers, which are named by the last number of their addresses.
pub fn servers(lines: &str) -> Worlds {
    listen(&format!("balance roundrobin\n http-reuse always\n option redispatch\n{lines}")).global(api::SOCKET)
}

/// Starts a server whose answers contain its name. Returns its number of connections.
pub fn serve(world: &World, address: &str, name: &'static str) -> Rc<Cell<usize>> {
    Service::at(address).serve(&world.scope, move |mut peer: Peer, _| async move {
        while peer.receive_head().await.is_some() {
            if !peer.try_send(answer(name)).await {
                return;
            }
        }
    })
}

/// Sends a request, and returns the name of the server that answers.
async fn ask(client: &mut Peer) -> String {
    client.send(GET).await;
    let head = client.receive_head().await.expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    String::from_utf8(client.receive(2).await).unwrap()
}

/// The servers that answer that number of requests, sorted.
pub async fn answers(client: &mut Peer, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..count {
        found.push(ask(client).await);
    }
    found.sort();
    found
}

/// A column of `show stat` for a server; empty if there is no such server.
pub async fn column(server: &str, name: &str) -> String {
    let shown = api::ask("show stat").await;
    let mut lines = shown.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().trim_start_matches("# ").split(',').collect();
    let at = columns.iter().position(|column| *column == name).expect("a column");
    let row = lines.find(|line| line.starts_with(&format!("l,{server},")));
    row.and_then(|row| row.split(',').nth(at)).unwrap_or_default().to_owned()
}

#[test]
fn servers_come_and_go_and_the_others_stay_as_they_are() {
    servers("server s1 10.0.1.1:80\n server s2 10.0.1.2:80").run(|world| async move {
        let s1 = serve(&world, S1, "s1");
        let s2 = serve(&world, S2, "s2");
        serve(&world, S3, "s3");
        let mut old = Peer::connect(WEIR).await;
        assert_eq!(answers(&mut old, 4).await, ["s1", "s1", "s2", "s2"]);
        let connections = (s1.get(), s2.get());
        // The one that stays is now the first in the file, and another line precedes it.
        assert_eq!(world.adopt(&servers("timeout queue 3s\n server s2 10.0.1.2:80\n server s3 10.0.1.3:80")), Ok(()));
        sleep(5).await;
        let mut new = Peer::connect(WEIR).await;
        assert_eq!(answers(&mut new, 4).await, ["s2", "s2", "s3", "s3"]);
        assert_eq!(answers(&mut old, 4).await, ["s2", "s2", "s3", "s3"], "a session that began before");
        assert_eq!((s1.get(), s2.get()), connections, "idle connections go on");
        sleep(5).await;
        assert_eq!([column("s2", "stot").await, column("s3", "stot").await], ["6", "4"]);
        assert_eq!([column("s1", "stot").await, column("s3", "status").await], ["", "no check"]);
        // It returns, in a new slot.
        let all = "server s1 10.0.1.1:80\n server s2 10.0.1.2:80\n server s3 10.0.1.3:80";
        assert_eq!(world.adopt(&servers(all)), Ok(()));
        sleep(5).await;
        for client in [&mut old, &mut new, &mut Peer::connect(WEIR).await] {
            assert_eq!(answers(client, 6).await, ["s1", "s1", "s2", "s2", "s3", "s3"]);
        }
        assert_eq!(column("s1", "stot").await, "6", "it begins anew");
    });
}

#[test]
fn a_server_that_is_removed_ends_what_it_serves() {
    servers("server s1 10.0.1.1:80").run(|world| async move {
        let (mut client, mut server, s1) = asked().await;
        serve(&world, S2, "s2");
        assert_eq!(world.adopt(&servers("server s2 10.0.1.2:80")), Ok(()));
        sleep(20).await;
        let mut other = Peer::connect(WEIR).await;
        assert_eq!(answers(&mut other, 3).await, ["s2", "s2", "s2"]);
        server.send(answer("s1")).await;
        client.expect(answer_at_client("s1")).await;
        assert_eq!(answers(&mut client, 3).await, ["s2", "s2", "s2"]);
        // Its connections are closed.
        assert!(server.receive_head().await.is_none());
        drop(s1);
        sleep(2_000).await;
        assert!(world.shared().live.proxies[0].removed(0).is_some());
    });
}

#[test]
fn requests_that_wait_go_to_a_server_that_comes() {
    servers("server s1 10.0.1.1:80 maxconn 1").run(|world| async move {
        let (mut first, mut server, _s1) = asked().await;
        serve(&world, S2, "s2");
        let mut second = Peer::connect(WEIR).await;
        second.send(GET).await;
        sleep(50).await;
        assert_eq!(column("BACKEND", "qcur").await, "1");
        let both = "server s1 10.0.1.1:80 maxconn 1\n server s2 10.0.1.2:80 maxconn 1";
        assert_eq!(world.adopt(&servers(both)), Ok(()));
        second.expect(answer_at_client("s2")).await;
        server.send(answer("s1")).await;
        first.expect(answer_at_client("s1")).await;
        assert_eq!(column("s1", "stot").await, "1");
    });
}

#[test]
fn requests_that_wait_for_a_server_that_goes_go_to_another() {
    fn sticky(lines: &str) -> Worlds {
        listen(&format!("http-reuse always\n cookie c insert\n option redispatch\n{lines}")).global(api::SOCKET)
    }
    let s1 = "server s1 10.0.1.1:80 cookie one maxconn 1";
    sticky(s1).run(|world| async move {
        let (mut first, mut server, _s1) = asked().await;
        serve(&world, S2, "s2");
        let mut second = Peer::connect(WEIR).await;
        second.send("GET / HTTP/1.1\r\nHost: a\r\nCookie: c=one\r\n\r\n").await;
        sleep(50).await;
        assert_eq!(column("s1", "qcur").await, "1");
        assert_eq!(world.adopt(&sticky("server s2 10.0.1.2:80 cookie two")), Ok(()));
        let head = second.receive_head().await.expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("set-cookie: c=two"), "{head}");
        server.send(answer("s1")).await;
        assert!(first.receive_head().await.is_some_and(|head| head.starts_with("HTTP/1.1 200")));
    });
}

#[test]
fn a_server_that_changes_is_another_one_of_the_same_name() {
    servers("server s1 10.0.1.1:80\n server s2 10.0.1.2:80").run(|world| async move {
        serve(&world, S1, "s1");
        serve(&world, S2, "s2");
        serve(&world, S3, "s3");
        let mut client = Peer::connect(WEIR).await;
        assert_eq!(answers(&mut client, 4).await, ["s1", "s1", "s2", "s2"]);
        assert_eq!(world.adopt(&servers("server s1 10.0.1.3:80 weight 3\n server s2 10.0.1.2:80")), Ok(()));
        sleep(5).await;
        let mut late = Peer::connect(WEIR).await;
        for client in [&mut client, &mut late] {
            let found = answers(client, 16).await;
            assert!((12..=14).contains(&found.iter().filter(|name| *name == "s3").count()), "{found:?}");
            assert!(!found.contains(&"s1".to_owned()));
        }
        let count = |column: String| column.parse::<usize>().unwrap();
        assert_eq!(count(column("s1", "stot").await) + count(column("s2", "stot").await), 32 + 2);
    });
}

#[test]
fn checks_of_servers_that_stay_go_on_and_those_of_others_begin() {
    fn line(name: &str, address: &str) -> String {
        format!(" server {name} {address} check inter 100ms fall 2 rise 2\n")
    }
    let both = line("s1", S1) + &line("s2", S2);
    // With more workers, the check tasks are on other ones in the end.
    servers(&both).workers(&[1, 2]).run(|world| async move {
        let next = line("s2", S2) + &line("s3", S3);
        // The second and the third have no listener.
        serve(&world, S1, "s1");
        sleep(1_000).await;
        assert_eq!([column("s1", "status").await, column("s2", "status").await], ["UP", "DOWN"]);
        assert_eq!(world.adopt(&servers(&(next.clone() + &line("s1", S1)))), Ok(()));
        assert_eq!([column("s1", "status").await, column("s2", "status").await], ["UP", "DOWN"]);
        sleep(1_000).await;
        assert_eq!(column("s3", "status").await, "DOWN");
        let mut client = Peer::connect(WEIR).await;
        assert_eq!(answers(&mut client, 2).await, ["s1", "s1"]);
        // The last server that is up is removed.
        assert_eq!(world.adopt(&servers(&next)), Ok(()));
        sleep(5).await;
        client.send(GET).await;
        client.expect(page(503)).await;
        serve(&world, S3, "s3");
        sleep(1_000).await;
        assert_eq!(answers(&mut client, 2).await, ["s3", "s3"]);
    });
}

/// Configurations are released with their sessions.
#[test]
fn servers_change_under_traffic() {
    const LAST: usize = 12;
    fn numbered(number: usize) -> Worlds {
        let lines =
            format!("server a{number} 10.0.1.1:80\n server s2 10.0.1.2:80\n server b{} 10.0.1.3:80", number / 2);
        servers(&lines)
    }
    numbered(0).workers(&[1, 3]).seeds(0..2).run(|world| async move {
        for (address, name) in [(S1, "s1"), (S2, "s2"), (S3, "s3")] {
            serve(&world, address, name);
        }
        let (over, answered) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
        let running = Rc::new(Cell::new(0));
        for client in 0..8_u64 {
            let (over, answered, running) = (Rc::clone(&over), Rc::clone(&answered), Rc::clone(&running));
            running.set(running.get() + 1);
            world.scope.spawn(async move {
                while !over.get() {
                    let mut peer = Peer::connect(WEIR).await;
                    for _ in 0..=client {
                        ask(&mut peer).await;
                        answered.set(answered.get() + 1);
                        sleep(client % 3).await;
                    }
                    peer.close();
                }
                running.set(running.get() - 1);
            });
        }
        for number in 1..=LAST {
            assert_eq!(world.adopt(&numbered(number)), Ok(()));
            sleep(20).await;
        }
        over.set(true);
        while running.get() > 0 {
            sleep(10).await;
        }
        sleep(50).await;
        assert!(answered.get() > 100);
        assert_eq!(world.shared().generations(), 1);
        let shown = api::ask("show servers state l").await;
        let mut names: Vec<&str> = shown.lines().filter_map(|line| line.split(' ').nth(3)).collect();
        names[1..].sort_unstable();
        assert_eq!(names[1..], ["a12", "b6", "s2"], "{shown}");
    });
}

#[test]
fn what_orders_add_serves_sessions_of_older_configurations() {
    servers("server s1 10.0.1.1:80").run(|world| async move {
        serve(&world, S1, "s1");
        serve(&world, S2, "s2");
        let mut old = Peer::connect(WEIR).await;
        assert_eq!(answers(&mut old, 2).await, ["s1", "s1"]);
        assert_eq!(world.adopt(&servers("timeout queue 3s\n server s1 10.0.1.1:80")), Ok(()));
        sleep(5).await;
        let mut new = Peer::connect(WEIR).await;
        assert_eq!(answers(&mut new, 2).await, ["s1", "s1"]);
        api::ask("add server l/s2 10.0.1.2:80").await;
        api::order("enable server l/s2").await;
        for client in [&mut old, &mut new] {
            assert_eq!(answers(client, 4).await, ["s1", "s1", "s2", "s2"]);
        }
        // Servers missing in the new text are removed.
        assert_eq!(world.adopt(&servers("server s1 10.0.1.1:80")), Ok(()));
        sleep(5).await;
        for client in [&mut old, &mut new] {
            assert_eq!(answers(client, 2).await, ["s1", "s1"]);
        }
    });
}

/// A proxy with these addresses.
fn at(addresses: &[&str]) -> Worlds {
    let binds: String = addresses.iter().map(|address| format!(" bind {address}\n")).collect();
    config(&format!("listen l\n{binds} option socket-stats\n server s1 10.0.1.1:80")).global(api::SOCKET)
}

#[test]
fn addresses_come_and_go_and_connections_stay() {
    const OTHER: &str = "10.0.0.1:81";
    const THIRD: &str = "10.0.0.1:82";
    at(&[WEIR]).run(|world| async move {
        let is_refused = async |address: &str| Peer::try_connect(address, PeerOptions::default()).await.is_err();
        serve(&world, S1, "s1");
        let mut first = Peer::connect(WEIR).await;
        assert_eq!(ask(&mut first).await, "s1");
        assert_eq!(world.adopt(&at(&[OTHER, WEIR])), Ok(()));
        sleep(5).await;
        let mut second = Peer::connect(OTHER).await;
        for client in [&mut first, &mut second, &mut Peer::connect(WEIR).await] {
            assert_eq!(ask(client).await, "s1");
        }
        assert_eq!(world.adopt(&at(&[OTHER, THIRD])), Ok(()));
        sleep(5).await;
        assert!(is_refused(WEIR).await);
        for client in [&mut first, &mut second, &mut Peer::connect(OTHER).await, &mut Peer::connect(THIRD).await] {
            assert_eq!(ask(client).await, "s1");
        }
        let shown = api::ask("show stat").await;
        let names: Vec<&str> = shown.lines().filter_map(|line| line.split(',').nth(1)).collect();
        assert_eq!(names.iter().filter(|name| name.starts_with("sock-")).count(), 2, "{shown}");
        // It returns, in a new slot.
        assert_eq!(world.adopt(&at(&[WEIR])), Ok(()));
        sleep(5).await;
        assert_eq!((is_refused(OTHER).await, is_refused(THIRD).await), (true, true));
        for client in [&mut first, &mut second, &mut Peer::connect(WEIR).await] {
            assert_eq!(ask(client).await, "s1");
        }
    });
}

#[test]
fn what_an_address_expects_changes_for_connections_that_come() {
    at(&[WEIR]).run(|world| async move {
        serve(&world, S1, "s1");
        let mut old = Peer::connect(WEIR).await;
        assert_eq!(ask(&mut old).await, "s1");
        assert_eq!(world.adopt(&at(&["10.0.0.1:80 accept-proxy name public"])), Ok(()));
        sleep(5).await;
        assert_eq!(ask(&mut old).await, "s1");
        let mut new = Peer::connect(WEIR).await;
        new.send("PROXY TCP4 9.8.7.6 10.0.0.1 1234 80\r\n").await;
        assert_eq!(ask(&mut new).await, "s1");
        let refused = |what: &str| Err(engine::Refusal::Differs(what.to_owned()));
        assert_eq!(world.adopt(&at(&["10.0.0.1:80 backlog 7"])), refused("backlog of address 10.0.0.1:80 of proxy l"));
    });
}
