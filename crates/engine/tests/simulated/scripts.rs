//! Tests of actions of scripts: they wait on their stream's task, and return a verdict about its message.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use config::keyword::rule::{
    HTTP_AFTER_RESPONSE, HTTP_REQUEST, HTTP_RESPONSE, TCP_REQUEST_CONTENT, TCP_RESPONSE_CONTENT,
};
use engine::script::{Action, StreamAccess, Verdict};
use engine::service::registry::Services;
use policy::rule::{Change, RegisteredAction, ScriptCall, Wait};
use testkit::{Peer, Service, Stopwatch};

use crate::api::*;
use crate::messages::*;
use crate::world::*;

/// Waits for a number of milliseconds, marks the message, and returns a verdict: `script.wait <milliseconds>
/// <verdict>`.
struct Waiting {
    arguments: Arc<[Box<str>]>,
    sleep: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Action for Waiting {
    fn poll(&mut self, cx: &mut Context<'_>, stream: &StreamAccess<'_>) -> Poll<Verdict> {
        let period: u64 = self.arguments[0].parse().unwrap();
        if period > 0 {
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(rt::sleep(Duration::from_millis(period))));
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        let sees = stream.lend(|context| context.response.is_some()).unwrap();
        for of_request in [true, false] {
            let done = stream.change(of_request, &Change::Set(b"x-script", if sees { b"answer" } else { b"request" }));
            assert!(done.is_none_or(|done| done.is_ok()));
        }
        Poll::Ready(match &*self.arguments[1] {
            "stop" => Verdict::Stop,
            "deny" => Verdict::Deny,
            "invalid" => Verdict::Invalid,
            "fail" => Verdict::Fail,
            "abort" => Verdict::Abort,
            "reply" => Verdict::Reply(418, b"HTTP/1.1 418 tea\r\ncontent-length: 0\r\n\r\n".to_vec()),
            _ => Verdict::Continue,
        })
    }
}

pub fn script(services: &mut Services) {
    let number = services.add_action(Arc::new(|arguments| Box::new(Waiting { arguments, sleep: None })));
    let sets = HTTP_REQUEST | HTTP_RESPONSE | HTTP_AFTER_RESPONSE | TCP_REQUEST_CONTENT | TCP_RESPONSE_CONTENT;
    let row = RegisteredAction::new("script.wait", sets, move |words, _| {
        let mut arguments = Vec::<Box<str>>::new();
        for _ in 0..2 {
            arguments.push(words.expect("expects two arguments")?.text.as_str().into());
        }
        let arguments = arguments.into();
        Ok(policy::rule::Action::Wait(Wait::Script(ScriptCall { number, arguments })))
    });
    services.registry_mut().add_action(row).unwrap();
}

#[test]
fn a_request_waits_for_a_script_and_ends_as_it_says() {
    let rows: [(&str, Vec<u8>, &str, &str); 4] = [
        ("continue", "HTTP/1.1 200 OK\r\nx: request\r\ncontent-length: 0\r\n\r\n".into(), "200", "LR"),
        ("deny", page(403), "403", "PR"),
        ("fail", page(500), "500", "IR"),
        ("reply", "HTTP/1.1 418 tea\r\ncontent-length: 0\r\n\r\n".into(), "418", "LR"),
    ];
    for (verdict, answer, status, letters) in rows {
        let rules = format!(
            "http-request script.wait 20 {verdict}\n http-request return status 200 hdr x %[req.hdr(x-script)]"
        );
        listen(&rules).scripted(script).run(move |world| {
            let answer = answer.clone();
            async move {
                let watch = Stopwatch::start();
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                client.expect(answer).await;
                watch.took(20);
                // In the log, a request that failed was never received.
                let wait = if status == "500" { "-1" } else { "#" };
                let line = format!(
                    r#"l l/<NOSRV> {wait}/-1/-1/-1/# {status} # - - {letters}-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#
                );
                world.expect_log(&[&line]).await;
            }
        });
    }
}

#[test]
fn a_script_that_aborts_closes_and_one_that_stops_skips_the_rest() {
    listen("http-request script.wait 0 abort").scripted(script).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.expect_end().await;
        world.forget_log();
    });
    let rules = "http-request script.wait 5 stop\n http-request deny\n redirect location /on";
    listen(rules).scripted(script).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let head = client.receive_head().await.unwrap();
        assert!(head.contains("location: /on\r\n"), "{head}");
        world.forget_log();
    });
}

#[test]
fn answers_wait_for_scripts_and_are_changed() {
    let rules =
        "http-response script.wait 30 continue\n http-after-response script.wait 0 continue\n server s1 10.0.1.1:80";
    listen(rules).scripted(script).run(|world| async move {
        let mut servers = Service::at(S1);
        let watch = Stopwatch::start();
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = servers.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-script: answer\r\n\r\n").await;
        watch.took(30);
        world.forget_log();
    });
}

#[test]
fn the_first_bytes_of_a_session_wait_for_scripts() {
    for (verdict, passes) in [("continue", true), ("stop", true), ("deny", false)] {
        let rules = format!("tcp-request content script.wait 10 {verdict}\n http-request return status 200");
        listen(&rules).scripted(script).run(move |world| async move {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            if passes {
                client.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            } else {
                client.expect_end().await;
            }
            world.forget_log();
        });
    }
}

/// The counter for an action's error: of the request, of the answer, or of the proxy.
#[test]
fn what_a_script_refuses_counts_where_it_belongs() {
    let rows = [
        ("http-request", "fail", "500", "IR--", "eint", "FRONTEND"),
        ("http-request", "invalid", "400", "PR--", "ereq", "FRONTEND"),
        ("http-request", "deny", "403", "PR--", "dreq", "FRONTEND"),
        ("http-request", "abort", "0", "LR--", "", ""),
        ("http-response", "fail", "500", "IH--", "eint", "s1"),
        ("http-response", "invalid", "502", "PH--", "eresp", "s1"),
        ("http-response", "deny", "502", "PH--", "dresp", "s1"),
        ("http-response", "abort", "0", "LH--", "", ""),
        ("http-after-response", "fail", "500", "IH--", "eint", "s1"),
        ("tcp-request content", "fail", "-1", "IR--", "eint", "FRONTEND"),
        ("tcp-request content", "invalid", "-1", "PR--", "ereq", "FRONTEND"),
        ("tcp-request content", "abort", "0", "LR--", "", ""),
        ("tcp-request content", "reply", "418", "LR--", "", ""),
        ("tcp-response content", "fail", "-1", "ID--", "eint", "s1"),
        ("tcp-response content", "invalid", "-1", "PD--", "eresp", "s1"),
        ("tcp-response content", "deny", "-1", "PD--", "dresp", "s1"),
        ("tcp-response content", "abort", "0", "LH--", "", ""),
        ("tcp-response content", "reply", "418", "LH--", "", ""),
    ];
    for (rules, verdict, status, state, counted, object) in rows {
        let lines = format!("{rules} script.wait 0 {verdict}\n server s1 10.0.1.1:80");
        listen(&lines).global(SOCKET).workers(&[1]).scripted(script).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
            let got = if rules.contains("response") {
                let mut server = s1.accept().await;
                server.receive_head().await.unwrap();
                testkit::both(server.send(OK), client.receive_rest()).await.1
            } else {
                client.receive_rest().await
            };
            let replied = got.starts_with(b"HTTP/1.1 418 tea\r\n");
            assert_eq!(replied, verdict == "reply", "{rules} {verdict}");
            let line = world.lines(1).await.concat();
            assert!(
                line.contains(&format!(" {status} ")) && line.contains(&format!(" {state} ")),
                "{rules} {verdict}: {line}"
            );
            let table = ask("show stat").await;
            let names: Vec<&str> = table.lines().next().unwrap().trim_start_matches("# ").split(',').collect();
            let count = |object: &str, column: &str| {
                let at = names.iter().position(|name| *name == column).unwrap();
                let row = table.lines().find(|row| row.starts_with(&format!("l,{object},"))).unwrap();
                row.split(',').nth(at).unwrap().to_owned()
            };
            for column in ["eint", "ereq", "dreq"] {
                assert_eq!(count("FRONTEND", column) == "1", counted == column, "{rules} {verdict} {column}");
            }
            for column in ["eresp", "dresp"] {
                assert_eq!(count("s1", column) == "1", counted == column, "{rules} {verdict} {column}");
            }
            if !object.is_empty() {
                assert_eq!(count(object, counted), "1", "{rules} {verdict}");
            }
            // Rules on bytes do not see the parsed answer.
            let seen = rules.starts_with("http-") && rules.contains("response");
            assert_eq!(count("s1", "hrsp_2xx") == "1", seen, "{rules} {verdict}");
            let answers = if status == "0" { "0" } else { "1" };
            let all = ["hrsp_2xx", "hrsp_4xx", "hrsp_5xx", "hrsp_other"]
                .map(|column| count("FRONTEND", column).parse::<u32>().unwrap());
            assert_eq!(all.iter().sum::<u32>().to_string(), answers, "{rules} {verdict}");
        });
    }
}
