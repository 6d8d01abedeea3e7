//! Tests of logins that belong to a connection (NTLM, Negotiate): no other client gets a connection to a server on
//! which one was made.

use std::rc::Rc;

use testkit::{Peer, Scope, Service, sleep};

use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

/// The login in a request's head, for a server that accepts every one.
fn login_of(head: &str) -> Option<&str> {
    let has = |line: &&str| line.starts_with("authorization: ") || line.starts_with("proxy-authorization: ");
    head.lines().find(has).map(|line| line.rsplit(' ').next().unwrap_or_default())
}

/// Answers each HTTP/1 request with the login of its connection.
async fn believe(mut peer: Peer, _: usize) {
    let mut login = "none".to_owned();
    while let Some(head) = peer.receive_head().await {
        if let Some(own) = login_of(&head) {
            login = own.to_owned();
        }
        peer.send(answer(&login)).await;
    }
}

/// Answers each HTTP/2 request with the login of its connection.
async fn believe_h2(peer: Peer, _: usize) {
    let mut login = "none".to_owned();
    let mut origin = End::serve(peer).await;
    loop {
        let done = origin.messages.iter().find(|(_, asked)| asked.end.is_some()).map(|(stream, _)| *stream);
        match done {
            Some(stream) => {
                let asked = origin.messages.remove(&stream).unwrap();
                if asked.end == Some(Part::End) {
                    if let Some(own) = login_of(&asked.head) {
                        login = own.to_owned();
                    }
                    origin.send(Part::Head, stream, "HTTP/1.1 200 OK\r\n\r\n").await;
                    origin.stream(stream, login.as_bytes()).await;
                    origin.send(Part::End, stream, "").await;
                }
            }
            None if !origin.step().await => return,
            None => {}
        }
    }
}

/// Sends a request with those lines in its head, and returns the payload of the answer.
async fn ask(client: &mut Peer, lines: &str) -> String {
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")).await;
    let head = client.receive_head().await.unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let body = match length {
        Some(length) => client.receive(length.parse().unwrap()).await,
        None => client.receive_chunked(4096, 0).await.body,
    };
    String::from_utf8(body).unwrap()
}

/// Options that affect connections or their use.
const OPTIONS: [&str; 5] = [
    "",
    "http-send-name-header x-name",
    "retry-on all-retryable-errors",
    "option prefer-last-server",
    "hedge-requests after 50ms budget 100 min 0",
];

const FIELDS: [&str; 4] = [
    "Authorization: Negotiate one",
    "Authorization: NTLM one",
    "Proxy-Authorization: negotiate one",
    "Proxy-Authorization: ntlm one",
];

/// For every protocol of servers, mode of reuse and option: a client logs in unprompted, others send requests before
/// and after it, on several workers.
#[test]
fn a_login_is_seen_by_its_client_alone() {
    for (place, protocol) in ["", "proto h2"].into_iter().enumerate() {
        for reuse in ["never", "safe", "aggressive", "always"] {
            let options = if reuse == "always" { &OPTIONS[..] } else { &OPTIONS[..1] };
            for (option, field) in options.iter().copied().zip(FIELDS.into_iter().cycle()) {
                let sections = format!("http-reuse {reuse}\n {option}\n server s1 10.0.1.1:80 {protocol}");
                listen(&sections).workers(&[1 + place]).seeds(0..1).run(move |world| async move {
                    let scope = Rc::new(Scope::new());
                    let servers = Service::at(S1);
                    match protocol {
                        "" => servers.serve(&scope, believe),
                        _ => servers.serve(&scope, believe_h2),
                    };
                    let (mut one, mut other) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
                    let case = format!("{protocol}, {reuse}, {option}, {field}");
                    // So that connections were used and are idle.
                    for _ in 0..2 {
                        assert_eq!(ask(&mut one, "").await, "none", "{case}");
                        assert_eq!(ask(&mut other, "").await, "none", "{case}");
                    }
                    assert_eq!(ask(&mut one, &format!("{field}\r\n")).await, "one", "{case}");
                    for _ in 0..3 {
                        assert_eq!(ask(&mut other, "").await, "none", "{case}");
                        assert_eq!(ask(&mut Peer::connect(WEIR).await, "").await, "none", "{case}");
                        // The connection stays with the client that has logged in.
                        assert_eq!(ask(&mut one, "").await, "one", "{case}");
                    }
                    one.close();
                    sleep(10).await;
                    for _ in 0..3 {
                        assert_eq!(ask(&mut other, "").await, "none", "{case}");
                    }
                    drop(other);
                    world.forget_log();
                });
            }
        }
    }
}

/// Credentials added by a rule count, and those removed by a rule do not.
#[test]
fn credentials_count_as_the_server_gets_them() {
    let rows = [
        ("http-request set-header Authorization \"Negotiate x\" if { hdr(x-login) -m found }", "X-Login: y", 0),
        ("http-request del-header Authorization", "Authorization: NTLM x", 1),
        ("", "Authorization: Basic bmVnb3RpYXRl", 1),
        ("", "Authorization: Basic x, Negotiate y", 0),
    ];
    for (rule, field, idle) in rows {
        let sections = format!("http-reuse always\n {rule}\n server s1 10.0.1.1:80");
        listen(&sections).run(move |world| async move {
            let scope = Rc::new(Scope::new());
            Service::at(S1).serve(&scope, believe);
            let mut client = Peer::connect(WEIR).await;
            ask(&mut client, &format!("{field}\r\n")).await;
            assert_eq!(world.idle_links(), idle, "{rule}, {field}");
            world.forget_log();
        });
    }
}

/// The answer counts as sent by the server, whatever its status.
#[test]
fn challenges_count_as_the_server_sent_them() {
    let rows = [
        ("401 No", "WWW-Authenticate: NTLM", "", 0),
        ("401 No", "WWW-Authenticate: Basic realm=\"a\", Negotiate", "", 0),
        ("401 No", "WWW-Authenticate: NTLM", "http-response del-header WWW-Authenticate", 0),
        ("401 No", "WWW-Authenticate: NTLM", "http-response set-status 200", 0),
        ("407 No", "Proxy-Authenticate: Negotiate", "", 0),
        ("200 OK", "WWW-Authenticate: Negotiate oRQ=", "", 0),
        ("401 No", "WWW-Authenticate: Basic realm=a", "", 1),
        ("403 No", "X-A: b", "", 1),
    ];
    for (status, field, rule, idle) in rows {
        let sections = format!("http-reuse always\n {rule}\n server s1 10.0.1.1:80");
        listen(&sections).run(move |world| async move {
            let scope = Rc::new(Scope::new());
            Service::at(S1).serve(&scope, move |mut peer, _| async move {
                while peer.receive_head().await.is_some() {
                    peer.send(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n{field}\r\n\r\n")).await;
                }
            });
            let mut client = Peer::connect(WEIR).await;
            ask(&mut client, "").await;
            assert_eq!(world.idle_links(), idle, "{status}, {field}, {rule}");
            world.forget_log();
        });
    }
}

/// A copy has the credentials of its request, and its connection carries no other one.
#[test]
fn a_copy_with_a_login_keeps_its_connection_for_itself() {
    let sections = format!(
        "listen l\n bind {WEIR}\n http-request mirror shadow\n server s1 10.0.1.1:80\nbackend shadow\n http-reuse always\n \
         server m1 10.0.1.2:80\n"
    );
    config(&sections).run(move |world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, believe);
        let copies = Service::at(S2).serve(&scope, believe);
        let (mut one, mut other) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        ask(&mut one, "Authorization: Negotiate one\r\n").await;
        sleep(10).await;
        for _ in 0..2 {
            ask(&mut other, "").await;
            sleep(10).await;
        }
        assert_eq!(copies.get(), 2);
        world.forget_log();
    });
}

/// Two servers must not get one login: it would be a replay at the second one.
#[test]
fn a_request_with_a_login_is_not_hedged() {
    let servers = "server s1 10.0.1.1:80\n server s2 10.0.1.2:80";
    let sections = format!("balance first\n hedge-requests after 50ms budget 100 min 0\n {servers}");
    listen(&sections).run(move |world| async move {
        let (mut s1, s2) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: NTLM x\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.receive_head().await.unwrap();
        sleep(200).await;
        assert_eq!(s2.accepted(), 0);
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.forget_log();
    });
}

/// A check with a login leaves its connection to no request.
#[test]
fn a_check_with_a_login_leaves_no_connection() {
    for (field, idle) in [("hdr Authorization \"NTLM x\"", 0), ("hdr Authorization \"Basic x\"", 1)] {
        let sections = format!(
            "http-reuse always\n option httpchk\n http-check send meth GET uri / ver HTTP/1.1 hdr host x hdr connection \
             keep-alive {field}\n \
             server s1 10.0.1.1:80 check inter 1s check-reuse-pool init-state fully-up"
        );
        listen(&sections).run(move |world| async move {
            let scope = Rc::new(Scope::new());
            Service::at(S1).serve(&scope, believe);
            sleep(3_500).await;
            assert_eq!(world.idle_links(), idle, "{field}");
        });
    }
}
