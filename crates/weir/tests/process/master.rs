//! The master and its workers: starts, reloads, exits, notifications to systemd, the master CLI.

use crate::support::{
    DEFAULTS, Folder, PATIENCE, Running, WEIR, connect, exchange, free_port, get, pid, wait_for_close, wait_until,
};
use rustix::process::{Signal, kill_process};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;

/// A service with a master, a CLI and a simulated systemd.
struct Service {
    folder: Folder,
    running: Running,
    manager: UnixDatagram,
    port: u16,
}

fn text(port: u16, more: &str) -> String {
    format!("{DEFAULTS}frontend web\n    bind 127.0.0.1:{port}\n    default_backend none\nbackend none\n{more}")
}

impl Service {
    fn start(global: &str) -> Self {
        let folder = Folder::new();
        let port = free_port();
        let global = global.replace("FOLDER", folder.text());
        let file = folder.write("service.cfg", &format!("global\n{global}\n{}", text(port, "")));
        let manager = UnixDatagram::bind(folder.path("notify")).expect("free");
        manager.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let mut command = Command::new(WEIR);
        command.args(["-Ws", "-S"]).arg(folder.path("master")).arg("-f").arg(&file);
        command.env("NOTIFY_SOCKET", folder.path("notify"));
        let running = Running::start(&mut command);
        let service = Self { folder, running, manager, port };
        service.expect_news(&format!("READY=1\nMAINPID={}\n", service.running.id()));
        service
    }

    fn expect_news(&self, start: &str) {
        let mut place = [0; 512];
        let count = self.manager.recv(&mut place).expect("news");
        let news = String::from_utf8_lossy(&place[..count]);
        assert!(news.starts_with(start), "{news} instead of {start}");
    }

    /// Returns the master's answer.
    fn ask(&self, line: &str) -> String {
        let mut stream = crate::support::connect_unix(&self.folder.path("master"));
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(format!("{line}\n").as_bytes()).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// Returns the process id of the current worker.
    fn worker(&self) -> u32 {
        let shown = self.ask("show proc");
        let line = shown.lines().skip_while(|line| *line != "# workers").nth(1).unwrap_or_else(|| panic!("{shown}"));
        line.split(' ').next().and_then(|pid| pid.parse().ok()).unwrap_or_else(|| panic!("{shown}"))
    }

    fn answers(&self) -> bool {
        exchange(&mut connect(self.port), &get("/")).0 == 503
    }

    fn write(&self, more: &str) {
        self.folder.write("service.cfg", &text(self.port, more));
    }
}

#[test]
fn the_master_answers_commands_that_are_addressed_to_it() {
    let service = Service::start("");
    for command in ["show proc", "@master show proc", "@ show proc", "  @master   show proc"] {
        let answer = service.ask(command);
        assert!(answer.starts_with("#<PID>") && answer.contains("worker"), "{command}: {answer}");
    }
    assert_eq!(service.ask("show cli sockets"), "\n");
    let denied = "Permission denied\n\n".repeat(3);
    assert_eq!(service.ask("user;show proc;show startup-logs;mcli-debug-mode on"), denied);
    // The process itself is shown only in debug mode.
    assert!(service.ask("show fd").starts_with("Unknown command: 'show'"));
    let shown = service.ask("mcli-debug-mode on;show info;show fd;show libs;help show");
    assert!(shown.contains(&format!("\nPid: {}\n", service.running.id())), "{shown}");
    assert!(shown.contains("\n      0 : ") && shown.contains(" : socket:["), "{shown}");
    assert!(shown.contains(WEIR) && shown.contains("  show libs  "), "{shown}");
    assert!(!service.ask("mcli-debug-mode on;mcli-debug-mode off;help show").contains("show libs"));
    let prompts = service.ask("prompt\nexpert-mode on\nmcli-debug-mode on\nexperimental-mode on\nmcli-debug-mode off");
    assert!(prompts.contains("master(ed)> ") && prompts.contains("master(xed)> "), "{prompts}");
    assert!(prompts.ends_with("master(xe)> "), "{prompts}");
}

/// A link named `haproxy`, as in an installation that replaces HAProxy.
#[test]
fn workers_under_a_link_called_haproxy_have_its_name() {
    let folder = Folder::new();
    let linked = folder.path("haproxy");
    std::os::unix::fs::symlink(WEIR, &linked).expect("a link");
    let socket = format!("stats socket {} level admin", folder.path("api").display());
    let file = folder.write("service.cfg", &format!("global\n    {socket}\n{}", text(free_port(), "")));
    let mut command = Command::new(&linked);
    command.args(["-W", "-S"]).arg(folder.path("master")).arg("-f").arg(&file);
    let running = Running::start(&mut command);
    let ask = |name: &str, line: &str| {
        let mut stream = UnixStream::connect(folder.path(name)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.write_all(format!("{line}\n").as_bytes()).ok()?;
        stream.shutdown(std::net::Shutdown::Write).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    };
    wait_until("the worker answers", || ask("api", "show info").is_some_and(|answer| answer.contains("Name:")));
    let info = ask("api", "show info").unwrap_or_default();
    let value = |name: &str| {
        let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_default().to_owned()
    };
    assert_eq!(value("Name"), "HAProxy");
    assert!(value("Implementation").starts_with("Weir "), "{info}");
    for number in [running.id().to_string(), value("Pid")] {
        let name = std::fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
        assert_eq!(name, "haproxy\n", "{number}");
    }
}

#[test]
fn a_reload_replaces_the_worker_and_nothing_else() {
    let service = Service::start("");
    let (master, first) = (service.running.id(), service.worker());
    let mut kept = connect(service.port);
    assert_eq!(exchange(&mut kept, &get("/")).0, 503);
    for signal in [Signal::USR2, Signal::HUP] {
        let before = service.worker();
        service.running.send(signal);
        service.expect_news("RELOADING=1\n");
        service.expect_news(&format!("READY=1\nMAINPID={master}\n"));
        assert_ne!(service.worker(), before);
        assert!(service.answers());
    }
    wait_for_close(kept);
    wait_until("the end of the first worker", || !service.ask("show proc").contains(&format!("\n{first} ")));
    assert!(service.ask("show proc").contains("2 [failed: 0]"));
    service.running.send(Signal::TERM);
    service.expect_news("STOPPING=1");
    let found = service.running.finish();
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    assert!(found.stderr.contains("Loading success."), "{}", found.stderr);
}

#[test]
fn a_broken_configuration_keeps_the_worker() {
    let service = Service::start("");
    let before = service.worker();
    service.write("    nonsense\n");
    let answer = service.ask("reload");
    assert!(answer.starts_with("Success=0\n--\n"), "{answer}");
    assert!(answer.contains("unknown keyword 'nonsense'"), "{answer}");
    service.expect_news("RELOADING=1\n");
    service.expect_news("READY=1\nSTATUS=Reload failed!\n");
    assert!(service.answers());
    assert!(service.ask("show proc").contains(&format!("# old workers\n{before} ")));
    service.write("");
    let answer = service.ask("reload");
    assert!(answer.starts_with("Success=1\n--\n"), "{answer}");
    // The exit of the previous worker may be logged as well, depending on its time.
    let lasting = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.contains("Former worker (")).map(str::to_owned).collect()
    };
    assert_eq!(lasting(&service.ask("show startup-logs")), lasting(&answer["Success=1\n--\n".len()..]));
    assert_ne!(service.worker(), before);
    assert!(service.answers());
    service.running.send(Signal::INT);
    assert_eq!(service.running.finish().code(), Some(130));
}

#[test]
fn a_worker_that_dies_takes_the_master_with_it() {
    for (signal, code) in [(Signal::KILL, 137), (Signal::TERM, 0)] {
        let service = Service::start("");
        kill_process(pid(service.worker()), signal).expect("it lives");
        let found = service.running.finish();
        assert_eq!(found.code(), Some(code), "{}", found.stderr);
    }
}

#[test]
fn a_pause_is_passed_on() {
    let service = Service::start("");
    assert!(service.answers());
    service.running.send(Signal::TTOU);
    wait_until("the pause", || TcpStream::connect(("127.0.0.1", service.port)).is_err());
    service.running.send(Signal::TTIN);
    assert!(service.answers());
}

#[test]
fn a_soft_stop_of_the_master_waits_for_its_workers() {
    let service = Service::start("");
    let mut kept = connect(service.port);
    assert_eq!(exchange(&mut kept, &get("/")).0, 503);
    service.running.send(Signal::USR1);
    wait_for_close(kept);
    assert_eq!(service.running.finish().code(), Some(0));
}

#[test]
fn workers_leave_when_their_master_has_gone() {
    let service = Service::start("");
    let worker = service.worker();
    let kept = connect(service.port);
    service.running.send(Signal::KILL);
    drop(kept);
    let program = format!("/proc/{worker}/exe");
    wait_until("the end of the worker", || std::fs::read_link(&program).is_err());
    // Its program file is released before its sockets.
    wait_until("the end of the address", || TcpStream::connect(("127.0.0.1", service.port)).is_err());
}

#[test]
fn a_start_that_fails_ends_the_master() {
    let folder = Folder::new();
    let file = folder.write("broken.cfg", &text(free_port(), "    nonsense\n"));
    for flags in [&["-W"][..], &["-W", "-D"]] {
        let found = crate::support::weir(flags.iter().copied().chain(["-f", &file]));
        assert_eq!(found.code(), Some(1), "{}", found.stderr);
        assert!(found.stderr.contains("unknown keyword 'nonsense'"), "{}", found.stderr);
    }
}

#[test]
fn a_master_in_the_background_serves_when_its_command_returns() {
    let folder = Folder::new();
    let port = free_port();
    let file = folder.write("service.cfg", &text(port, ""));
    let number = folder.path("pid");
    let found = crate::support::weir(["-W", "-D", "-p", number.to_str().expect("text"), "-f", &file]);
    assert_eq!(found.code(), Some(0), "{}", found.stderr);
    let mut client = TcpStream::connect(("127.0.0.1", port)).expect("bound already");
    assert_eq!(exchange(&mut client, &get("/")).0, 503);
    let master = std::fs::read_to_string(&number).expect("written").trim().parse().expect("a number");
    kill_process(pid(master), Signal::TERM).expect("it lives");
    wait_for_close(client);
    let program = format!("/proc/{master}/exe");
    wait_until("the end of the master", || std::fs::read_link(&program).is_err());
}

#[test]
fn commands_are_for_the_master_or_for_a_worker() {
    let service = Service::start("    stats socket FOLDER/api level admin");
    let (master, worker) = (service.running.id(), service.worker());
    let number = |answer: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix("Pid: "));
        line.and_then(|pid| pid.parse::<u32>().ok()).unwrap_or_else(|| panic!("{answer}"))
    };
    assert_eq!(number(&service.ask("@1 show info")), worker);
    assert_eq!(number(&service.ask(&format!("@!{worker} show info"))), worker);
    assert_eq!(number(&service.ask("@1; show version; show info")), worker);
    assert!(service.ask("@1; @master; show proc").contains(&format!("\n{master} ")));
    assert!(!service.ask("show info").contains("Pid: "), "the master is no worker");
    assert_eq!(service.ask("@9 show info"), "Can't find the target PID matching the prefix '@9'\n");
    assert_eq!(service.ask("@!1 show info"), "Can't find the target PID matching the prefix '@!1'\n");
    assert_eq!(number(&service.ask("@@1 show version; show info")), worker);
    assert!(service.ask("user; reload").contains("Permission denied"));
    assert!(service.ask("prompt; @1").contains(&format!("{worker}> ")));
    assert_eq!(number(&service.ask("expert-mode on; @1 show info")), worker);
    let socket = format!("HAPROXY_MASTER_CLI=unix@{}/master\n", service.folder.text());
    assert!(service.ask("show env HAPROXY_MASTER_CLI").starts_with(&socket));
    assert!(service.ask("@1 show env HAPROXY_MWORKER").starts_with("HAPROXY_MWORKER=1\n"));
    let socket = format!("HAPROXY_CLI=unix@{}/api\n", service.folder.text());
    assert!(service.ask("@1 show env HAPROXY_CLI").starts_with(&socket));
}

/// A connection to the master CLI, and the output received.
struct Conversation(UnixStream, String);

impl Conversation {
    fn begin(service: &Service) -> Self {
        let stream = crate::support::connect_unix(&service.folder.path("master"));
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self(stream, String::new())
    }

    fn types(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).expect("sent");
    }

    /// Reads until the output ends with `end`, and removes it.
    fn hears(&mut self, end: &str) -> String {
        let mut place = [0; 4096];
        while !self.1.ends_with(end) {
            let count = self.0.read(&mut place).unwrap_or_else(|error| panic!("{error}: {:?}", self.1));
            assert!(count > 0, "it ended behind {:?} instead of {end:?}", self.1);
            self.1.push_str(&String::from_utf8_lossy(&place[..count]));
        }
        std::mem::take(&mut self.1)
    }
}

#[test]
fn lines_follow_one_another_on_the_command_line_of_the_master() {
    let service = Service::start("");
    let worker = service.worker();
    let mut talk = Conversation::begin(&service);
    talk.types("show cli level\n");
    assert_eq!(talk.hears("\n\n"), "admin\n\n");
    talk.types("expert-mode on; @1 expert-mode\n");
    assert_eq!(talk.hears("\n\n"), "expert-mode is ON\n\n", "a setting answers nothing here");
    talk.types("show proc nonsense\n");
    assert_eq!(talk.hears("\n\n"), "'show proc' only supports 'debug' as argument\n\n");
    talk.types("@@9 show version\n");
    assert_eq!(talk.hears("'@@9'\n"), "Can't find the target PID matching the prefix '@@9'\n");
    assert!(service.ask("prompt n").starts_with("Usage: prompt [help | i | p | timed]*\n"), "it is always interactive");
    talk.types("prompt timed\n");
    let shown = talk.hears("] master(e)> ");
    assert!(shown.starts_with("[0:00:00:"), "{shown}");
    talk.types("@1\n");
    talk.hears(&format!("] {worker}(e)> "));
    talk.types("prompt timed; prompt i; user; set weight a/b 1\n");
    assert_eq!(talk.hears("\n\n"), "Permission denied\n\n", "rights that were given up are not those of the worker");
    talk.types("quit\n");
    assert_eq!(talk.0.read(&mut [0; 8]).expect("an end"), 0);
}

#[test]
fn a_session_is_handed_over_to_a_worker() {
    let service = Service::start("");
    let mut talk = Conversation::begin(&service);
    talk.types("prompt\n");
    assert_eq!(talk.hears("master> "), "master> ");
    // Two lines at once: the rest after the first is for the worker, which has the same prompt.
    talk.types("@@1\nset severity-output number\n");
    assert_eq!(talk.hears("> \n> "), "> \n> ");
    talk.types("get weight a/b; show cli level\n");
    assert_eq!(talk.hears("[6]: admin\n\n> "), "[3]: No such backend.\n\n[6]: admin\n\n> ", "the worker remembers");
    talk.types("quit\n");
    assert_eq!(talk.hears("master> "), "master> ");
    talk.types("show cli level\n");
    assert_eq!(talk.hears("master> "), "admin\n\nmaster> ", "the master is back");
    // Input ends a command that watches.
    talk.types("@@1 show events buf0 -wn; echo over\n");
    talk.types("x\n");
    assert_eq!(talk.hears("master> "), "\nover\n\nmaster> ");
    talk.types("operator; @@1 show cli level\n");
    assert_eq!(talk.hears("master> "), "operator\n\nmaster> ");
}
