//! Tests of cookies that bind clients to servers, in every mode, with a server that is ready, draining or in
//! maintenance, and of their letters in the log.

use testkit::{Peer, Service, sleep};

use crate::api::*;
use crate::world::*;

const SERVERS: &str = "server s1 10.0.1.1:80 cookie a\n server s2 10.0.1.2:80 cookie b";
const AT_TWO: &str = "10.0.1.2:80";

/// A client with the second server's cookie: the server that answers, whether it sees the cookie, whether the client
/// gets one, the letters in the log.
fn row(
    mode: &'static str,
    state: &'static str,
    (server, sees, gets, letters): (&'static str, bool, bool, &'static str),
) {
    listen(&format!("cookie SRV {mode}\n {SERVERS}")).global(SOCKET).run(move |world| async move {
        let (mut one, mut two) = (Service::at(S1), Service::at(AT_TWO));
        order(&format!("set server l/s2 state {state}")).await;
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nCookie: SRV=b\r\n\r\n").await;
        let mut answering = if server == "s1" { one.accept().await } else { two.accept().await };
        let cookie = if sees { "cookie: SRV=b\r\n" } else { "" };
        answering.expect(format!("GET / HTTP/1.1\r\nhost: a\r\n{cookie}\r\n")).await;
        answering.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        let set = if gets { "set-cookie: SRV=a; path=/\r\n" } else { "" };
        client.expect(format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n{set}\r\nok")).await;
        sleep(1).await;
        let lines = world.take_log().await;
        let told = format!("- - --{letters} 1/1/0/0/0 0/0 \"GET / HTTP/1.1\"");
        let is_it = |line: &String| line.contains(&format!("l l/{server} ")) && line.contains(&told);
        assert!(lines.iter().any(is_it), "{mode} {state}: {lines:#?}");
    });
}

#[test]
fn every_mode_heeds_the_state_of_the_server() {
    for (mode, sees, gets) in
        [("insert", true, true), ("insert indirect", false, true), ("rewrite", true, false), ("prefix", true, false)]
    {
        row(mode, "ready", ("s2", sees, false, "VN"));
        row(mode, "drain", ("s2", sees, false, "VN"));
        row(mode, "maint", ("s1", sees, gets, if gets { "DI" } else { "DN" }));
    }
}

#[test]
fn who_persists_goes_to_a_server_in_maintenance() {
    row("insert\n option persist", "maint", ("s2", true, false, "DN"));
    row("insert\n force-persist if { always_true }", "maint", ("s2", true, false, "DN"));
    row("insert\n force-persist if { always_false }", "maint", ("s1", true, true, "DI"));
}
