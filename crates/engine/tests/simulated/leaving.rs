//! Tests of clients that disconnect while their request waits, before it has a server: each kind of wait, over HTTP/1,
//! TLS and HTTP/2. The request ends at once, and no server is chosen.

use testkit::{Peer, Service, Stopwatch, sleep};
use tls::provider::Version;

use crate::messages::*;
use crate::parts::{End, Part};
use crate::scripts::script;
use crate::secure::{Secure, client};
use crate::spoe::{AGENT, engine, greeted, proxies};
use crate::world::*;

/// The TLS listener.
const SECURE: &str = "10.0.0.1:443";

/// Milliseconds before a client disconnects.
const STAYS: u64 = 50;

/// Rules that make a request wait until after its client has disconnected. The name server does not answer.
const WAITS: [&str; 7] = [
    "http-request pause 5s",
    "http-request do-resolve(txn.ip,dns) str(a.example)",
    "http-request script.wait 5000 continue",
    "tcp-request content script.wait 5000 continue",
    "tcp-request inspect-delay 5s\n tcp-request content do-resolve(txn.ip,dns) str(a.example)",
    "use_backend b if TRUE\nbackend b\n http-request pause 5s",
    "use_backend b if TRUE\nbackend b\n tcp-request content script.wait 5000 continue",
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Leaves {
    /// Closes both directions.
    Closes,
    /// Closes its own direction.
    HalfCloses,
    Resets,
}

fn world(wait: &str) -> Worlds {
    let sections = format!(
        "resolvers dns\n nameserver n 10.0.0.53:53\n resolve_retries 1\n timeout retry 90ms\nlisten l\n bind {WEIR}\n bind \
         {SECURE} ssl crt a.pem\n {wait}\n server s1 {S1}\n"
    );
    config(&sections).workers(&[1]).seeds(0..2).scripted(script)
}

/// Expects the request to end as soon as its client has disconnected.
async fn ends_at_once(world: &World, watch: &Stopwatch) {
    let line = world.lines(1).await.remove(0);
    let is_right = line.contains("/<NOSRV> ") && line.contains("/-1/-1/-1/") && line.contains(" -1 0 - - CR-- ");
    assert!(is_right && watch.elapsed().as_millis() < 1_000, "{line} after {watch:?}");
    // The name servers are queried until the process stops.
    world.stop();
    sleep(3_000).await;
    world.forget_log();
}

#[test]
fn while_it_waits_over_http_1() {
    for wait in WAITS {
        for leaves in [Leaves::Closes, Leaves::HalfCloses, Leaves::Resets] {
            world(wait).run(move |world| async move {
                let watch = Stopwatch::start();
                let _s1 = Service::at(S1);
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                sleep(STAYS).await;
                world.expect_no_log();
                let client = match leaves {
                    Leaves::Closes => {
                        client.close();
                        None
                    }
                    Leaves::Resets => {
                        client.reset();
                        None
                    }
                    Leaves::HalfCloses => {
                        client.half_close();
                        Some(client)
                    }
                };
                ends_at_once(&world, &watch).await;
                if let Some(mut client) = client {
                    client.expect_end().await;
                }
            });
        }
    }
}

#[test]
fn while_it_waits_over_tls() {
    for wait in WAITS {
        world(wait).run(|world| async move {
            let watch = Stopwatch::start();
            let _s1 = Service::at(S1);
            let mut client = Secure::connect(SECURE, &client((Version::Tls12, Version::Tls13)), 4_000).await.unwrap();
            client.send(GET).await;
            sleep(STAYS).await;
            world.expect_no_log();
            drop(client);
            ends_at_once(&world, &watch).await;
        });
    }
}

#[test]
fn while_it_waits_over_http_2() {
    for wait in WAITS {
        for resets_stream in [true, false] {
            world(wait).run(move |world| async move {
                let watch = Stopwatch::start();
                let _s1 = Service::at(S1);
                let mut client = End::connect().await;
                client.get(1, "/").await;
                sleep(STAYS).await;
                world.expect_no_log();
                if resets_stream {
                    client.send(Part::Reset, 1, "").await;
                } else {
                    drop(client);
                }
                ends_at_once(&world, &watch).await;
            });
        }
    }
}

#[test]
fn while_an_agent_is_asked() {
    let lines = " messages fh\n timeout processing 5s";
    config(&proxies("", "")).file(&engine(lines)).workers(&[1]).run(|world| async move {
        let watch = Stopwatch::start();
        let (mut agents, _s1) = (Service::at(AGENT), Service::at(S1));
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let _agent = greeted(&mut agents, "pipelining").await;
        sleep(STAYS).await;
        client.close();
        ends_at_once(&world, &watch).await;
    });
}

/// `no option abortonclose`: a client that has closed its own direction waits for its answer; one that resets has
/// disconnected.
#[test]
fn a_client_that_half_closes_may_stay() {
    let waits = ["http-request pause 200ms", "http-request script.wait 200 continue"];
    for wait in waits {
        for resets in [false, true] {
            world(&format!("no option abortonclose\n {wait}")).run(move |world| async move {
                let watch = Stopwatch::start();
                let mut s1 = Service::at(S1);
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                sleep(STAYS).await;
                if resets {
                    client.reset();
                    return ends_at_once(&world, &watch).await;
                }
                client.half_close();
                let mut server = s1.accept().await;
                assert!(server.receive_head().await.is_some());
                server.send(OK).await;
                client.expect(OK_AT_CLIENT).await;
                world.forget_log();
            });
        }
    }
}

#[test]
fn a_tarpit_holds_a_client_that_half_closes_and_may_stay() {
    let rules = "no option abortonclose\n timeout tarpit 300ms\n http-request tarpit deny_status 503";
    listen(rules).run(|world| async move {
        let watch = Stopwatch::start();
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.half_close();
        client.expect(page(503)).await;
        watch.took(300);
        world.expect_log(&[r#"l l/<NOSRV> -1/300/-1/-1/300 503 # - - PT-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

/// In TCP mode only a reset is the end: the other direction continues after a FIN.
#[test]
fn while_a_session_waits_in_tcp_mode() {
    let body = "mode tcp\n option tcplog\n tcp-request content script.wait 200 continue\n server s1 10.0.1.1:80";
    for resets in [true, false] {
        listen(body).scripted(script).workers(&[1]).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send("ping").await;
            sleep(STAYS).await;
            if resets {
                client.reset();
                return world.expect_log(&["l l/<NOSRV> -1/-1/# 0 CR 1/1/0/0/0 0/0"]).await;
            }
            client.half_close();
            let mut server = s1.accept().await;
            server.expect("ping").await;
            server.send("pong").await;
            server.close();
            client.expect("pong").await;
            world.forget_log();
        });
    }
}
