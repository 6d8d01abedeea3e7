//! Tests of replacing the configuration: sessions keep theirs, new sessions get the new one, and nothing is lost or
//! counted again.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use engine::Refusal;
use engine::generation::Generation;
use testkit::{Peer, Service, sleep};

use crate::api;
use crate::messages::*;
use crate::world::*;

/// A configuration whose rules and error pages contain its name.
fn named(name: &str) -> Worlds {
    more(name, "")
}

fn more(name: &str, lines: &str) -> Worlds {
    listen(&format!(
        "http-reuse always\n http-request deny status 403 default-errorfiles if {{ path /no }}\n http-request set-header x-rules {name}\n \
         http-error status 403 content-type text/plain string {name}-page\n{lines}\n server s1 10.0.1.1:80"
    ))
    .global(api::SOCKET)
}

/// Starts a server whose answers contain the name set by the rules.
fn serve_rules(world: &World) {
    Service::at(S1).serve(&world.scope, |mut peer: Peer, _| async move {
        while let Some(head) = peer.receive_head().await {
            let told = head.lines().find_map(|line| line.strip_prefix("x-rules: ")).unwrap_or("none").to_owned();
            if !peer.try_send(answer(&told)).await {
                return;
            }
        }
    });
}

async fn is_served_by(client: &mut Peer, name: &str) {
    client.send(GET).await;
    client.expect(answer_at_client(name)).await;
    client.send(get("/no")).await;
    let page = format!("{name}-page");
    let head = "HTTP/1.1 403 Forbidden\r\ncontent-length: ";
    client.expect(format!("{head}{}\r\ncontent-type: text/plain\r\n\r\n{page}", page.len())).await;
}

/// A weak reference to the current configuration.
fn current(world: &World) -> Weak<Generation> {
    Arc::downgrade(&world.shared().generation())
}

/// The frontend's counter of requests.
async fn requests(world: &World) -> u64 {
    // They are counted when they end.
    sleep(5).await;
    world.shared().counters.of(|worker| Some(&worker.proxies[0].front)).count(|counters| &counters.requests)
}

#[test]
fn sessions_stay_with_what_they_began_with() {
    named("old").run(|world| async move {
        serve_rules(&world);
        let (mut busy, mut silent) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        is_served_by(&mut busy, "old").await;
        let old = current(&world);
        assert_eq!(world.adopt(&more("new", " timeout client 7s\n option forwardfor")), Ok(()));
        sleep(5).await;
        let mut late = Peer::connect(WEIR).await;
        is_served_by(&mut late, "new").await;
        is_served_by(&mut busy, "old").await;
        is_served_by(&mut silent, "old").await;
        is_served_by(&mut late, "new").await;
        busy.close();
        sleep(5).await;
        assert!(old.upgrade().is_some(), "a session has it still");
        is_served_by(&mut silent, "old").await;
        silent.close();
        sleep(5).await;
        assert!(old.upgrade().is_none(), "nobody has it any more");
        is_served_by(&mut late, "new").await;
        late.close();
        assert_eq!(requests(&world).await, 14);
    });
}

#[test]
fn a_request_that_is_under_way_ends_as_it_began() {
    let rules = "http-response set-header x-answer old\n timeout server 3s\n server s1 10.0.1.1:80";
    listen(rules).run(|world| async move {
        let (mut client, mut server, _s1) = asked().await;
        let rules = "http-response set-header x-answer new\n timeout server 1s\n server s1 10.0.1.1:80";
        assert_eq!(world.adopt(&listen(rules)), Ok(()));
        sleep(2000).await;
        server.send(OK).await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-answer: old\r\n\r\nok").await;
        world.expect_log(&[r#"l l/s1 0/0/0/2000/2000 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

/// Clients that arrive and stay during several changes of the configuration: all are served, each by a single
/// configuration, and by none that every worker had left before the client arrived.
#[test]
fn configurations_follow_each_other_under_traffic() {
    const LAST: usize = 6;
    named("0").run(|world| async move {
        serve_rules(&world);
        let (over, answered) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        for client in 0..8_u64 {
            let (over, answered) = (Rc::clone(&over), Rc::clone(&answered));
            world.scope.spawn(async move {
                for round in 0..20 {
                    let least = over.get();
                    let mut peer = Peer::connect(WEIR).await;
                    let mut own = None;
                    for _ in 0..=(client + round) % 4 {
                        peer.send(GET).await;
                        assert!(peer.receive_head().await.is_some_and(|head| head.starts_with("HTTP/1.1 200")));
                        let name: usize = String::from_utf8(peer.receive(1).await).unwrap().parse().unwrap();
                        assert_eq!(*own.get_or_insert(name), name, "one session, one configuration");
                        assert!(name >= least, "{name} after all workers served {least}");
                        answered.set(answered.get() + 1);
                        sleep((client * 7 + round) % 5).await;
                    }
                    peer.close();
                }
            });
        }
        let mut past = Vec::new();
        for next in 1..=LAST {
            past.push(current(&world));
            assert_eq!(world.adopt(&named(&next.to_string())), Ok(()));
            sleep(20).await;
            over.set(next);
        }
        let expected = (0..8_u64).map(|client| (0..20).map(|round| (client + round) % 4 + 1).sum::<u64>()).sum::<u64>();
        while answered.get() < expected {
            sleep(10).await;
        }
        assert_eq!(requests(&world).await, expected);
        assert!(past.iter().all(|one| one.upgrade().is_none()), "sessions of all but the last have ended");
        assert!(current(&world).upgrade().is_some());
    });
}

#[test]
fn what_was_changed_of_a_list_stays_with_its_configuration() {
    let rules = "http-request deny if { path /a }\n server s1 10.0.1.1:80";
    listen(rules).global(api::SOCKET).run(|world| async move {
        serve_rules(&world);
        let mut old = Peer::connect(WEIR).await;
        api::order("add acl #0 /b").await;
        let rules = "http-request deny if { path /x }\n http-request deny if { path /a }\n server s1 10.0.1.1:80";
        assert_eq!(world.adopt(&listen(rules).global(api::SOCKET)), Ok(()));
        sleep(5).await;
        let mut new = Peer::connect(WEIR).await;
        let rows = [("/a", true, true), ("/b", true, false), ("/x", false, true), ("/y", false, false)];
        for (path, by_old, by_new) in rows {
            for (client, denied) in [(&mut old, by_old), (&mut new, by_new)] {
                client.send(get(path)).await;
                let expected = if denied { page(403) } else { answer_at_client("none").into_bytes() };
                client.expect(expected).await;
            }
        }
    });
}

#[test]
fn what_needs_a_new_process_is_refused() {
    named("old").workers(&[2]).seeds(0..1).run(|world| async move {
        serve_rules(&world);
        let rows = [
            (more("new", " maxconn 7"), "maxconn of proxy l"),
            (more("new", " option nolinger"), "nolinger of options of proxy l"),
            (more("new", " balance static-rr\n default-server weight 7"), "balance of proxy l"),
            (more("new", " bind 10.0.0.1:81 maxconn 3"), "maxconn of address 10.0.0.1:81 of proxy l"),
            (named("new").global("tune.bufsize 20000"), "bufsize of the process"),
        ];
        let before = current(&world);
        let refused = rows.each_ref().map(|(next, _)| world.adopt(next));
        assert_eq!(refused, rows.map(|(_, what)| Err(Refusal::Differs(what.to_owned()))));
        assert!(before.ptr_eq(&current(&world)));
        let mut client = Peer::connect(WEIR).await;
        is_served_by(&mut client, "old").await;
        // Two at once: the second has to wait for the workers.
        assert_eq!(world.adopt(&named("new")), Ok(()));
        assert_eq!(world.adopt(&named("newer")), Err(Refusal::Underway));
        sleep(5).await;
        assert_eq!(world.adopt(&named("newer")), Ok(()));
    });
}
