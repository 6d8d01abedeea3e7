//! Tests of the choice of a backend (`use_backend`, `default_backend`, `force-be-switch`) if backends are disabled or
//! not published.

use std::rc::Rc;

use testkit::{Peer, Scope, Service};

use crate::api::*;
use crate::messages::*;
use crate::world::*;

/// The rules of a section, its default, and the backends that answer: of a `frontend`, of a `listen`, and of both with
/// `force-be-switch`. As in HAProxy 3.5, except for a disabled backend that is forced, which HAProxy cannot serve.
const ROWS: [(&str, &str, [&str; 3]); 18] = [
    ("", "", ["503", "own", "none"]),
    ("", "open2", ["open2", "open2", "open2"]),
    ("", "dis", ["503", "own", "dis"]),
    ("", "unp", ["503", "own", "unp"]),
    ("", "run", ["503", "own", "run"]),
    ("use_backend dis", "run", ["503", "own", "dis"]),
    ("use_backend run", "open2", ["open2", "open2", "run"]),
    ("use_backend dis\n use_backend open1", "unp", ["open1", "open1", "dis"]),
    ("use_backend run if TRUE\n use_backend open1 if TRUE", "", ["open1", "open1", "run"]),
    ("use_backend %[str(dis)]\n use_backend open1", "open2", ["open1", "open1", "dis"]),
    ("use_backend %[str(unp)]\n use_backend open1", "open2", ["open1", "open1", "unp"]),
    ("use_backend %[str(run)]\n use_backend open1", "dis", ["open1", "open1", "run"]),
    ("use_backend %[str(dis)]\n use_backend %[str(open1)]", "", ["open1", "open1", "dis"]),
    ("use_backend %[str(unp)]", "open2", ["open2", "open2", "unp"]),
    ("use_backend %[str(unp)]", "run", ["503", "own", "unp"]),
    // An unknown backend name ends the choice.
    ("use_backend %[str(nope)]\n use_backend open1", "open2", ["open2", "open2", "open2"]),
    ("use_backend %[str(nope)]\n use_backend open1", "run", ["503", "own", "run"]),
    ("use_backend %[var(txn.nope)]\n use_backend open1", "", ["503", "own", "none"]),
];

#[test]
fn a_backend_that_is_not_open_is_passed_over() {
    let mut sections = String::new();
    for (name, line) in [("open1", ""), ("open2", ""), ("dis", "disabled"), ("unp", "be-unpublished"), ("run", "")] {
        sections += &format!("backend {name}\n {line}\n http-request return status 200 hdr at {name}\n");
    }
    let bind = |place: usize, column: usize| format!("10.0.0.1:{}", 1000 + 10 * place + column);
    for (place, (rules, default, _)) in ROWS.iter().enumerate() {
        let default = if default.is_empty() { String::new() } else { format!("default_backend {default}") };
        let force = "force-be-switch if TRUE";
        for (column, kind, more) in
            [(0, "frontend", ""), (1, "listen", "server own 10.0.1.1:80"), (2, "frontend", force)]
        {
            let name = format!("{kind}{column}-{place}");
            sections += &format!("{kind} {name}\n bind {}\n {rules}\n {default}\n {more}\n", bind(place, column));
        }
    }
    config(&sections).global(SOCKET).workers(&[1]).seeds(0..1).run(move |world| async move {
        let scope = Rc::new(Scope::new());
        Service::at(S1).serve(&scope, |mut peer, _| async move {
            while peer.receive_head().await.is_some() {
                peer.send("HTTP/1.1 200 OK\r\nAt: own\r\nContent-Length: 0\r\n\r\n").await;
            }
        });
        ask("unpublish backend run").await;
        for (place, (rules, default, expected)) in ROWS.iter().enumerate() {
            for (column, expected) in expected.iter().enumerate().filter(|(_, expected)| **expected != "none") {
                let mut client = Peer::connect(&bind(place, column)).await;
                client.send(GET).await;
                let head = client.receive_head().await.unwrap();
                let at = head.lines().find_map(|line| line.strip_prefix("at: ")).unwrap_or("503");
                assert_eq!(at, *expected, "{rules}, default {default}, column {column}");
            }
        }
        world.forget_log();
    });
}
