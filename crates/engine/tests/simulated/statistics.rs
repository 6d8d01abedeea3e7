//! Tests of the statistics: counters are exact, over any number of workers.

use testkit::{Peer, Service, sleep};

use crate::api::*;
use crate::messages::*;
use crate::world::*;

/// One value of `show stat`.
async fn value(proxy: &str, name: &str, column: &str) -> String {
    let table = ask("show stat").await;
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().unwrap().trim_start_matches("# ").split(',').collect();
    let at = header.iter().position(|found| *found == column).unwrap();
    let line = lines.find(|line| line.starts_with(&format!("{proxy},{name},"))).unwrap();
    line.split(',').nth(at).unwrap().to_owned()
}

async fn expect(rows: &[(&str, &str, &str)]) {
    for (name, column, expected) in rows {
        assert_eq!(value("l", name, column).await, *expected, "{name} {column}");
    }
}

#[test]
fn every_worker_s_part_is_in_the_sum() {
    const CLIENTS: usize = 12;
    listen("option socket-stats\nserver s1 10.0.1.1:80").global(SOCKET).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut open = Vec::new();
        for _ in 0..CLIENTS {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut server = s1.accept().await;
            server.expect(GET_AT_SERVER).await;
            open.push((client, server));
        }
        // Connections of the runtime API count as requests as well: this one.
        assert!(ask("show info").await.contains(&format!("\nCumReq: {}\n", CLIENTS + 1)));
        let all = CLIENTS.to_string();
        expect(&[
            ("FRONTEND", "scur", &all),
            ("FRONTEND", "smax", &all),
            ("FRONTEND", "stot", &all),
            ("FRONTEND", "conn_tot", &all),
            ("FRONTEND", "req_tot", &all),
            ("FRONTEND", "req_rate_max", &all),
            ("FRONTEND", "rate", &all),
            ("FRONTEND", "hrsp_2xx", "0"),
            ("sock-1", "scur", &all),
            ("sock-1", "smax", &all),
            ("sock-1", "stot", &all),
            ("s1", "scur", &all),
            ("s1", "smax", &all),
            ("s1", "stot", &all),
            ("s1", "lbtot", &all),
            ("s1", "connect", &all),
            ("s1", "reuse", "0"),
            ("s1", "status", "no check"),
            ("BACKEND", "smax", &all),
            ("BACKEND", "status", "UP"),
        ])
        .await;
        let listed = ask("show sess").await;
        assert_eq!(listed.matches(" fe=l be=l srv=s1 ").count(), CLIENTS, "{listed}");
        for (client, server) in &mut open {
            server.send(OK).await;
            client.receive_until("ok").await;
        }
        drop(open);
        sleep(5).await;
        let (read, written) = ((GET.len() * CLIENTS).to_string(), (OK.len() * CLIENTS).to_string());
        expect(&[
            ("FRONTEND", "scur", "0"),
            ("FRONTEND", "smax", &all),
            ("FRONTEND", "hrsp_2xx", &all),
            ("FRONTEND", "bin", &read),
            ("FRONTEND", "bout", &written),
            ("sock-1", "scur", "0"),
            ("s1", "hrsp_2xx", &all),
            ("s1", "req_tot", &all),
            ("BACKEND", "hrsp_2xx", &all),
            ("BACKEND", "bout", &written),
        ])
        .await;
        ask("clear counters").await;
        expect(&[("FRONTEND", "smax", "0"), ("s1", "smax", "0"), ("s1", "stot", &all)]).await;
        ask("clear counters server l/s1").await;
        expect(&[("s1", "stot", "0"), ("BACKEND", "stot", &all), ("FRONTEND", "stot", &all)]).await;
        ask("clear counters all").await;
        expect(&[("BACKEND", "stot", "0"), ("FRONTEND", "stot", "0"), ("FRONTEND", "bin", "0")]).await;
        drop(world);
    });
}

#[test]
fn clearing_all_has_rates_and_the_time_of_the_last_change_begin_anew() {
    listen("server s1 10.0.1.1:80\nserver s2 10.0.1.2:80").global(SOCKET).workers(&[1, 2]).run(|_| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        ask("disable server l/s1").await;
        ask("disable server l/s2").await;
        sleep(3000).await;
        client.close();
        let mut other = Peer::connect(WEIR).await;
        other.send(GET).await;
        other.receive_head().await.unwrap();
        let times = [("s1", "lastchg"), ("s2", "lastchg"), ("BACKEND", "lastchg"), ("BACKEND", "downtime")];
        for (name, column) in times {
            assert_eq!(value("l", name, column).await, "3", "{name} {column}");
        }
        expect(&[("FRONTEND", "rate", "1"), ("FRONTEND", "req_rate", "1"), ("BACKEND", "rate", "1")]).await;
        ask("clear counters server l/s1").await;
        expect(&[("s1", "lastchg", "0"), ("s2", "lastchg", "3"), ("BACKEND", "lastchg", "3")]).await;
        ask("clear counters all").await;
        expect(&[("FRONTEND", "rate", "0"), ("FRONTEND", "req_rate", "0"), ("FRONTEND", "conn_rate", "0")]).await;
        expect(&[("BACKEND", "rate", "0"), ("s2", "lastchg", "0"), ("BACKEND", "lastchg", "0")]).await;
        sleep(2000).await;
        // It is 0 until the next change; the downtime continues.
        expect(&[("s2", "lastchg", "0"), ("BACKEND", "lastchg", "0"), ("BACKEND", "downtime", "5")]).await;
        ask("enable server l/s2").await;
        sleep(4000).await;
        expect(&[("s1", "lastchg", "0"), ("s2", "lastchg", "4"), ("BACKEND", "lastchg", "4")]).await;
    });
}

#[test]
fn failures_are_counted_where_they_belong() {
    let body = "retries 1\ntimeout connect 1s\nserver s1 10.0.1.1:80\nserver s2 10.0.1.2:80 disabled";
    listen(body).global(SOCKET).workers(&[1, 2]).run(|_| async move {
        let mut refused = Peer::connect(WEIR).await;
        refused.send(GET).await;
        refused.receive_head().await;
        refused.close();
        let mut bad = Peer::connect(WEIR).await;
        bad.send("BAD\r\n\r\n").await;
        bad.receive_rest().await;
        sleep(5).await;
        expect(&[
            ("s1", "econ", "1"),
            ("s1", "wretr", "1"),
            ("s1", "stot", "2"),
            ("s1", "hrsp_5xx", "0"),
            ("s2", "status", "MAINT"),
            ("BACKEND", "econ", "1"),
            ("BACKEND", "hrsp_5xx", "1"),
            ("FRONTEND", "hrsp_5xx", "1"),
            ("FRONTEND", "hrsp_4xx", "1"),
            ("FRONTEND", "ereq", "1"),
        ])
        .await;
    });
}

#[test]
fn what_rules_answer_is_no_error_and_what_they_refuse_is_denied() {
    let body = "timeout tarpit 1s\nmonitor-uri /ill\nmonitor fail if TRUE\n\
                option http-restrict-req-hdr-names reject\nhttp-request return status 200 if { path /return }\n\
                http-request redirect location / if { path /redirect }\nhttp-request auth if { path /auth }\n\
                http-request tarpit if { path /tarpit }\nhttp-response deny\nserver s1 10.0.1.1:80";
    listen(body).global(SOCKET).workers(&[1]).seeds(0..1).run(|_| async move {
        let mut s1 = Service::at(S1);
        for path in ["return", "redirect", "auth", "ill", "tarpit"] {
            let mut client = Peer::connect(WEIR).await;
            client.send(format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            client.receive_head().await.unwrap();
        }
        let mut named = Peer::connect(WEIR).await;
        named.send("GET / HTTP/1.1\r\nHost: a\r\nX_A: 1\r\n\r\n").await;
        assert!(named.receive_head().await.unwrap().starts_with("HTTP/1.1 403 "));
        let mut denied = Peer::connect(WEIR).await;
        denied.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        assert!(denied.receive_head().await.unwrap().starts_with("HTTP/1.1 502 "));
        expect(&[
            ("FRONTEND", "intercepted", "4"),
            ("FRONTEND", "hrsp_2xx", "1"),
            ("FRONTEND", "ereq", "0"),
            ("FRONTEND", "dreq", "2"),
            ("FRONTEND", "dresp", "1"),
            ("FRONTEND", "hrsp_5xx", "3"),
            ("BACKEND", "hrsp_5xx", "1"),
            ("s1", "dresp", "1"),
            ("s1", "hrsp_2xx", "1"),
            ("s1", "hrsp_5xx", "0"),
        ])
        .await;
    });
}

#[test]
fn requests_that_wait_in_vain_and_answers_that_are_none_are_counted() {
    let body = "option socket-stats\nmonitor-uri /alive\nmaxconn 2\nbalance uri\ntimeout queue 2s\n\
                retries 1\nretry-on empty-response\nserver s1 10.0.1.1:80 maxconn 1";
    listen(body).global(SOCKET).workers(&[1, 2]).run(|_| async move {
        let mut s1 = Service::at(S1);
        let mut monitor = Peer::connect(WEIR).await;
        monitor.send("GET /alive HTTP/1.1\r\nHost: a\r\n\r\n").await;
        monitor.receive_head().await;
        drop(monitor);
        sleep(1).await;
        let mut served = Peer::connect(WEIR).await;
        served.send(GET).await;
        let first = s1.accept().await;
        let mut waiting = Peer::connect(WEIR).await;
        waiting.send(GET).await;
        sleep(1).await;
        expect(&[
            ("FRONTEND", "intercepted", "1"),
            ("FRONTEND", "hrsp_2xx", "1"),
            ("FRONTEND", "status", "OPEN"),
            ("sock-1", "status", "WAITING"),
            ("BACKEND", "scur", "2"),
            ("BACKEND", "smax", "2"),
            ("s1", "lbtot", "2"),
        ])
        .await;
        waiting.receive_head().await;
        drop(first);
        let mut second = s1.accept().await;
        second.expect(GET_AT_SERVER).await;
        second.send(OK).await;
        served.receive_until("ok").await;
        expect(&[
            ("s1", "econ", "1"),
            ("BACKEND", "econ", "1"),
            ("s1", "eresp", "1"),
            ("BACKEND", "eresp", "1"),
            ("s1", "wretr", "1"),
            ("s1", "stot", "2"),
        ])
        .await;
    });
}

#[test]
fn a_connection_without_its_proxy_header_is_no_session() {
    let sections =
        format!("listen l\n    bind {WEIR} accept-proxy\n    option socket-stats\n    server s1 10.0.1.1:80");
    config(&sections).global(SOCKET).workers(&[1, 2]).run(|_| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.receive_rest().await;
        expect(&[
            ("FRONTEND", "conn_tot", "1"),
            ("FRONTEND", "stot", "0"),
            ("sock-1", "conn_tot", "1"),
            ("sock-1", "stot", "0"),
        ])
        .await;
    });
}

#[test]
fn changes_of_servers_take_effect_and_show() {
    listen("server s1 10.0.1.1:80 maxconn 10").global(SOCKET).workers(&[1]).seeds(0..1).run(|_| async move {
        assert_eq!(ask("disable server l/s1").await, "\n");
        expect(&[("s1", "status", "MAINT"), ("BACKEND", "status", "DOWN"), ("BACKEND", "weight", "0")]).await;
        assert!(ask("show servers state").await.contains("\n2 l 1 s1 10.0.1.1 0 1 1 1 "));
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        assert!(client.receive_head().await.unwrap().starts_with("HTTP/1.1 503 "));
        client.close();
        assert_eq!(
            ask("set server l/s1 state ready;set maxconn server l/s1 3;set server l/s1 weight 50%").await,
            "\n\n\n"
        );
        expect(&[("s1", "status", "no check"), ("s1", "slim", "3"), ("s1", "weight", "0")]).await;
        assert_eq!(ask("set maxconn frontend l 7").await, "\n");
        expect(&[("FRONTEND", "slim", "7")]).await;
        let listed = ask("show servers conn l").await;
        assert!(listed.contains("\nl/s1 2/1 10.0.1.1 80 - 5000 0 0 "), "{listed}");
    });
}

#[test]
fn maxima_are_shown_unless_they_are_not_wanted() {
    let off = format!("{SOCKET}\nstats calculate-max-counters off");
    for (lines, most) in [(SOCKET, "1"), (&*off, "0")] {
        listen("server s1 10.0.1.1:80").global(lines).workers(&[1]).seeds(0..1).run(move |_| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let server = s1.accept().await;
            expect(&[("FRONTEND", "scur", "1"), ("FRONTEND", "smax", most), ("FRONTEND", "rate_max", most)]).await;
            client.close();
            server.close();
        });
    }
}

/// An invalid body from a client is an error of its request, at any stage of the answer, and does not affect its
/// server.
#[test]
fn an_invalid_body_of_a_request_is_no_failure_of_its_server() {
    let rows = [
        ("", "400", "PH--", ["0", "0", "1"]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", "200", "PD--", ["0", "1", "0"]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200", "PL--", ["0", "1", "0"]),
    ];
    for (answered, status, state, answers) in rows {
        let lines = "option socket-stats\nserver s1 10.0.1.1:80 check addr 10.0.1.9 inter 60s init-state fully-up \
                     observe layer7 error-limit 1 on-error mark-down";
        listen(lines).global(SOCKET).workers(&[1]).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
            let mut server = s1.accept().await;
            server.receive_until("abc\r\n").await;
            server.send(answered).await;
            sleep(5).await;
            client.send("zz\r\n").await;
            client.receive_rest().await;
            let line = loop {
                let line = world.lines(1).await.concat();
                if line.contains("POST / HTTP/1.1") {
                    break line;
                }
            };
            assert!(line.contains(&format!(" {status} ")) && line.contains(&format!(" {state} ")), "{line}");
            assert!(value("l", "s1", "status").await.starts_with("UP"), "{status}");
            expect(&[
                ("FRONTEND", "ereq", "1"),
                ("sock-1", "ereq", "1"),
                ("BACKEND", "eresp", "0"),
                ("s1", "eresp", "0"),
                ("s1", "cli_abrt", "0"),
                ("s1", "hrsp_5xx", answers[0]),
                ("s1", "hrsp_2xx", answers[1]),
                ("FRONTEND", "hrsp_4xx", answers[2]),
            ])
            .await;
        });
    }
}

#[test]
fn an_invalid_body_of_an_answer_is_an_error_of_its_server() {
    for rest in ["zz\r\n", "3\r\nabcX", "0\r\nno trailer\r\n\r\n"] {
        let lines = "option socket-stats\nserver s1 10.0.1.1:80 check addr 10.0.1.9 inter 60s init-state fully-up \
                     observe layer7 error-limit 1 on-error mark-down";
        listen(lines).global(SOCKET).workers(&[1]).run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let mut server = s1.accept().await;
            server.expect(GET_AT_SERVER).await;
            server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
            client.receive_until("hello").await;
            server.send(rest).await;
            client.receive_rest().await;
            let mut told = Vec::new();
            while !told.iter().any(|line: &String| line.contains("GET / HTTP/1.1")) {
                told.extend(world.lines(1).await);
            }
            assert!(told.iter().any(|line| line.contains("last one was: Invalid http response\".")), "{told:?}");
            let line = told.pop().unwrap();
            assert!(line.contains(" 200 ") && line.contains(" PD-- "), "{line}");
            expect(&[
                ("FRONTEND", "ereq", "0"),
                ("BACKEND", "eresp", "1"),
                ("s1", "eresp", "1"),
                ("s1", "srv_abrt", "0"),
                ("s1", "hrsp_2xx", "1"),
                ("s1", "status", "DOWN"),
            ])
            .await;
        });
    }
}

/// The answer to such a request is counted for the backend that it would have been sent to, and so is the request.
#[test]
fn a_request_that_its_client_leaves_unfinished_is_one_of_its_backend() {
    let sections = format!(
        "frontend l\n bind {WEIR}\n option http-buffer-request\n default_backend b\nbackend b\n server s1 10.0.1.1:80"
    );
    config(&sections).global(SOCKET).workers(&[1]).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\nabc").await;
        client.half_close();
        client.receive_rest().await;
        let line = world.lines(1).await.concat();
        assert!(line.contains(" b/<NOSRV> ") && line.contains(" CR-- "), "{line}");
        for (column, count) in [("stot", "1"), ("hrsp_4xx", "1"), ("req_tot", "1")] {
            assert_eq!(value("b", "BACKEND", column).await, count, "{column}");
        }
    });
}
