//! Tests of the server names in handshakes of checks (`check-sni`, `check-sni-auto`) and of the certificates that they
//! accept, compared with a table of HAProxy's behaviour (`bench/check_names.py`); of the idle links that checks may
//! therefore use, and of PROXY headers on them.

use testkit::{Peer, Service, sleep};

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::api::{SOCKET, ask};
use crate::messages::GET;
use crate::raw_tls;
use crate::world::*;

/// The TLS listener.
const SECURE: &str = "10.0.0.1:443";

/// Whether the check of the server `s` has passed.
async fn is_up() -> bool {
    let text = ask("show servers state").await;
    let line = text.lines().find(|line| line.split(' ').nth(3) == Some("s")).unwrap().to_owned();
    line.split(' ').nth(5) == Some("2")
}

#[test]
fn a_check_asks_for_the_host_of_its_request() {
    const HOST: &str = "http-check send hdr host a.example:8443";
    // The rules, the server's options, the requested name; empty: none.
    let rows = [
        (HOST, "", "a.example"),
        (HOST, "check-sni-auto", "a.example"),
        (HOST, "no-sni-auto", "a.example"),
        (HOST, "no-check-sni-auto", ""),
        (HOST, "check-sni b.example", "b.example"),
        (HOST, "sni str(c.example)", "a.example"),
        ("option httpchk GET / HTTP/1.1 d.example", "", "d.example"),
        ("option httpchk GET / HTTP/1.1 d.example\n http-check send hdr host e.example", "", "e.example"),
        ("http-check send hdr host %[str(f.example)]", "", "f.example"),
        ("http-check send hdr host 192.0.2.1:80", "", ""),
        ("http-check send hdr host [2001:db8::1]", "", ""),
        ("", "", ""),
        ("http-check connect ssl\n http-check send hdr host a.example", "", ""),
        ("http-check connect default\n http-check send hdr host a.example", "", ""),
        ("http-check connect ssl sni g.example\n http-check send hdr host a.example", "", "g.example"),
    ];
    for (rules, options, name) in rows {
        let expected = match name {
            "" => "!{ ssl_fc_has_sni }".to_owned(),
            name => format!("{{ ssl_fc_sni -m str {name} }}"),
        };
        let sections = format!(
            "listen l\n bind {WEIR}\n option httpchk\n {rules}\n\
             server s {SECURE} ssl verify none check init-state down inter 100ms {options}\n\
             listen inner\n bind {SECURE} ssl crt a.pem\n timeout http-keep-alive 300ms\n\
             http-request return status 200 if {expected}\n http-request deny\n"
        );
        config(&sections).global(SOCKET).workers(&[1]).seeds(0..1).run(move |world| async move {
            sleep(1_000).await;
            assert!(is_up().await, "{rules:?} {options:?}");
            world.forget_log();
        });
    }
}

#[test]
fn a_check_takes_the_idle_links_that_asked_for_the_same_name() {
    let names = [("a", 1), ("b.example", 2)];
    let options = [("", true), ("check-sni a", true), ("check-sni-auto", true), ("no-check-sni-auto", false)];
    for ((name, links), (option, is_named)) in names.iter().flat_map(|name| options.map(|option| (*name, option))) {
        // The connection of a check without a name is not shared with requests that have one.
        let expected = match option {
            "check-sni a" => 1,
            _ if is_named => links,
            _ => 2,
        };
        let sections = format!(
            "listen l\n bind {WEIR}\n http-reuse always\n option httpchk\n\
             http-check send meth GET uri / ver HTTP/1.1 hdr host {name}:80 hdr connection keep-alive\n\
             server s {SECURE} ssl verify none pool-low-conn 4 check check-reuse-pool init-state fully-up inter 1s {option}\n\
             listen inner\n bind {SECURE} ssl crt a.pem\n timeout http-keep-alive 2s\n http-request return status 200\n"
        );
        config(&sections).global(SOCKET).workers(&[1]).seeds(0..1).run(move |world| async move {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            client.receive_some().await;
            client.close();
            sleep(1_500).await;
            assert_eq!(world.idle_links(), expected, "{name:?} {option:?}");
            ask("disable health l/s").await;
            sleep(5_000).await;
            world.forget_log();
        });
    }
}

#[test]
fn clear_and_secured_connections_are_not_shared_between_checks_and_requests() {
    for option in ["no-check-ssl", "check-ssl no-ssl"] {
        let sections = format!(
            "listen l\n bind {WEIR}\n http-reuse always\n option httpchk\n\
             http-check send meth GET uri / ver HTTP/1.1 hdr host a hdr connection keep-alive\n\
             server s 10.0.1.1:80 ssl verify none check check-reuse-pool init-state fully-up inter 1s {option}\n"
        );
        config(&sections).workers(&[1]).seeds(0..1).run(move |world| async move {
            let mut servers = Service::at(S1);
            if option == "no-check-ssl" {
                let mut link = servers.accept().await;
                link.receive_some().await;
                link.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
                sleep(100).await;
            } else {
                sleep(2_000).await;
            }
            assert_eq!(world.idle_links(), 0, "{option:?}");
            world.forget_log();
        });
    }
}

#[test]
fn a_server_that_is_added_is_checked_with_a_proxy_header_where_that_is_asked() {
    for (option, begins) in [("", "OPTIONS "), ("check-send-proxy", "PROXY TCP4 ")] {
        let sections = format!("listen l\n bind {WEIR}\n option httpchk\n server s1 {S1}\n");
        config(&sections).global(SOCKET).workers(&[1]).seeds(0..1).run(move |world| async move {
            let mut servers = Service::at("10.0.1.2:80");
            let added = ask(&format!("add server l/s 10.0.1.2:80 send-proxy check inter 1s {option}")).await;
            assert!(added.contains("registered"), "{added}");
            ask("enable health l/s; enable server l/s").await;
            let mut link = servers.accept().await;
            let text = String::from_utf8(link.receive_some().await).unwrap();
            assert!(text.starts_with(begins), "{option:?}: {text}");
            link.close();
            ask("disable health l/s; disable server l/s").await;
            sleep(100).await;
            let removed = ask("del server l/s").await;
            assert!(removed.contains("deleted"), "{removed}");
            sleep(2_000).await;
            world.forget_log();
        });
    }
}

/// HAProxy 3.5's behaviour: lines of a backend, options of its server, the requested name, whether the check passes.
const TABLE: &str = include_str!("haproxy.tsv");

#[test]
fn checks_ask_and_believe_as_recorded() {
    let rows: Vec<[&str; 4]> = TABLE
        .lines()
        .skip(1)
        .map(|line| line.split('\t').collect::<Vec<_>>().try_into().expect("four columns"))
        .collect();
    assert!(rows.len() > 700);
    let differences = Rc::new(RefCell::new(Vec::new()));
    for batch in rows.chunks(100) {
        let mut sections = format!("listen l\n bind {WEIR}\n");
        for (at, [rules, options, ..]) in batch.iter().enumerate() {
            let rules = rules.replace(';', "\n ");
            sections += &format!(
                "backend b{at}\n {rules}\n server s 10.0.2.1:{} ssl check init-state down rise 1 fall 1 inter 1s {options}\n",
                1_000 + at
            );
        }
        let batch: Rc<[[&str; 4]]> = batch.into();
        let kept = Rc::clone(&differences);
        config(&sections).global(SOCKET).workers(&[1]).seeds(0..1).run(move |world| {
            let (batch, kept) = (Rc::clone(&batch), Rc::clone(&kept));
            async move {
                let asked: Vec<Rc<RefCell<BTreeSet<String>>>> = batch.iter().map(|_| Rc::default()).collect();
                for (at, names) in asked.iter().enumerate() {
                    let names = Rc::clone(names);
                    Service::at(&format!("10.0.2.1:{}", 1_000 + at)).serve(&world.scope, move |mut peer, _| {
                        let names = Rc::clone(&names);
                        async move {
                            let name = raw_tls::answer(&mut peer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
                            names.borrow_mut().insert(name.unwrap_or_else(|| "-".to_owned()));
                        }
                    });
                }
                sleep(3_500).await;
                let states = ask("show servers state").await;
                for (at, (row, asked)) in batch.iter().zip(&asked).enumerate() {
                    let backend = format!("b{at}");
                    let mut lines = states.lines().map(|line| line.split(' ').collect::<Vec<_>>());
                    let line = lines.find(|line| line.get(1) == Some(&&*backend)).expect("the server");
                    let state = if line[5] == "2" { "up" } else { "down" };
                    let asked = asked.borrow().iter().cloned().collect::<Vec<_>>().join(",");
                    // An IP address is not a valid name in a handshake (RFC 6066, section 3); HAProxy sends it.
                    let expected = if row[2].parse::<std::net::IpAddr>().is_ok() || row[2].starts_with('[') {
                        "-"
                    } else {
                        row[2]
                    };
                    if (&*asked, state) != (expected, row[3]) {
                        kept.borrow_mut().push(format!("{row:?}: {asked} {state}"));
                    }
                }
                world.forget_log();
            }
        });
    }
    let differences = differences.take();
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}
