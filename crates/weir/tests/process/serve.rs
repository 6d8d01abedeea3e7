//! Binding, signals and the daemon.

use crate::crowd::command;
use crate::support::{
    DEFAULTS, Folder, Running, WEIR, connect, exchange, free_port, get, line, pid, wait_for_close, wait_for_file,
    wait_until,
};
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::path::Path;

/// A frontend whose backend has no server: it answers every request with 503 itself.
fn lonely(port: u16) -> String {
    format!(
        "{DEFAULTS}frontend web\n    bind 127.0.0.1:{port}\n    default_backend none\nbackend none\n\
         backend one\n    server s 127.0.0.1:1\n"
    )
}

/// Starts a serving process, and returns its port.
fn serving(folder: &Folder, flags: &[&str]) -> (Running, u16) {
    let port = free_port();
    let file = folder.write("lonely.cfg", &lonely(port));
    let running = Running::weir(&[flags, &["-f", &file]].concat());
    let (status, _) = exchange(&mut connect(port), &get("/"));
    assert_eq!(status, 503);
    (running, port)
}

#[test]
fn termination_and_interrupt_end_the_process_by_the_signal() {
    let folder = Folder::new();
    for (signal, number) in [(Signal::TERM, 15), (Signal::INT, 2)] {
        let (running, port) = serving(&folder, &["-d"]);
        let idle = connect(port);
        running.send(signal);
        wait_for_close(idle);
        assert_eq!(running.finish().signal(), Some(number));
    }
}

/// Whatever is sent that the process does not handle ends it, the signals of faults at the first time as well.
#[test]
fn signals_without_a_meaning_end_the_process() {
    let folder = Folder::new();
    let all = [
        Signal::SEGV,
        Signal::BUS,
        Signal::FPE,
        Signal::ILL,
        Signal::ABORT,
        Signal::SYS,
        Signal::TRAP,
        Signal::ALARM,
        Signal::VTALARM,
    ];
    for signal in all {
        let (running, _) = serving(&folder, &["-db"]);
        running.send(signal);
        assert_eq!(running.finish().signal(), Some(signal.as_raw()));
    }
}

/// What a shell ignores in a background command, and what a supervisor blocks, does not reach the process.
#[test]
fn inherited_dispositions_and_masks_of_signals_are_discarded() {
    let folder = Folder::new();
    for (inherited, signal, number) in [
        ("--ignore-signal=INT", Signal::INT, 2),
        ("--block-signal=INT", Signal::INT, 2),
        ("--block-signal=TERM", Signal::TERM, 15),
    ] {
        let port = free_port();
        let file = folder.write("lonely.cfg", &lonely(port));
        let running = Running::start(std::process::Command::new("env").args([inherited, WEIR, "-db", "-f", &file]));
        assert_eq!(exchange(&mut connect(port), &get("/")).0, 503);
        running.send(signal);
        assert_eq!(running.finish().signal(), Some(number), "{inherited}");
    }
}

#[test]
fn a_soft_stop_closes_idle_connections_and_ends_with_status_0() {
    let folder = Folder::new();
    let (running, port) = serving(&folder, &["-db"]);
    let mut kept = connect(port);
    assert_eq!(exchange(&mut kept, &get("/")).0, 503);
    running.send(Signal::USR1);
    wait_for_close(kept);
    assert_eq!(running.finish().code(), Some(0));
}

#[test]
fn signals_that_only_ask_do_no_harm() {
    let folder = Folder::new();
    let (running, port) = serving(&folder, &["-db"]);
    for signal in [Signal::HUP, Signal::USR2, Signal::QUIT, Signal::PIPE] {
        running.send(signal);
        assert_eq!(exchange(&mut connect(port), &get("/")).0, 503, "{signal:?}");
    }
    // Signals in quick succession are delivered to different threads.
    for _ in 0..20 {
        [Signal::HUP, Signal::QUIT, Signal::USR2].into_iter().for_each(|signal| running.send(signal));
    }
    running.send(Signal::USR1);
    let found = running.finish();
    assert_eq!(found.code(), Some(0));
    for sentence in [
        "SIGHUP received, dumping servers states.",
        "SIGHUP: Proxy web has no servers. Conn: act(FE+BE): ",
        "SIGHUP: Server one/s is UP. Conn: 0 act, 0 pend, 0 tot.",
        "SIGHUP: Proxy one has 1 active servers and 0 backup servers available. Conn: act(FE+BE): 0+0, 0 pend (0 unass), tot(FE+BE): 0+0.",
        "SIGQUIT: ",
        "Proxy web stopped (cumulated conns: FE: ",
    ] {
        assert!(found.stderr.contains(sentence), "{sentence}\n{}", found.stderr);
    }
}

#[test]
fn every_address_that_cannot_be_bound_is_told() {
    let folder = Folder::new();
    let taken: Vec<_> = (0..2).map(|_| TcpListener::bind(("127.0.0.1", 0)).expect("a port")).collect();
    let ports: Vec<_> = taken.iter().map(|socket| socket.local_addr().expect("bound").port()).collect();
    let text = format!(
        "{DEFAULTS}frontend web\n    bind 127.0.0.1:{}\n    bind 127.0.0.1:{}\n    bind /nowhere/socket\n\
         listen app\n    bind 127.0.0.1:{}\n",
        ports[0],
        free_port(),
        ports[1]
    );
    let file = folder.write("taken.cfg", &text);
    for flags in ["", "-D", "-dW"] {
        let found = line(&format!("{flags} -f {file}"));
        assert_eq!(found.code(), Some(1), "{flags}");
        for expected in [
            format!(
                "Binding [{file}:7] for frontend web: protocol tcpv4: cannot bind socket (Address already in use) for [127.0.0.1:{}].",
                ports[0]
            ),
            format!(
                "Binding [{file}:9] for frontend web: protocol unix_stream: cannot bind UNIX socket (No such file or directory) [/nowhere/socket]."
            ),
            format!(
                "Binding [{file}:11] for proxy app: protocol tcpv4: cannot bind socket (Address already in use) for [127.0.0.1:{}].",
                ports[1]
            ),
            "Some protocols failed to start their listeners! Exiting.".to_owned(),
        ] {
            assert!(found.stderr.contains(&expected), "{flags}: {expected}\n{}", found.stderr);
        }
    }
    let silent = line(&format!("-q -f {file}"));
    assert_eq!((silent.code(), silent.stderr.as_str()), (Some(1), ""));
    assert_eq!(line(&format!("-c -f {file}")).code(), Some(0), "a check binds nothing");
}

/// A daemon that is killed at the end of the test.
struct Daemon(Pid);

impl Daemon {
    fn of(file: &Path) -> Self {
        Self(pid(wait_for_file(file).trim_end().parse().expect("a process number")))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

#[test]
fn a_daemon_serves_when_its_command_returns() {
    let folder = Folder::new();
    let port = free_port();
    let by_flag = folder.write("flag.cfg", &lonely(port));
    let by_text =
        folder.write("text.cfg", &format!("global\n    daemon\n    pidfile {}/pid\n{}", folder.text(), lonely(port)));
    for arguments in [format!("-D -p {}/pid -f {by_flag}", folder.text()), format!("-f {by_text}")] {
        let found = line(&arguments);
        assert_eq!(found.code(), Some(0), "{arguments}: {}", found.stderr);
        let daemon = Daemon::of(&folder.path("pid"));
        let mut client = std::net::TcpStream::connect(("127.0.0.1", port)).expect("bound already");
        assert_eq!(exchange(&mut client, &get("/")).0, 503);
        kill_process(daemon.0, Signal::USR1).expect("it lives");
        wait_for_close(client);
        // Exited, or a zombie: neither has a program file.
        let program = format!("/proc/{}/exe", daemon.0);
        wait_until("the end of the daemon", || std::fs::read_link(&program).is_err());
        // Its process id may be reused.
        std::mem::forget(daemon);
        std::fs::remove_file(folder.path("pid")).expect("it is left behind");
    }
}

#[test]
fn a_daemon_whose_number_cannot_be_written_does_not_start() {
    let folder = Folder::new();
    let port = free_port();
    let file = folder.write("lonely.cfg", &lonely(port));
    let found = line(&format!("-D -p /nowhere/pid -f {file}"));
    assert_eq!(found.code(), Some(1));
    assert!(found.stderr.contains("Cannot create pidfile /nowhere/pid"), "{}", found.stderr);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn the_foreground_wins_over_a_daemon_and_leaves_its_pidfile_alone() {
    let folder = Folder::new();
    let port = free_port();
    let text = format!("global\n    daemon\n    pidfile {}/pid\n{}", folder.text(), lonely(port));
    let file = folder.write("daemon.cfg", &text);
    let running = Running::weir(&["-db", "-f", &file]);
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 503);
    assert!(!folder.path("pid").exists());
    running.send(Signal::TERM);
    assert_eq!(running.finish().signal(), Some(15));
    let own = folder.path("own");
    let running = Running::weir(&["-db", "-p", own.to_str().expect("text"), "-f", &file]);
    assert_eq!(wait_for_file(&own), format!("{}\n", running.id()));
}

#[test]
fn what_becomes_of_servers_and_frontends_is_said_on_standard_error() {
    let folder = Folder::new();
    let socket = format!("{}/api", folder.text());
    let text = format!(
        "global\n    stats socket {socket} level admin\n{DEFAULTS}    log stdout format raw daemon\nlisten l\n    bind 127.0.0.1:{}\n    \
         server s 127.0.0.1:1 check inter 1h fall 1 rise 1\nbackend b\n    server s 127.0.0.1:1\n",
        free_port(),
    );
    let file = folder.write("said.cfg", &text);
    for (mode, times) in [("-db", 1), ("-q", 0)] {
        let mut running = Running::weir(&[mode, "-f", &file]);
        let pid = running.id().to_string();
        running.wait_for_line(|line| line == "proxy l has no server available!\n");
        for order in ["set server b/s state maint", "disable frontend l", "enable frontend l", "shutdown frontend l"] {
            assert_eq!(command(&socket, &format!("{order}\n")).trim(), "", "{order}");
        }
        running.send(Signal::USR1);
        let found = running.finish();
        for sentence in [
            "[WARNING]  (PID) : Server l/s is DOWN, reason: Layer4 connection problem, info: \"ECONNREFUSED returned by OS",
            "[ALERT]    (PID) : proxy 'l' has no server available!\n",
            "[WARNING]  (PID) : Server b/s is going DOWN for maintenance. 0 active and 0 backup servers left.",
            "[ALERT]    (PID) : backend 'b' has no server available!\n",
            "[WARNING]  (PID) : Paused proxy l.\n",
            "[WARNING]  (PID) : Resumed proxy l.\n",
            "[WARNING]  (PID) : Proxy l stopped (cumulated conns: FE: 0, BE: 0).\n",
            "[WARNING]  (PID) : Proxy b stopped (cumulated conns: FE: 0, BE: 0).\n",
        ] {
            let sentence = sentence.replace("PID", &pid);
            assert_eq!(found.stderr.matches(&sentence).count(), times, "{mode}: {sentence}\n{}", found.stderr);
        }
    }
}
