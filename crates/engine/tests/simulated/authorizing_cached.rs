//! Tests of `http-request auth-request … cache`: which permissions are reused, for which requests, and how long.

use std::cell::RefCell;
use std::rc::Rc;

use testkit::{Peer, Service, sleep};

use crate::api::{self, SOCKET};
use crate::h2::{Client, block};
use crate::messages::*;
use crate::world::*;

const RULE: &str = "http-request auth-request auth path /check copy remote-user set-var(txn.mail) x-mail \
                    cache 10s key %[req.cook(session)]";

fn asked_by(rules: &str) -> Worlds {
    config(&format!(
        "frontend l\n bind {WEIR}\n {rules}\n http-request set-header x-mail %[var(txn.mail)]\n default_backend app\n\
         backend app\n server s1 10.0.1.1:80\nbackend auth\n timeout server 5s\n server a1 10.0.1.2:80\n"
    ))
    .global(SOCKET)
}

/// The cookies and paths that the server which decides was asked about.
pub type Asked = Rc<RefCell<Vec<String>>>;

/// Returns a field of a head; empty if there is none.
pub fn field<'h>(head: &'h str, name: &str) -> &'h str {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_default()
}

/// Runs both servers. The one that decides allows requests with a session, whose name is the user; it answers with these fields as
/// well. The other one answers with the user and the mail address of the request.
pub fn serve(world: &World, fields: &'static str) -> Asked {
    let asked = Asked::default();
    let known = Rc::clone(&asked);
    Service::at(S2).serve(&world.scope, move |mut peer: Peer, _| {
        let known = Rc::clone(&known);
        async move {
            while let Some(head) = peer.receive_head().await {
                let (cookie, uri) = (field(&head, "cookie"), field(&head, "x-forwarded-uri"));
                known.borrow_mut().push(format!("{cookie} {uri}"));
                let user = cookie.strip_prefix("session=").filter(|user| !user.is_empty() && *user != "eve");
                let answer = match user {
                    Some(user) => format!(
                        "HTTP/1.1 200 OK\r\nRemote-User: {user}\r\nX-Mail: {user}@a\r\nX-Other: 1\r\n{fields}Content-Length: 0\r\n\r\n"
                    ),
                    None => "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno".to_owned(),
                };
                if !peer.try_send(answer).await {
                    return;
                }
            }
        }
    });
    Service::at(S1).serve(&world.scope, move |mut peer: Peer, _| async move {
        while let Some(head) = peer.receive_head().await {
            let body = format!("{} {}{}", field(&head, "remote-user"), field(&head, "x-mail"), field(&head, "x-other"));
            let head =
                format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=50\r\nContent-Length: {}\r\n\r\n", body.len());
            if !peer.try_send(head + &body).await {
                return;
            }
        }
    });
    asked
}

/// Sends a request, and returns the status and the body of the answer.
pub async fn ask(client: &mut Peer, path: &str, fields: &str) -> String {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).await;
    let head = client.receive_head().await.expect("an answer").to_lowercase();
    let body = client.receive(field(&head, "content-length").parse().unwrap()).await;
    format!("{} {}", &head[9..12], String::from_utf8(body).unwrap())
}

/// Returns what `show auth-cache` reports behind a name.
async fn count(name: &str) -> u64 {
    let shown = api::ask("show auth-cache").await;
    let mut words = shown.split_whitespace().skip_while(|word| *word != name);
    words.nth(1).unwrap_or_else(|| panic!("{shown}")).parse().unwrap()
}

pub const ANN: &str = "Cookie: session=ann\r\nRemote-User: root\r\nREMOTE_USER: root\r\nX-Mail: root\r\n";

#[test]
fn a_permission_is_reused_until_its_time_is_over() {
    asked_by(RULE).run(|world| async move {
        let asked = serve(&world, "");
        let mut client = Peer::connect(WEIR).await;
        for path in ["/1", "/2"] {
            assert_eq!(ask(&mut client, path, ANN).await, "200 ann ann@a");
        }
        sleep(9_000).await;
        let mut other = Peer::connect(WEIR).await;
        assert_eq!(ask(&mut other, "/3", ANN).await, "200 ann ann@a");
        assert_eq!(*asked.borrow(), ["session=ann /1"]);
        assert_eq!([count("entries").await, count("hits").await, count("misses").await], [1, 2, 1]);
        assert_eq!(ask(&mut client, "/4", "Cookie: session=bob\r\n").await, "200 bob bob@a");
        sleep(1_000).await;
        assert_eq!(ask(&mut client, "/5", ANN).await, "200 ann ann@a");
        assert_eq!(*asked.borrow(), ["session=ann /1", "session=bob /4", "session=ann /5"]);
        assert_eq!([count("entries").await, count("stored").await, count("evicted").await], [2, 3, 0]);
        // Those whose time is over do not count.
        sleep(20_000).await;
        assert_eq!([count("entries").await, count("bytes").await], [0, 0]);
        world.forget_log();
    });
}

#[test]
fn the_exporter_has_the_counts_of_each_rule() {
    let rules = format!("http-request use-service prometheus-exporter if {{ path /metrics }}\n {RULE}");
    asked_by(&rules).run(|world| async move {
        let _asked = serve(&world, "");
        let mut client = Peer::connect(WEIR).await;
        for path in ["/1", "/2", "/3"] {
            assert_eq!(ask(&mut client, path, ANN).await, "200 ann ann@a");
        }
        let mut peer = Peer::connect(WEIR).await;
        peer.send("GET /metrics?scope=auth-cache HTTP/1.0\r\n\r\n").await;
        let metrics = String::from_utf8(peer.receive_rest().await).unwrap();
        let found: Vec<_> = metrics.lines().filter(|line| line.starts_with("weir_")).collect();
        let (shown, bytes) = (api::ask("show auth-cache").await, count("bytes").await);
        let line = shown.split(' ').nth(3).unwrap();
        let labels = format!("{{proxy=\"l\",line=\"{line}\",backend=\"auth\"}}");
        let values = [
            ("entries", 1),
            ("bytes", bytes),
            ("hits_total", 2),
            ("misses_total", 1),
            ("stored_total", 1),
            ("evicted_total", 0),
        ];
        assert_eq!(found, values.map(|(name, value)| format!("weir_auth_cache_{name}{labels} {value}")));
        world.forget_log();
    });
}

#[test]
fn refusals_and_requests_without_a_key_are_asked_about_each_time() {
    asked_by(RULE).run(|world| async move {
        let asked = serve(&world, "");
        let mut client = Peer::connect(WEIR).await;
        for fields in ["Cookie: session=eve\r\n", "", "Cookie: session=\r\n"] {
            for _ in 0..2 {
                assert_eq!(ask(&mut client, "/", fields).await, "401 no");
            }
        }
        assert_eq!(asked.borrow().len(), 6);
        assert_eq!([count("entries").await, count("hits").await, count("misses").await], [0, 0, 2]);
        world.forget_log();
    });
}

#[test]
fn an_answer_may_forbid_that_its_permission_is_reused() {
    let rows = [
        ("Cache-Control: no-store\r\n", RULE.to_owned(), 2),
        ("Cache-Control: max-age=9, No-Cache\r\n", RULE.to_owned(), 2),
        ("Cache-Control: max-age=9\r\n", RULE.to_owned(), 1),
        ("Set-Cookie: a=1\r\n", RULE.to_owned(), 1),
        ("Set-Cookie: a=1\r\n", RULE.replace("x-mail ", "set-cookie "), 2),
    ];
    for (fields, rule, count) in rows {
        asked_by(&rule).run(move |world| async move {
            let asked = serve(&world, fields);
            let mut client = Peer::connect(WEIR).await;
            for _ in 0..2 {
                assert!(ask(&mut client, "/", ANN).await.starts_with("200 ann"));
            }
            assert_eq!(asked.borrow().len(), count, "{fields}");
            world.forget_log();
        });
    }
}

/// A client chooses where one sample of the key ends and the next one begins.
#[test]
fn requests_with_other_samples_have_other_keys() {
    asked_by("http-request auth-request auth copy remote-user cache 10s key %[req.cook(session)]%[path]").run(
        |world| async move {
            let asked = serve(&world, "");
            let mut client = Peer::connect(WEIR).await;
            for (path, session) in [("/a", "ann/b"), ("/b/a", "ann"), ("/a", "ann/b")] {
                let fields = format!("Cookie: session={session}\r\n");
                assert_eq!(ask(&mut client, path, &fields).await, format!("200 {session} "));
            }
            assert_eq!(*asked.borrow(), ["session=ann/b /a", "session=ann /b/a"]);
            world.forget_log();
        },
    );
}

/// Credentials are part of every key: the server may decide by them whatever the configured key is.
#[test]
fn requests_with_other_credentials_have_other_keys() {
    asked_by("http-request auth-request auth copy remote-user cache 10s key %[path]").run(|world| async move {
        let asked = serve(&world, "");
        let mut client = Peer::connect(WEIR).await;
        let cookie = "Cookie: session=ann\r\n";
        for (credentials, count) in [
            ("Authorization: Basic YTpi\r\n", 1),
            ("Authorization: Basic YTpi\r\n", 1),
            ("", 2),
            ("Proxy-Authorization: Basic YTpi\r\n", 3),
            ("Authorization: Basic YTpi\r\nAuthorization: x\r\n", 4),
            ("", 4),
        ] {
            assert_eq!(ask(&mut client, "/a", &format!("{cookie}{credentials}")).await, "200 ann ");
            assert_eq!(asked.borrow().len(), count, "{credentials}");
        }
        world.forget_log();
    });
}

#[test]
fn two_rules_share_nothing() {
    let second = "http-request auth-request auth path /second copy x-other cache 10s key %[req.cook(session)]";
    asked_by(&format!("{RULE}\n {second}")).run(|world| async move {
        let asked = serve(&world, "");
        let mut client = Peer::connect(WEIR).await;
        for _ in 0..2 {
            assert_eq!(ask(&mut client, "/", ANN).await, "200 ann ann@a1");
        }
        assert_eq!(asked.borrow().len(), 2);
        let shown = api::ask("show auth-cache l").await;
        let lines: Vec<&str> = shown.lines().filter(|line| line.contains("entries 1 ")).collect();
        assert!(
            lines.len() == 2 && lines.iter().all(|line| line.contains(" backend auth time 10000ms size 8388608 ")),
            "{shown}"
        );
        world.forget_log();
    });
}

#[test]
fn all_workers_share_permissions() {
    asked_by(RULE).workers(&[3]).run(|world| async move {
        let asked = serve(&world, "");
        for _ in 0..12 {
            let mut client = Peer::connect(WEIR).await;
            assert_eq!(ask(&mut client, "/", ANN).await, "200 ann ann@a");
        }
        assert_eq!(asked.borrow().len(), 1);
        world.forget_log();
    });
}

#[test]
fn a_command_clears_permissions() {
    asked_by(RULE).run(|world| async move {
        let asked = serve(&world, "");
        let mut client = Peer::connect(WEIR).await;
        for (command, answer) in [
            ("clear auth-cache", "1 removed\n\n"),
            ("clear auth-cache l", "1 removed\n\n"),
            ("clear auth-cache auth", "No such proxy with 'auth-request ... cache'.\n\n"),
        ] {
            ask(&mut client, "/", ANN).await;
            ask(&mut client, "/", ANN).await;
            assert_eq!(api::ask(command).await, answer);
        }
        assert_eq!(asked.borrow().len(), 3);
        assert_eq!([count("entries").await, count("hits").await], [1, 3]);
        world.forget_log();
    });
}

/// The server may have decided before the permissions were cleared.
#[test]
fn a_permission_that_was_asked_for_before_a_command_is_not_kept() {
    asked_by(RULE).run(|world| async move {
        let (mut s1, mut a1) = (Service::at(S1), Service::at(S2));
        let mut client = Peer::connect(WEIR).await;
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{ANN}\r\n")).await;
        let mut auth = a1.accept().await;
        auth.receive_head().await;
        assert_eq!(api::ask("clear auth-cache").await, "0 removed\n\n");
        auth.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        let mut server = s1.accept().await;
        server.receive_head().await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        assert_eq!(count("entries").await, 0);
        world.forget_log();
    });
}

#[test]
fn a_reload_in_place_keeps_the_permissions_of_rules_that_have_not_changed() {
    let above = "http-request del-header x-role\n ";
    let rows = [
        (RULE.to_owned(), 1),
        // Rules below do not matter.
        (format!("{RULE}\n http-request set-header x-more 1"), 1),
        (format!("{above}{RULE}"), 2),
        (RULE.replace("10s", "11s"), 2),
        (RULE.replace("copy remote-user", "copy remote-user,x-other"), 2),
        (RULE.replace("path /check", "path /other"), 2),
    ];
    for (rules, count) in rows {
        asked_by(RULE).run(move |world| {
            let rules = rules.clone();
            async move {
                let asked = serve(&world, "");
                let mut old = Peer::connect(WEIR).await;
                ask(&mut old, "/", ANN).await;
                assert_eq!(world.adopt(&asked_by(&rules)), Ok(()));
                sleep(5).await;
                let mut new = Peer::connect(WEIR).await;
                assert!(ask(&mut new, "/", ANN).await.starts_with("200 ann ann@a"));
                assert_eq!(asked.borrow().len(), count, "{rules}");
                // The connection from before still has its rule, whose permissions are cleared as well.
                ask(&mut old, "/", ANN).await;
                assert_eq!(asked.borrow().len(), count);
                assert_eq!(api::ask("clear auth-cache").await, format!("{count} removed\n\n"));
                ask(&mut old, "/", ANN).await;
                assert_eq!(asked.borrow().len(), count + 1);
                world.forget_log();
            }
        });
    }
}

#[test]
fn streams_of_http2_reuse_permissions() {
    config(&format!(
        "listen l\n bind {WEIR} proto h2\n {RULE}\n server s1 10.0.1.1:80\nbackend auth\n server a1 10.0.1.2:80\n"
    ))
    .run(|world| async move {
        let asked = serve(&world, "");
        let mut client = Client::connect().await;
        for stream in [1, 3, 5] {
            client
                .request(stream, true, &block("GET", "/", &[("cookie", "session=ann"), ("remote-user", "root")]))
                .await;
            client.expect(stream, 200, "ann ").await;
        }
        assert_eq!(asked.borrow().len(), 1);
        world.forget_log();
    });
}
