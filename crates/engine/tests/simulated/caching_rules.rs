//! Tests of caches with rules, logs and the fields that limit their use (configuration manual, section 6): the
//! properties of a hit in rules and log lines before it ends, and changes by rules between `cache-use` and
//! `cache-store`. Must never repeat the tests of storing in `caching.rs`.

use testkit::{Peer, Service};

use crate::caching::{cached, hit, missed, request};
use crate::world::*;

const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=50\r\nContent-Length: 2\r\n\r\nok";

/// The contents of log lines, without their prefixes.
fn said(lines: Vec<String>) -> Vec<String> {
    lines.iter().filter_map(|line| line.split("]: ").last()).map(str::to_owned).collect()
}

/// A hit counts as answered by the proxy from its start: for rules, for the lines of each log step, and for a line
/// logged before the end.
#[test]
fn a_hit_is_answered_here_from_its_start() {
    let state = "http-response set-header x-state %[txn.sess_term_state]";
    let steps = "log-steps connect,response,close\n log-format \"%b/%s %ST %tsc\"";
    cached(&format!("{state}\n {steps}"), "").run(|world| async move {
        let mut s1 = Service::at(S1);
        let get = request("GET /", "");
        assert!(missed(&mut s1, &get, FRESH).await.contains("x-state: --\r\n"));
        assert!(hit(&get).await.contains("x-state: LR\r\n"));
        let lines = [
            "l/s1 -1 ----",
            "l/s1 200 ----",
            "l/s1 200 ----",
            "l/<CACHE> -1 LR--",
            "l/<CACHE> 200 LR--",
            "l/<CACHE> 200 LR--",
        ];
        assert_eq!(said(world.lines(6).await), lines);
    });
    cached("log-format \"%b/%s %ST %tsc\"", "").run(|world| async move {
        let mut s1 = Service::at(S1);
        missed(&mut s1, &request("GET /", ""), FRESH).await;
        hit(&request("GET /", "")).await;
        assert_eq!(said(world.lines(2).await), ["l/s1 200 ----", "l/<CACHE> 200 LR--"]);
    });
}

/// An answer of a rule that replaces a hit is logged with the hit's termination state, as in HAProxy, whether the hit
/// flows or not.
#[test]
fn what_takes_the_place_of_a_hit_began_as_one() {
    let flows = "http-response wait-for-body time 1s if { always_false }";
    let rows =
        [("deny status 403", "403 LR--"), ("return status 404", "404 LR--"), ("redirect location /x", "302 LR--")];
    for (action, logged) in rows {
        for flows in ["", flows] {
            let rules = format!("http-response {action} if {{ res.cache_hit }}\n {flows}\n log-format \"%ST %tsc\"");
            cached(&rules, "").run(move |world| async move {
                let mut s1 = Service::at(S1);
                missed(&mut s1, &request("GET /", ""), FRESH).await;
                hit(&request("GET /", "")).await;
                assert_eq!(said(world.lines(2).await), ["200 ----", logged]);
            });
        }
    }
}

/// Credentials that a rule adds for the server after `cache-use` are the proxy's own; those of a client keep a response
/// private, even if a rule removes them afterwards.
#[test]
fn credentials_of_the_proxy_are_none_of_the_client() {
    cached("http-request set-header authorization proxy", "").run(|_| async move {
        let mut s1 = Service::at(S1);
        missed(&mut s1, &request("GET /", "Authorization: own\r\n"), FRESH).await;
        missed(&mut s1, &request("GET /", ""), FRESH).await;
        assert!(hit(&request("GET /", "")).await.contains("x-hit: 1,c\r\n"));
    });
    cached("http-request del-header authorization", "").run(|_| async move {
        let mut s1 = Service::at(S1);
        missed(&mut s1, &request("GET /", "Authorization: own\r\n"), FRESH).await;
        missed(&mut s1, &request("GET /", ""), FRESH).await;
        assert!(hit(&request("GET /", "")).await.contains("x-hit: 1,c\r\n"));
    });
}

/// `max-age` of the section limits the time in this cache: a response that is older when it is received is stored as
/// well.
#[test]
fn responses_that_come_old_are_used_as_long_as_others() {
    cached("", "max-age 60").run(|_| async move {
        let mut s1 = Service::at(S1);
        let get = request("GET /", "");
        let old = FRESH.replace("max-age=50", "max-age=5000\r\nAge: 400");
        missed(&mut s1, &get, &old).await;
        testkit::sleep(58_000).await;
        assert!(hit(&get).await.contains("age: 458\r\n"));
        testkit::sleep(2_000).await;
        missed(&mut s1, &get, &old).await;
    });
}

/// A request that requires a minimum freshness gets a response of the server; `Pragma` counts only without
/// Cache-Control.
#[test]
fn requests_ask_for_a_response_of_the_server() {
    for (fields, asks) in [
        ("Cache-Control: min-fresh=100\r\n", true),
        ("Cache-Control: max-stale\r\n", true),
        ("Pragma: no-cache\r\n", true),
        ("Pragma: no-cache\r\nCache-Control: x\r\n", false),
    ] {
        cached("", "").run(move |_| async move {
            let mut s1 = Service::at(S1);
            missed(&mut s1, &request("GET /", ""), FRESH).await;
            let again = request("GET /", fields);
            if asks {
                missed(&mut s1, &again, FRESH).await;
            } else {
                assert!(hit(&again).await.contains("x-hit: 1,c\r\n"), "{fields}");
            }
        });
    }
}

/// Hits on one connection, received in any number of pieces, keep it open.
#[test]
fn hits_and_misses_share_a_connection() {
    cached("", "").shuffled().run(|_| async move {
        let mut s1 = Service::at(S1);
        missed(&mut s1, &request("GET /", ""), FRESH).await;
        let mut client = Peer::connect(WEIR).await;
        let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        client.send(format!("{get}HEAD / HTTP/1.1\r\nHost: a\r\n\r\n{}{get}", get.replace("/ ", "/b "))).await;
        for body in ["ok", ""] {
            assert!(client.receive_head().await.unwrap().contains("x-hit: 1,c\r\n"));
            client.expect(body).await;
        }
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        server.send(FRESH).await;
        for seen in ["x-hit: 0,\r\n", "x-hit: 1,c\r\n"] {
            assert!(client.receive_head().await.unwrap().contains(seen));
            client.expect("ok").await;
        }
    });
}

/// A backend's rule stores the server's body unchanged, even if the frontend compresses, or also names the cache's
/// filter.
#[test]
fn a_frontend_that_compresses_changes_nothing_of_what_a_backend_stores() {
    let body = "text ".repeat(400);
    for filters in ["filter cache c\n filter compression", ""] {
        let sections = format!(
            "frontend f\n bind {WEIR}\n {filters}\n compression algo gzip\n http-request cache-use c\n http-response set-header x-hit \
             %[res.cache_hit],\n default_backend b\nbackend b\n http-response cache-store c\n server s1 10.0.1.1:80\ncache c\n \
             total-max-size 1\n"
        );
        config(&sections).run(|_| {
            let body = body.clone();
            async move {
                let mut s1 = Service::at(S1);
                let fields = "Content-Type: text/plain\r\nCache-Control: max-age=50\r\n";
                let answer = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len());
                let mut client = Peer::connect(WEIR).await;
                client.send(request("GET /", "Accept-Encoding: gzip\r\n")).await;
                let mut server = s1.accept().await;
                server.receive_head().await.unwrap();
                server.send(answer).await;
                server.close();
                let got = client.receive_rest().await;
                assert!(String::from_utf8_lossy(&got).contains("content-encoding: gzip\r\n"));
                let got = hit(&request("GET /", "")).await;
                assert!(
                    got.contains("x-hit: 1,\r\n") && got.ends_with(&format!("\r\n\r\n{body}")),
                    "{filters:?}: {got}"
                );
            }
        });
    }
}
