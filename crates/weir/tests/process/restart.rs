//! Successive processes on the same addresses.

use crate::support::{DEFAULTS, Folder, Running, connect, exchange, free_port, get, wait_for_close, wait_until};
use rustix::process::Signal;
use std::net::{TcpListener, TcpStream};

/// A frontend that answers every request with 503 itself, on a port and on an abstract socket.
fn lonely(port: u16) -> String {
    format!(
        "{DEFAULTS}frontend web\n    bind 127.0.0.1:{port}\n    bind abns@weir-test-{port}\n    default_backend none\n\
         backend none\n"
    )
}

fn answers(port: u16) -> bool {
    exchange(&mut connect(port), &get("/")).0 == 503
}

fn refuses(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_err()
}

#[test]
fn a_paused_process_lets_go_of_its_addresses_and_takes_them_back() {
    let folder = Folder::new();
    let port = free_port();
    let file = folder.write("lonely.cfg", &lonely(port));
    let running = Running::weir(&["-db", "-dR", "-f", &file]);
    let mut kept = connect(port);
    assert_eq!(exchange(&mut kept, &get("/")).0, 503);
    for _ in 0..2 {
        running.send(Signal::TTOU);
        wait_until("the pause", || refuses(port));
        assert_eq!(exchange(&mut kept, &get("/")).0, 503, "open connections go on");
        drop(TcpListener::bind(("127.0.0.1", port)).expect("free for others"));
        running.send(Signal::TTIN);
        assert!(answers(port));
    }
    running.send(Signal::TTOU);
    wait_until("the pause", || refuses(port));
    running.send(Signal::USR1);
    wait_for_close(kept);
    let found = running.finish();
    assert_eq!(found.code(), Some(0));
    for sentence in ["Paused frontend web.", "Resumed frontend web."] {
        assert!(found.stderr.contains(sentence), "{}", found.stderr);
    }
}

#[test]
fn a_successor_that_cannot_share_an_address_asks_for_it() {
    let folder = Folder::new();
    let port = free_port();
    let file = folder.write("lonely.cfg", &lonely(port));
    let old = Running::weir(&["-db", "-dR", "-f", &file]);
    assert!(answers(port));
    let new = Running::weir(&["-db", "-dR", "-f", &file, "-sf", &old.id().to_string()]);
    assert_eq!(old.finish().code(), Some(0));
    assert!(answers(port));
    let third = Running::weir(&["-db", "-f", &file, "-st", &new.id().to_string()]);
    assert_eq!(new.finish().signal(), Some(15));
    assert!(answers(port));
    drop(third);
}

#[test]
fn a_successor_that_fails_gives_the_addresses_back() {
    let folder = Folder::new();
    let (port, taken) = (free_port(), TcpListener::bind(("127.0.0.1", 0)).expect("a port"));
    let old = Running::weir(&["-db", "-dR", "-f", &folder.write("lonely.cfg", &lonely(port))]);
    assert!(answers(port));
    let other = taken.local_addr().expect("bound").port();
    let text = format!("{}listen other\n    bind 127.0.0.1:{other}\n", lonely(port));
    let file = folder.write("taken.cfg", &text);
    let new = Running::weir(&["-db", "-dR", "-f", &file, "-sf", &old.id().to_string()]).finish();
    assert_eq!(new.code(), Some(1));
    assert!(new.stderr.contains(&format!("(Address already in use) for [127.0.0.1:{other}]")), "{}", new.stderr);
    assert!(!new.stderr.contains(&format!("for [127.0.0.1:{port}]")), "{}", new.stderr);
    assert!(answers(port), "the old process listens again");
}
