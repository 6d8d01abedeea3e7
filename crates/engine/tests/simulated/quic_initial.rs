//! Tests of `quic-initial` rules: every action, on the samples that exist before a connection does.

use std::rc::Rc;

use quic::Closed;
use testkit::{Scope, Service};

use crate::http3_client::{Client, tls};
use crate::multiplexed_client::echo;
use crate::world::*;

const QUIC: &str = "10.0.0.1:443";
/// A client that the rules of these tests concern, and another one.
const CONCERNED: &str = "10.0.9.1:5000";
const OTHER: &str = "10.0.8.1:5000";
/// CONNECTION_REFUSED (RFC 9000, section 20.1).
const REFUSED: u64 = 0x2;

/// A `listen` section at a QUIC address with these rules.
fn ruled(rules: &str) -> Worlds {
    config(&format!(
        "listen l\n    bind quic4@{QUIC} ssl crt a.pem\n    server s1 10.0.1.1:80\n    option socket-stats\n{rules}\n"
    ))
}

/// Begins a connection and waits until it is established or has ended. Returns how it has ended.
async fn fate(from: &str) -> Option<Closed> {
    let mut client = Client::begin(from, QUIC, &tls(&["h3"], false));
    client.until(|client| client.is_connected() || client.closed.is_some()).await;
    let closed = client.closed.clone();
    if closed.is_none() {
        client.close().await;
    }
    closed
}

fn is_refused(closed: Option<&Closed>) -> bool {
    matches!(closed, Some(Closed::PeerTransport { code: REFUSED, .. }))
}

#[test]
fn reject_refuses_the_connection() {
    ruled("    quic-initial reject if { src 10.0.9.0/24 } { dst 10.0.0.1 } { dst_port 443 }").run(|world| async move {
        let closed = fate(CONCERNED).await;
        assert!(is_refused(closed.as_ref()), "{closed:?}");
        assert_eq!(fate(OTHER).await, None);
        world.forget_log();
    });
}

#[test]
fn dgram_drop_answers_nothing() {
    ruled("    quic-initial dgram-drop if { src 10.0.9.1 }").run(|world| async move {
        assert_eq!(fate(CONCERNED).await, Some(Closed::TimedOut));
        assert_eq!(world.sessions(), 0);
        assert_eq!(fate(OTHER).await, None);
        world.forget_log();
    });
}

/// The first rule that applies decides, and a connection of which none does begins.
#[test]
fn accept_ends_the_evaluation() {
    ruled("    quic-initial accept unless { src 10.0.9.1 }\n    quic-initial reject if { quic_enabled }").run(
        |world| async move {
            assert_eq!(fate(OTHER).await, None);
            assert!(is_refused(fate(CONCERNED).await.as_ref()));
            world.forget_log();
        },
    );
}

/// The rules see the packets of a client that has to prove its address: the first two, which its hello fills, and the one with
/// the token.
#[test]
fn send_retry_makes_the_client_prove_its_address() {
    let rules = "    quic-initial do-log profile p\n    quic-initial send-retry if { src 10.0.9.1 }";
    let body = format!("{rules}\nlog-profile p\n    on quic-init format \"%ci:%cp %[dst_port] %ST %ts\"");
    ruled(&body).run(|world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, echo);
        let mut client = Client::connect(CONCERNED, QUIC).await;
        let id = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(client.answer(id).await.ended);
        client.close().await;
        let line = "10.0.9.1:5000 443 0 PR";
        let lines = world.lines(4).await;
        assert!(lines[..3].iter().all(|found| found.ends_with(line)), "{lines:?}");
        assert!(lines[3].contains("GET https://a/1 HTTP/3.0"), "{lines:?}");
        assert_eq!(fate(OTHER).await, None);
        let lines = world.lines(1).await;
        assert!(lines[0].ends_with("10.0.8.1:5000 443 0 PR"), "{lines:?}");
        world.forget_log();
    });
}
