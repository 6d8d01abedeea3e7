//! `show fd`: every open descriptor has a line with its owner, and letters select types. Must never depend on
//! descriptor numbers.

use crate::support::{DEFAULTS, Folder, Running, connect, connect_unix, exchange, free_port, get, wait_until};
use std::io::{Read, Write};
use std::path::Path;

/// Returns the answer to commands.
fn ask(socket: &Path, commands: &str) -> String {
    let mut stream = connect_unix(socket);
    writeln!(stream, "{commands}").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Returns the lines that contain all of these words.
fn with<'a>(answer: &'a str, words: &[&str]) -> Vec<&'a str> {
    answer.lines().filter(|line| words.iter().all(|word| line.contains(word))).collect()
}

#[test]
fn every_descriptor_has_a_line_with_its_owner() {
    let folder = Folder::new();
    let (web, origin, socket) = (free_port(), free_port(), folder.path("api"));
    let text = format!(
        "global\n    nbthread 2\n    stats socket {} level admin\n{DEFAULTS}frontend web\n    bind 127.0.0.1:{web}\n    \
         default_backend app\nbackend app\n    server s1 127.0.0.1:{origin} pool-purge-delay 1h\nfrontend origin\n    bind 127.0.0.1:{origin}\n    \
         http-request return status 200 content-type text/plain string hello\n",
        socket.display()
    );
    let running = Running::weir(&["-db", "-f", &folder.write("fd.cfg", &text)]);
    let mut client = connect(web);
    assert_eq!(exchange(&mut client, &get("/")), (200, "hello".to_owned()));
    // The connection becomes idle once the answer was sent.
    wait_until("an idle link", || !with(&ask(&socket, "show fd c!f"), &[" back=1 ", "mux=H1"]).is_empty());
    let all = ask(&socket, "show fd");
    let client_port = client.local_addr().expect("an address").port();
    let (lport, rport) = (format!("lport={web} "), format!("rport={client_port} "));
    assert_eq!(with(&all, &[" back=0 ", &lport, &rport, " fe=web ", "mux=H1 xprt=RAW"]).len(), 1, "{all}");
    let idle = with(&all, &["(cL ", " back=1 ", &format!("rport={origin} "), " sv=app/s1 ", "mux=H1 xprt=RAW"]);
    assert_eq!(idle.len(), 1, "{all}");
    assert_eq!(with(&all, &[" back=0 ", " fe=origin ", "fam=ipv4"]).len(), 1, "{all}");
    assert_eq!(with(&all, &["st=0x1", " l.st=RDY fe=web fam=ipv4 ", &lport[..lport.len() - 1]]).len(), 1, "{all}");
    assert_eq!(with(&all, &[" l.st=RDY fe=GLOBAL fam=unix"]).len(), 1, "{all}");
    assert_eq!(with(&all, &[" back=0 fam=unix fe=GLOBAL"]).len(), 1, "{all}");
    // As many as in /proc, apart from the connection of the command itself, which is the same in both.
    let open = std::fs::read_dir(format!("/proc/{}/fd", running.id())).expect("a process").count();
    let listed = all.lines().filter(|line| line.contains(" : st=0x")).count();
    assert!(listed >= open && listed <= open + 1, "{listed} of {open}:\n{all}");

    let kinds = ask(&socket, "show fd l");
    assert_eq!(with(&kinds, &[" l.st="]).len(), 3, "{kinds}");
    assert_eq!(with(&kinds, &[" : st="]).len(), 3, "{kinds}");
    let servers = ask(&socket, "show fd c!f");
    assert!(with(&servers, &[" : st="]).iter().all(|line| line.contains(" back=1 ")), "{servers}");
    let number = idle[0].split_whitespace().next().expect("a number");
    let one = ask(&socket, &format!("show fd 1/{number}"));
    assert_eq!(with(&one, &[" : st="]).len(), 1, "{one}");
    assert!(one.trim_start().starts_with(&format!("{number} : ")), "{one}");
    assert_eq!(ask(&socket, "show fd 99999999"), "\n");
    assert_eq!(ask(&socket, "show fd d"), "Invalid FD type\n\n");

    // A paused frontend, anonymized names.
    let paused = ask(&socket, "disable frontend web; show fd l; enable frontend web");
    assert_eq!(with(&paused, &[" l.st=PAU fe=web"]).len(), 1, "{paused}");
    let hidden = ask(&socket, "set anon on 1; show fd l");
    assert!(!hidden.contains("fe=web") && hidden.contains("fe=GLOBAL"), "{hidden}");
}
