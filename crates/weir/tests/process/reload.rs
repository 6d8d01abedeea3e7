//! Reloads in place (docs/reload.md): the worker and its connections stay.

use crate::support::{
    DEFAULTS, Folder, PATIENCE, Running, WEIR, connect, connect_unix, exchange, free_port, get, run, wait_until, weir,
};
use rustix::process::Signal;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::thread;

/// A service with a master that reloads in place; the test acts as its service manager.
pub struct Service {
    pub folder: Folder,
    running: Running,
    manager: UnixDatagram,
    pub port: u16,
}

impl Service {
    /// Starts a master with a worker that serves `sections`; PORT is replaced by the port.
    fn start(sections: &str) -> Self {
        Self::start_with("", sections, Folder::new())
    }

    /// The same, with additional lines for the section `global`.
    pub fn start_with(global: &str, sections: &str, folder: Folder) -> Self {
        let port = free_port();
        let manager = UnixDatagram::bind(folder.path("notify")).expect("free");
        manager.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let mut command = Command::new(WEIR);
        command.args(["-Ws", "-S"]).arg(folder.path("master")).arg("-f").arg(folder.path("service.cfg"));
        command.env("NOTIFY_SOCKET", folder.path("notify"));
        write(&folder, port, global, sections);
        let running = Running::start(&mut command);
        let service = Self { folder, running, manager, port };
        service.expect_news(&format!("READY=1\nMAINPID={}\n", service.running.id()));
        service
    }

    /// Writes the configuration for the next reload; `global` is added to that section.
    pub fn write(&self, global: &str, sections: &str) {
        write(&self.folder, self.port, global, sections);
    }

    fn expect_news(&self, start: &str) {
        let mut place = [0; 512];
        let count = self.manager.recv(&mut place).expect("news");
        let news = String::from_utf8_lossy(&place[..count]);
        assert!(news.starts_with(start), "{news} instead of {start}");
    }

    /// Returns the answer of the socket of that name.
    pub fn ask(&self, socket: &str, line: &str) -> String {
        let mut stream = connect_unix(&self.folder.path(socket));
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(format!("{line}\n").as_bytes()).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    pub fn worker(&self) -> u32 {
        let shown = self.ask("master", "show proc");
        let line = shown.lines().skip_while(|line| *line != "# workers").nth(1).unwrap_or_else(|| panic!("{shown}"));
        line.split(' ').next().and_then(|pid| pid.parse().ok()).unwrap_or_else(|| panic!("{shown}"))
    }

    pub fn reload(&self) -> String {
        self.ask("master", "reload")
    }

    pub fn is_answered_by(&self, client: &mut TcpStream, name: &str) {
        assert_eq!(exchange(client, &get("/")), (200, name.to_owned()));
    }
}

fn write(folder: &Folder, port: u16, global: &str, sections: &str) {
    let socket = format!("    stats socket {} level admin\n", folder.path("api").display());
    let global = format!("global\n    reload in-place\n{socket}{global}");
    let text = format!("{global}{DEFAULTS}{}", sections.replace("PORT", &port.to_string()));
    folder.write("service.cfg", &text);
}

/// A frontend that answers with its name.
pub fn named(name: &str) -> String {
    format!(
        "frontend web\n    bind 127.0.0.1:PORT\n    http-request return status 200 content-type text/plain string {name}\n"
    )
}

#[test]
fn the_worker_stays_and_so_do_its_connections() {
    let service = Service::start(&named("one"));
    let (master, worker) = (service.running.id(), service.worker());
    let mut kept = connect(service.port);
    service.is_answered_by(&mut kept, "one");
    service.write("    # another line\n", &named("two"));
    let answer = service.reload();
    assert!(answer.starts_with("Success=1\n--\n"), "{answer}");
    assert!(answer.contains(&format!("Reloaded in place ({worker})")), "{answer}");
    service.expect_news("RELOADING=1\n");
    service.expect_news(&format!("READY=1\nMAINPID={master}\n"));
    service.is_answered_by(&mut connect(service.port), "two");
    assert_eq!(exchange(&mut kept, &get("/")).0, 200);
    service.write("", &named("three"));
    service.running.send(Signal::USR2);
    service.expect_news("RELOADING=1\n");
    service.expect_news(&format!("READY=1\nMAINPID={master}\n"));
    service.is_answered_by(&mut connect(service.port), "three");
    assert_eq!(service.worker(), worker);
    assert!(service.ask("master", "show proc").contains("2 [failed: 0]"));
    // SIGHUP still requests a new worker.
    service.running.send(Signal::HUP);
    service.expect_news("RELOADING=1\n");
    service.expect_news(&format!("READY=1\nMAINPID={master}\n"));
    assert_ne!(service.worker(), worker);
    service.is_answered_by(&mut connect(service.port), "three");
}

#[test]
fn an_error_keeps_the_configuration_before_and_is_told_with_its_place() {
    let service = Service::start(&named("one"));
    let worker = service.worker();
    let mut kept = connect(service.port);
    service.write("", &named("two").replace("status 200", "status lots"));
    let answer = service.reload();
    assert!(answer.starts_with("Success=0\n--\n"), "{answer}");
    assert!(answer.contains("service.cfg:") && answer.contains("lots") && answer.contains("^"), "{answer}");
    service.expect_news("RELOADING=1\n");
    service.expect_news("READY=1\nSTATUS=Reload failed!\n");
    assert_eq!(service.worker(), worker);
    assert!(service.ask("master", "prompt").contains("master[ReloadFailed]> "));
    service.is_answered_by(&mut kept, "one");
    service.is_answered_by(&mut connect(service.port), "one");
    service.write("", &named("two"));
    assert!(service.reload().starts_with("Success=1\n"));
    assert_eq!(service.worker(), worker);
    service.is_answered_by(&mut connect(service.port), "two");
}

#[test]
fn what_cannot_be_done_in_place_starts_a_worker_and_tells_why() {
    let service = Service::start(&named("one"));
    let rows = [
        ("    tune.bufsize 20000\n", "bufsize of the process"),
        ("    nbthread 3\n", "the threads are different"),
        ("    setenv WHO me\n", "the environment is different ('setenv', 'presetenv' ...)"),
    ];
    for (global, why) in rows {
        let worker = service.worker();
        service.write(global, &named("two"));
        let answer = service.reload();
        assert!(answer.starts_with("Success=1\n--\n"), "{answer}");
        assert!(answer.contains("No reload in place: ") && answer.contains(why), "{answer}");
        assert_ne!(service.worker(), worker);
        // The previous worker may accept until it is signalled.
        wait_until("the new worker", || exchange(&mut connect(service.port), &get("/")) == (200, "two".to_owned()));
        service.write("", &named("one"));
        assert!(service.reload().starts_with("Success=1\n"));
    }
}

/// A frontend with servers that are named by their ports.
fn balanced(servers: &[(&str, u16)]) -> String {
    let head = "frontend web\n    bind 127.0.0.1:PORT\n    default_backend app\nbackend app\n    balance roundrobin\n";
    let lines = servers.iter().map(|(name, port)| format!("    server {name} 127.0.0.1:{port}\n"));
    head.to_owned() + &lines.collect::<String>()
}

#[test]
fn no_request_fails_while_servers_come_and_go() {
    let ports = [free_port(), free_port()];
    let _origins = ports.map(|port| {
        let running = Running::start(Command::new(WEIR).args(["origin", "-L", &format!("127.0.0.1:{port}")]));
        drop(connect(port));
        running
    });
    let [one, two] = ports;
    let rounds = [
        balanced(&[("s1", one), ("s2", two)]),
        balanced(&[("s2", two)]),
        balanced(&[("s2", two), ("s3", one)]).replace("balance", "retries 2\n    balance"),
        balanced(&[("s1", one), ("s2", two), ("s3", one)]),
        balanced(&[("s3", one)]),
    ];
    let service = Service::start(&rounds[0]);
    let worker = service.worker();
    let url = format!("http://127.0.0.1:{}/", service.port);
    let mut load = Running::start(Command::new(WEIR).args(["load", "-c", "8", "-r", "50", "-S", &url]));
    // One line per second: requests in the fourth column, errors in the sixth, responses by class in the last five.
    let columns = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let is_sound = |line: &str| {
        let columns = columns(line);
        line.starts_with('#') || [5, 10, 12, 13, 14].iter().all(|column| columns[*column] == "0")
    };
    let answered = |line: &str| if line.starts_with('#') { 0 } else { columns(line)[3].parse().unwrap_or(0_u64) };
    let wait_for_more = |load: &mut Running, than: u64| {
        let line = load.wait_for_line(|line| !is_sound(line) || answered(line) > than);
        assert!(is_sound(&line), "{line}");
        answered(&line)
    };
    let mut before = wait_for_more(&mut load, 0);
    for _ in 0..2 {
        for round in rounds.iter().cycle().skip(1).take(rounds.len()) {
            service.write("", round);
            let answer = service.reload();
            assert!(answer.starts_with("Success=1\n") && answer.contains("Reloaded in place"), "{answer}");
        }
        before = wait_for_more(&mut load, before);
    }
    load.send(Signal::INT);
    let found = load.finish();
    assert_eq!(found.code(), Some(0), "{}{}", found.stdout, found.stderr);
    assert!(found.stdout.lines().all(is_sound), "{}", found.stdout);
    assert_eq!(service.worker(), worker);
}

#[test]
fn a_command_asks_for_a_reload_and_prints_what_is_said() {
    let service = Service::start(&named("one"));
    let master = service.folder.path("master");
    let reload = || run(Command::new(WEIR).args(["reload", "-S"]).arg(&master));
    service.write("", &named("two"));
    let found = reload();
    assert_eq!(found.code(), Some(0), "{}{}", found.stdout, found.stderr);
    assert!(
        found.stdout.contains("Reloaded in place") && found.stdout.contains("rules of proxy web"),
        "{}",
        found.stdout
    );
    service.is_answered_by(&mut connect(service.port), "two");
    service.write("", "frontend web\n    bing 127.0.0.1:PORT\n");
    let found = reload();
    assert_eq!(found.code(), Some(1), "{}{}", found.stdout, found.stderr);
    assert!(found.stdout.contains("unknown keyword 'bing'"), "{}", found.stdout);
    let found = run(Command::new(WEIR).args(["reload", "-S", "/nowhere/master"]));
    assert_eq!(found.code(), Some(2));
    let found = run(Command::new(WEIR).args(["reload"]).env_remove("HAPROXY_MASTER_CLI"));
    assert_eq!(found.code(), Some(2));
}

#[test]
fn what_differs_between_configurations_is_named() {
    let folder = Folder::new();
    let file = |name: &str, global: &str, sections: &str| {
        let text = format!("global\n    reload in-place\n{global}{DEFAULTS}{}", sections.replace("PORT", "1"));
        folder.write(name, &text)
    };
    let old = file("old.cfg", "", &balanced(&[("s1", 1), ("s2", 2)]));
    let same = file("same.cfg", "    # nothing\n", &balanced(&[("s1", 1), ("s2", 2)]));
    let servers = file("servers.cfg", "", &balanced(&[("s2", 2), ("s3", 3)]));
    let bufsize = file("bufsize.cfg", "    tune.bufsize 20000\n", &balanced(&[("s1", 1), ("s2", 2)]));
    let denying = format!("{}    http-request deny\n", balanced(&[("s1", 1), ("s2", 2)]));
    let rules = "    http-request deny if { path /x }\n    use-server s1 if { path /y }\n    stick on src table app\n    stick-table type ip size 1\n";
    let ruled = balanced(&[("s1", 1), ("s2", 2)]) + rules;
    let ruled_old = file("ruled.cfg", "", &ruled);
    let ruled_below = file("below.cfg", "    # all rules are one line lower\n", &ruled);
    let listening = file("listen.cfg", "", &balanced(&[("s1", 1), ("s2", 2)]).replace("frontend web", "listen web"));
    let weighted = file("weighted.cfg", "", &balanced(&[("s1", 1), ("s2", 2)]).replace(":1\n", ":1 weight 30\n"));
    let spelled = file("spelled.cfg", "", &balanced(&[("s1", 1), ("s2", 2)]));
    let text = std::fs::read_to_string(&spelled).expect("written").replace("client 100s", "client 100000ms");
    std::fs::write(&spelled, text).expect("written");
    let off = file("off.cfg", "    reload new-worker\n", &denying);
    let wrong = file("wrong.cfg", "    nonsense\n", "");
    let in_place = "A reload can be done in place.\n";
    let rows = [
        (&old, &same, 0, "Nothing that is served differs.\n".to_owned()),
        (&old, &servers, 1, format!("server app/s1 removed\nserver app/s3 added\n{in_place}")),
        (&old, &weighted, 1, format!("server app/s1: weight 30 added\n{in_place}")),
        (
            &old,
            &bufsize,
            1,
            "global: tune.bufsize 20000 added\nA reload needs a new worker: bufsize of the process.\n".to_owned(),
        ),
        (
            &old,
            &off,
            1,
            "global: reload new-worker added (number 2)\nbackend app: http-request deny added\n\
             A reload needs a new worker: 'reload in-place' is not in the new configuration.\n"
                .to_owned(),
        ),
        (&old, &wrong, 2, String::new()),
        (&wrong, &old, 2, String::new()),
        (&ruled_old, &ruled_below, 0, "Nothing that is served differs.\n".to_owned()),
        (&old, &listening, 1, format!("frontend web removed (2 lines)\nlisten web added (2 lines)\n{in_place}")),
        (
            &old,
            &spelled,
            1,
            "defaults: timeout client 100s → 100000ms\nA reload changes nothing that is served.\n".to_owned(),
        ),
    ];
    for (old, new, code, text) in rows {
        let found = weir(["diff", old, new]);
        assert_eq!((found.code(), found.stdout), (Some(code), text), "{}", found.stderr);
        // Warnings and notices about the files are not those of a comparison.
        assert_eq!(found.stderr.is_empty(), code != 2, "{}", found.stderr);
    }
}

#[test]
fn addresses_come_and_go_in_place() {
    let service = Service::start(&named("one"));
    let worker = service.worker();
    let other = free_port();
    let mut kept = connect(service.port);
    service.is_answered_by(&mut kept, "one");
    let both = named("two").replace("PORT\n", &format!("PORT\n    bind 127.0.0.1:{other}\n"));
    service.write("", &both);
    let answer = service.reload();
    assert!(answer.contains(&format!("address 127.0.0.1:{other} of proxy web is added")), "{answer}");
    service.is_answered_by(&mut connect(other), "two");
    service.is_answered_by(&mut connect(service.port), "two");
    service.write("", &named("three").replace("PORT", &other.to_string()));
    let answer = service.reload();
    assert!(answer.contains("Reloaded in place"), "{answer}");
    wait_until("the end of the address", || TcpStream::connect(("127.0.0.1", service.port)).is_err());
    service.is_answered_by(&mut kept, "one");
    service.is_answered_by(&mut connect(other), "three");
    // If an address cannot be bound, a new worker is started, which cannot bind it either.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address");
    service.write("", &named("four").replace("127.0.0.1:PORT", &taken.to_string()));
    let answer = service.reload();
    assert!(answer.starts_with("Success=0\n") && answer.contains("cannot be bound"), "{answer}");
    service.is_answered_by(&mut connect(other), "three");
    assert!(service.ask("master", "show proc").contains(&format!("\n{worker} ")));
}

#[test]
fn proxies_come_go_and_change_their_order_in_place() {
    let back = |name: &str| {
        format!("backend {name}\n    http-request return status 200 content-type text/plain string {name}\n")
    };
    let web = "frontend web\n    bind 127.0.0.1:PORT\n    use_backend two if { path /two }\n    default_backend one\n";
    let service = Service::start(&format!("{web}{}{}", back("one"), back("two")));
    let worker = service.worker();
    let other = free_port();
    let mut kept = connect(service.port);
    service.is_answered_by(&mut kept, "one");
    let api = format!("frontend api\n    bind 127.0.0.1:{other}\n    default_backend three\n");
    service.write("", &format!("{api}{}{}{web}{}", back("three"), back("two"), back("one")));
    let answer = service.reload();
    assert!(answer.contains("proxy api is added, proxy three is added"), "{answer}");
    service.is_answered_by(&mut connect(other), "three");
    service.is_answered_by(&mut connect(service.port), "one");
    let web = web.replace("    use_backend two if { path /two }\n", "");
    service.write("", &format!("{web}{}", back("one")));
    let answer = service.reload();
    assert!(answer.contains("proxy api is removed") && answer.contains("proxy two is removed"), "{answer}");
    wait_until("the end of the address", || TcpStream::connect(("127.0.0.1", other)).is_err());
    assert_eq!(exchange(&mut kept, &get("/two")), (200, "two".to_owned()));
    // The same address in a frontend of another name: no connection is refused during the reload.
    service.write("", &format!("{}{}", web.replace("frontend web", "frontend www"), back("one")));
    let answer = service.reload();
    assert!(answer.contains("Reloaded in place") && answer.contains("proxy www is added"), "{answer}");
    service.is_answered_by(&mut connect(service.port), "one");
    assert_eq!(service.worker(), worker);
    let shown = service.ask("api", "show stat");
    assert!(shown.contains("\nwww,FRONTEND,") && !shown.contains("\nweb,"), "{shown}");
    // The same name, now also with a backend side.
    service.write("", &format!("{}{}", web.replace("frontend web", "listen www"), back("one")));
    let answer = service.reload();
    assert!(answer.contains("proxy www is removed") && answer.contains("proxy www is added"), "{answer}");
    service.is_answered_by(&mut connect(service.port), "one");
    assert_eq!(service.worker(), worker);
}

#[test]
fn traces_begin_and_end_with_the_sections_of_the_configuration() {
    let service = Service::start(&named("one"));
    let worker = service.worker();
    let source = |name: &str| {
        let shown = service.ask("api", "show trace");
        let line = shown.lines().find(|line| line.contains(&format!("] {name} "))).unwrap_or_else(|| panic!("{shown}"));
        line.trim_start().to_owned()
    };
    assert!(source("h1").starts_with("[.] h1         -> none"));
    service.write("", &format!("{}traces\n    trace h1 sink buf0 start now\n", named("one")));
    assert!(service.reload().contains("Reloaded in place"));
    assert!(source("h1").starts_with("[R] h1         -> buf0"));
    // Runtime changes are kept as long as the sections are unchanged.
    assert_eq!(service.ask("api", "trace h2 sink buf0 start now"), "\n");
    service.write("", &format!("{}traces\n    trace h1 sink buf0 start now\n", named("two")));
    assert!(service.reload().contains("Reloaded in place"));
    assert!(source("h1").starts_with("[R]") && source("h2").starts_with("[R]"));
    service.write("", &named("two"));
    assert!(service.reload().contains("Reloaded in place"));
    assert!(source("h1").starts_with("[.] h1         -> none") && source("h2").starts_with("[.]"));
    assert_eq!(service.worker(), worker);
}

/// Returns names and nice values of a process's threads (proc(5), `stat`).
fn nice_values(pid: u32) -> Vec<(String, i32)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a process").flatten();
    let stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    let read = |stat: String| {
        let (name, fields) = (stat.find('(')? + 1, stat.rfind(')')?);
        let nice = stat[fields + 1..].split_ascii_whitespace().nth(16)?.parse().ok()?;
        Some((stat[name..fields].to_owned(), nice))
    };
    stats.filter_map(read).collect()
}

#[test]
fn a_configuration_is_read_behind_what_is_served() {
    let service = Service::start(&named("one"));
    let worker = service.worker();
    let list = service.folder.path("list");
    assert!(Command::new("mkfifo").arg(&list).status().expect("mkfifo").success());
    let denying = format!("{}    http-request deny if {{ path -f {} }}\n", named("two"), list.display());
    service.write("", &denying);
    thread::scope(|scope| {
        let reload = scope.spawn(|| service.reload());
        // It can be opened for writing without blocking only if there is a reader: the reload has reached the list, and
        // waits for its contents.
        let open =
            || OpenOptions::new().write(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(&list);
        wait_until("a reader of the list", || open().is_ok());
        let threads = nice_values(worker);
        let of = |name: &str| threads.iter().find(|(known, _)| known.starts_with(name)).map(|(_, nice)| *nice);
        let serving = of("weir").unwrap_or_else(|| panic!("{threads:?}"));
        assert_eq!(of("reload"), Some((serving + 10).min(19)), "{threads:?}");
        service.is_answered_by(&mut connect(service.port), "one");
        wait_until("the end of the reload", || {
            let _ = open().and_then(|mut list| list.write_all(b"/denied\n"));
            reload.is_finished()
        });
        let answer = reload.join().expect("no panic");
        assert!(answer.contains(&format!("Reloaded in place ({worker})")), "{answer}");
    });
    service.is_answered_by(&mut connect(service.port), "two");
}
