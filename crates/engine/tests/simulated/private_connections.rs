//! Tests of server links that belong to one client: because it has authenticated on them, or by `http-reuse never`; and
//! of the preference for the server of such a link.

use testkit::{Peer, Service};

use crate::messages::*;
use crate::parts::End;
use crate::world::*;

const NTLM: &str = "HTTP/1.1 401 No\r\nContent-Length: 0\r\nWWW-Authenticate: NTLM\r\n\r\n";
const BASIC: &str = "HTTP/1.1 401 No\r\nContent-Length: 0\r\nWWW-Authenticate: Basic realm=x\r\n\r\n";

/// Answers each request with the index of its connection at this server; `/ntlm` and `/basic` require authentication.
fn serve_numbered(world: &World, address: &str, name: &'static str) {
    Service::at(address).serve(&world.scope, move |mut peer, number| async move {
        while let Some(head) = peer.receive_head().await {
            match head.split(' ').nth(1) {
                Some("/ntlm") => peer.send(NTLM).await,
                Some("/basic") => peer.send(BASIC).await,
                _ => peer.send(answer(&format!("{name}.{number}"))).await,
            }
        }
    });
}

async fn ask(client: &mut Peer, path: &str) -> String {
    client.send(get(path)).await;
    let head = client.receive_head().await.unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let body = client.receive(length.parse().unwrap()).await;
    String::from_utf8(body).unwrap()
}

/// A client that sends one request after the other, in either version: with HTTP/2, on streams of one connection.
enum Asking {
    Http1(Peer),
    Http2(End, u32),
}

impl Asking {
    async fn ask(&mut self, path: &str) -> String {
        match self {
            Self::Http1(peer) => ask(peer, path).await,
            Self::Http2(end, newest) => {
                let stream = *newest + 1;
                *newest += 2;
                end.get(stream, path).await;
                String::from_utf8(end.message(stream).await.payload).unwrap()
            }
        }
    }
}

/// Two servers, one worker, so that round robin alternates; the paths of one client, and the server of each answer. An
/// HTTP/2 session is a single client like one of HTTP/1.
fn one_client(options: &str, asked: &'static [(&'static str, &'static str)]) {
    let servers = "server s1 10.0.1.1:80\n server s2 10.0.1.2:80";
    for several in [false, true] {
        listen(&format!("balance roundrobin\n {options}\n {servers}")).run(move |world| async move {
            serve_numbered(&world, S1, "s1");
            serve_numbered(&world, S2, "s2");
            let mut client = match several {
                false => Asking::Http1(Peer::connect(WEIR).await),
                true => Asking::Http2(End::connect().await, 0),
            };
            for (place, (path, answered)) in asked.iter().enumerate() {
                assert_eq!(client.ask(path).await, *answered, "request {place}, several streams: {several}");
            }
            drop(client);
            world.forget_log();
        });
    }
}

#[test]
fn without_a_reason_the_balance_goes_on() {
    one_client("http-reuse never", &[("/", "s1.0"), ("/", "s2.0"), ("/", "s1.0"), ("/", "s2.0")]);
}

#[test]
fn with_prefer_last_server_a_client_stays() {
    one_client("http-reuse never\n option prefer-last-server", &[("/", "s1.0"), ("/", "s1.0"), ("/", "s1.0")]);
}

#[test]
fn a_hash_knows_better() {
    one_client("balance static-rr\n http-reuse never\n option prefer-last-server", &[("/", "s1.0"), ("/", "s2.0")]);
}

#[test]
fn who_is_asked_who_he_is_stays_for_one_request() {
    one_client("http-reuse never", &[("/basic", ""), ("/", "s1.0"), ("/", "s2.0"), ("/", "s1.0")]);
}

#[test]
fn who_authenticates_on_a_connection_keeps_it() {
    for reuse in ["never", "safe", "aggressive", "always"] {
        let asked = &[("/ntlm", ""), ("/ntlm", ""), ("/", "s1.0"), ("/", "s1.0")];
        one_client(&format!("http-reuse {reuse}"), asked);
    }
}

#[test]
fn nobody_else_gets_a_connection_that_somebody_has_authenticated_on() {
    listen("http-reuse always\n server s1 10.0.1.1:80").run(|world| async move {
        serve_numbered(&world, S1, "s1");
        let (mut one, mut other) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        assert_eq!(ask(&mut one, "/ntlm").await, "");
        assert_eq!(ask(&mut other, "/").await, "s1.1");
        assert_eq!(ask(&mut one, "/").await, "s1.0");
        assert_eq!(ask(&mut other, "/").await, "s1.1");
        // It is closed with its client, the other one stays.
        one.close();
        testkit::sleep(5).await;
        assert_eq!(world.idle_links(), 1);
        assert_eq!(rt::sim::network().open_ends(&rt::net::Address::Inet(S1.parse().unwrap())), 2);
        other.close();
        world.forget_log();
    });
}

#[test]
fn a_session_keeps_so_many_links() {
    for (most, again) in [(0, ["s1.1", "s2.1", "s3.1"]), (1, ["s1.0", "s2.1", "s3.1"]), (2, ["s1.0", "s2.0", "s3.1"])] {
        let servers = "server s1 10.0.1.1:80\n server s2 10.0.1.2:80\n server s3 10.0.1.3:80";
        let options = format!("balance roundrobin\n http-reuse never\n max-session-srv-conns {most}");
        listen(&format!("{options}\n {servers}")).run(move |world| async move {
            for (address, name) in [(S1, "s1"), (S2, "s2"), ("10.0.1.3:80", "s3")] {
                serve_numbered(&world, address, name);
            }
            let mut client = Peer::connect(WEIR).await;
            for first in ["s1.0", "s2.0", "s3.0"] {
                assert_eq!(ask(&mut client, "/").await, first);
            }
            for again in again {
                assert_eq!(ask(&mut client, "/").await, again);
            }
            client.close();
            world.forget_log();
        });
    }
}

/// A server with too long a queue is not preferred.
#[test]
fn a_kept_connection_is_given_up_for_a_shorter_queue() {
    for (most, server) in [(0, "s2.0"), (1, "s1.0")] {
        let options = format!("http-reuse never\n option prefer-last-server\n max-keep-alive-queue {most}");
        let servers = "server s1 10.0.1.1:80 maxconn 1\n server s2 10.0.1.2:80";
        listen(&format!("balance first\n {options}\n {servers}")).run(move |world| async move {
            serve_numbered(&world, S2, "s2");
            let mut service = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut kept = service.accept().await;
            kept.expect(GET_AT_SERVER).await;
            kept.send(OK).await;
            client.expect(OK_AT_CLIENT).await;
            // Another client has the only slot now.
            let mut other = Peer::connect(WEIR).await;
            other.send(GET).await;
            let mut busy = service.accept().await;
            busy.expect(GET_AT_SERVER).await;
            client.send(GET).await;
            if most == 0 {
                client.expect(answer_at_client(server)).await;
            } else {
                client.expect_silence(20).await;
                busy.send(OK).await;
                other.expect(OK_AT_CLIENT).await;
                kept.expect(GET_AT_SERVER).await;
                kept.send(answer(server)).await;
                client.expect(answer_at_client(server)).await;
            }
            client.close();
            other.close();
            world.forget_log();
        });
    }
}

/// With `strict-maxconn` a server never has more connections than its `maxconn`: idle ones are closed for new ones, and
/// if there are none a request fails at once.
#[test]
fn strictly_no_more_connections() {
    let server = "server s1 10.0.1.1:80 maxconn 1 strict-maxconn";
    listen(&format!("http-reuse never\n retries 2\n {server}")).run(|world| async move {
        serve_numbered(&world, S1, "s1");
        let (mut one, mut other) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        assert_eq!(ask(&mut one, "/").await, "s1.0");
        other.send(GET).await;
        other.expect(page(503)).await;
        assert_eq!(ask(&mut one, "/").await, "s1.0");
        let answered = r#"l l/s1 0/0/0/0/0 200 # - - ---- #/#/0/0/0 0/0 "GET / HTTP/1.1""#;
        let failed = r#"l l/s1 0/0/-1/-1/0 503 # - - SC-- 2/2/0/0/2 0/0 "GET / HTTP/1.1""#;
        world.expect_log(&[answered, failed, answered]).await;
        one.close();
        testkit::sleep(5).await;
        assert_eq!(ask(&mut other, "/").await, "s1.1");
        world.forget_log();
    });
    listen(&format!("http-reuse safe\n {server}")).run(|world| async move {
        serve_numbered(&world, S1, "s1");
        let (mut one, mut other) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        assert_eq!(ask(&mut one, "/").await, "s1.0");
        assert_eq!(ask(&mut other, "/").await, "s1.1");
        assert_eq!(ask(&mut one, "/").await, "s1.1");
        assert_eq!(world.idle_links(), 1);
        world.forget_log();
    });
}
