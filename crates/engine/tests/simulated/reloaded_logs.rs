//! Tests of logging across configurations: sessions that began before log as in theirs, no accepted line is lost except
//! those for a removed server that cannot be reached, and nothing is kept of removed targets.

use std::cell::RefCell;
use std::rc::Rc;

use rt::now;
use testkit::{PATIENCE, Peer, Service, sleep};

use crate::api;
use crate::messages::*;
use crate::reloaded_targets::collect;
use crate::world::*;

const ONE: &str = "10.0.3.1:514";
const TWO: &str = "10.0.3.2:514";
const OTHER: &str = "10.0.0.1:81";

/// A frontend with log targets different from those of the others, and additional sections.
fn logging(global: &str, lines: &str, more: &str) -> Worlds {
    let answering = "http-request return status 200";
    config(&format!("frontend l\n bind 10.0.0.1:80\n {answering}\nfrontend other\n bind {OTHER}\n {answering}\n no log\n{lines}\n{more}"))
        .global(&format!("{}\n{global}", api::SOCKET))
}

async fn ask(client: &mut Peer, path: &str) {
    client.send(get(path)).await;
    assert!(client.receive_head().await.is_some_and(|head| head.starts_with("HTTP/1.1 200 ")));
    sleep(5).await;
}

/// Starts a TCP log server, and returns its lines, with the end of each connection as a line of its own.
fn collect_streams(world: &World, at: &str) -> Rc<RefCell<Vec<String>>> {
    let lines: Rc<RefCell<Vec<String>>> = Rc::default();
    let (kept, mut service, scope) = (Rc::clone(&lines), Service::at(at), Rc::clone(&world.scope));
    world.scope.spawn(async move {
        loop {
            let mut peer = service.accept().await;
            let kept = Rc::clone(&kept);
            scope.spawn(async move {
                let mut text = Vec::new();
                loop {
                    let more = peer.receive_some().await;
                    if more.is_empty() {
                        kept.borrow_mut().push("end".to_owned());
                        return;
                    }
                    text.extend(more);
                    while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                        let line: Vec<u8> = text.drain(..=end).collect();
                        kept.borrow_mut().push(String::from_utf8_lossy(&line).trim().to_owned());
                    }
                }
            });
        }
    });
    lines
}

/// Waits for these lines.
async fn expect(lines: &Rc<RefCell<Vec<String>>>, wanted: &[&str]) {
    let deadline = now() + PATIENCE;
    while lines.borrow().len() < wanted.len() && now() < deadline {
        sleep(1).await;
    }
    assert_eq!(std::mem::take(&mut *lines.borrow_mut()), wanted);
}

fn dropped(info: &str) -> u64 {
    let line = info.lines().find_map(|line| line.strip_prefix("DroppedLogs: "));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("{info}"))
}

#[test]
fn each_session_logs_as_its_configuration_says() {
    let old = || {
        let lines = format!(" log {ONE} format priority local0\n log-format \"old %lc %HU\"");
        logging(&format!("log {ONE} format priority local2\nlog-tag old"), &lines, "")
    };
    let new = || {
        let lines = format!(
            " log {TWO} format priority local1 notice err\n log global\n log-format \"new %lc %HU\"\n option log-separate-errors"
        );
        logging(&format!("log {TWO} format local local3\nlog-tag new"), &lines, "")
    };
    old().workers(&[1, 2]).run(move |world| async move {
        let (one, two) = (collect(&world, ONE), collect(&world, TWO));
        let mut client = Peer::connect(OTHER).await;
        ask(&mut client, "/1").await;
        expect(&one, &["<134>old 0 /1"]).await;
        assert_eq!(world.adopt(&new()), Ok(()));
        sleep(5).await;
        ask(&mut client, "/2").await;
        expect(&one, &["<134>old 1 /2"]).await;
        assert!(two.borrow().is_empty());
        let mut late = Peer::connect(OTHER).await;
        ask(&mut late, "/3").await;
        // Lines below the level of the one target are sent only to that of the process.
        let told = two.take();
        assert!(one.borrow().is_empty() && told.len() == 1, "{told:?}");
        assert!(
            told[0].starts_with("<158>") && told[0].contains(" new[") && told[0].ends_with(": new 2 /3"),
            "{told:?}"
        );
        // The next session logs as before, and the counter continues.
        assert_eq!(world.adopt(&old()), Ok(()));
        sleep(5).await;
        ask(&mut Peer::connect(OTHER).await, "/4").await;
        expect(&one, &["<134>old 3 /4"]).await;
        ask(&mut late, "/5").await;
        let told = two.take();
        assert!(told.len() == 1 && told[0].ends_with(": new 4 /5"), "{told:?}");
        world.forget_log();
    });
}

/// Expressions of a format refer to their own configuration: to its ACLs by name, and to its profiles.
#[test]
fn what_a_format_names_is_of_its_own_configuration() {
    let with = |acls: &str, name: &str| {
        let lines = format!("{acls}\n log {ONE} format raw profile p local0\n log-format \"%HU %[acl(known)]\"");
        let profile = format!("log-profile p\n on any format \"{name} %HU %[acl(known)]\"\n");
        logging("", &lines, &profile)
    };
    with(" acl known always_true", "first").workers(&[1]).run(move |world| async move {
        let one = collect(&world, ONE);
        let mut client = Peer::connect(OTHER).await;
        ask(&mut client, "/known").await;
        expect(&one, &["first /known 1"]).await;
        assert_eq!(world.adopt(&with(" acl other path /x\n acl known always_false", "second")), Ok(()));
        sleep(5).await;
        ask(&mut client, "/other").await;
        ask(&mut Peer::connect(OTHER).await, "/other").await;
        ask(&mut client, "/known").await;
        expect(&one, &["first /other 1", "second /other 0", "first /known 1"]).await;
    });
}

#[test]
fn servers_of_streams_come_and_go() {
    let to = |lines: &str| logging("", lines, "");
    let stream = |at: &str| format!(" log tcp@{at} format raw local0\n log-format %HU");
    to("").workers(&[1, 2]).run(move |world| async move {
        let (one, two) = (collect_streams(&world, ONE), collect_streams(&world, TWO));
        assert_eq!(world.adopt(&to(&stream(ONE))), Ok(()));
        sleep(5).await;
        let mut client = Peer::connect(OTHER).await;
        ask(&mut client, "/1").await;
        expect(&one, &["/1"]).await;
        assert_eq!(world.adopt(&to(&stream(TWO))), Ok(()));
        sleep(5).await;
        ask(&mut client, "/2").await;
        ask(&mut Peer::connect(OTHER).await, "/3").await;
        expect(&one, &["/2"]).await;
        expect(&two, &["/3"]).await;
        // The connection ends with the last session that logs there.
        client.send(get("/4")).await;
        client.receive_head().await;
        client.close();
        expect(&one, &["/4", "end"]).await;
        assert_eq!(world.adopt(&to("")), Ok(()));
        expect(&two, &["end"]).await;
        assert_eq!(dropped(&api::ask("show info").await), 0);
    });
}

/// Lines waiting for a server that stays are sent once it can be reached; those for a removed one are sent, or counted
/// as dropped.
#[test]
fn lines_that_wait_are_sent_or_counted() {
    let backend = |servers: &str| {
        let lines = " log backend@lines format raw local0\n log-format %HU";
        logging("", lines, &format!("backend lines\n mode log\n balance roundrobin\n{servers}"))
    };
    let server = |name: &str, at: &str| format!(" server {name} tcp@{at}\n");
    let both = format!("{}{}", server("s1", ONE), server("s2", TWO));
    logging("", "", "").workers(&[1, 2]).run(move |world| {
        let both = both.clone();
        async move {
            assert_eq!(world.adopt(&backend(&both)), Ok(()));
            sleep(5).await;
            let mut client = Peer::connect(OTHER).await;
            for path in ["/1", "/2", "/3", "/4"] {
                ask(&mut client, path).await;
            }
            let shown = api::ask("show events").await;
            assert!(shown.contains("lines/s1") && shown.contains("lines/s2"), "{shown}");
            // None of them listens. One is removed with its lines, the other one stays.
            assert_eq!(world.adopt(&backend(&format!("\n # elsewhere in the file\n{}", server("s2", TWO)))), Ok(()));
            sleep(3_000).await;
            assert_eq!(dropped(&api::ask("show info").await), 2);
            let shown = api::ask("show events").await;
            assert!(!shown.contains("lines/s1") && shown.contains("lines/s2"), "{shown}");
            ask(&mut client, "/5").await;
            let two = collect_streams(&world, TWO);
            let got = |lines: &Rc<RefCell<Vec<String>>>| lines.borrow().len();
            let deadline = now() + PATIENCE;
            while got(&two) < 3 && now() < deadline {
                sleep(10).await;
            }
            assert_eq!(two.borrow().len(), 3, "{two:?}");
            assert_eq!(two.borrow().last().map(String::as_str), Some("/5"));
            two.borrow_mut().clear();
            // A server that can be reached gets its lines even if it is removed at that time.
            client.send(get("/6")).await;
            client.receive_head().await;
            assert_eq!(world.adopt(&backend(&server("s3", ONE))), Ok(()));
            expect(&two, &["/6", "end"]).await;
            let one = collect_streams(&world, ONE);
            ask(&mut client, "/7").await;
            expect(&one, &["/7"]).await;
            assert_eq!(dropped(&api::ask("show info").await), 2);
            client.close();
            assert_eq!(world.adopt(&logging("", "", "")), Ok(()));
            expect(&one, &["end"]).await;
        }
    });
}

/// Two hundred reloads, each with other addresses, formats, streams and log servers.
#[test]
fn reloads_leave_nothing_behind() {
    fn numbered(number: usize) -> Worlds {
        let port = 1_000 + number;
        let lines = format!(
            " log 10.0.4.1:{port} format raw local{}\n log tcp@10.0.4.2:{port} local0\n log backend@lines local0\n log backend@more local0\n log-format \"{number} %HU\"",
            number % 8
        );
        let backend = |name: &str, server: &str| {
            format!("backend {name}\n mode log\n balance roundrobin\n server {server}:{port}\n")
        };
        logging(
            &format!("log 10.0.4.4:{port} local0"),
            &lines,
            &format!(
                "{}{}",
                backend("lines", &format!("a{number} tcp@10.0.4.3")),
                backend("more", &format!("u{number} udp@10.0.4.3"))
            ),
        )
    }
    numbered(0).workers(&[2]).seeds(0..1).run(|world| async move {
        let places = |world: &World| {
            let proxies = &world.shared().generation().program.proxies;
            proxies.iter().filter_map(|proxy| Some(proxy.backend.as_ref()?.servers.places())).max().unwrap()
        };
        let (mut before, mut most) = (Vec::new(), 0);
        for number in 1..=200 {
            assert_eq!(world.adopt(&numbered(number)), Ok(()), "{number}");
            sleep(30).await;
            ask(&mut Peer::connect(OTHER).await, "/").await;
            // There is no listener: lines waiting for removed targets are dropped at the next attempt.
            sleep(3_000).await;
            match number {
                20 => (before, most) = (world.inventory().await, world.shared().log_targets.most_sinks()),
                200 => {
                    assert_eq!(world.inventory().await, before);
                    assert_eq!(world.shared().log_targets.most_sinks(), most);
                }
                _ => {}
            }
            assert!(places(&world) <= 4, "{number}: {} places", places(&world));
        }
        assert_eq!(world.adopt(&numbered(0)), Ok(()));
        sleep(3_000).await;
        world.forget_log();
    });
}
