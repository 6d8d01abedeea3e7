//! `weir ctl` with the sockets of Weir, and of HAProxy if installed.

use crate::support::{Folder, Running, WEIR, connect_unix, run, wait_until};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const HAPROXY: &str = "/usr/sbin/haproxy";

const SITE: &str = include_str!("../process/site.pem");
pub const OTHER: &str = include_str!("../process/other.pem");

const CONFIGURATION: &str = "global
    stats socket [folder]/user level user
    stats socket [folder]/stats level admin
defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 20s
frontend www
    bind unix@[folder]/front ssl crt [folder]/site.pem
    use_backend %[path,map([folder]/paths.map)]
    default_backend app
backend app
    stick-table type ip size 100 expire 1h store gpc0
    server s1 unix@[folder]/front weight 10
    server s2 unix@[folder]/front weight 20 disabled
";

/// A process that serves, and its folder.
pub struct Subject {
    pub folder: Folder,
    _running: Running,
}

/// Result of a call.
struct Called {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Subject {
    /// Starts a process and waits for its sockets.
    pub fn start(program: &str, flags: &[&str]) -> Self {
        let folder = Folder::new();
        folder.write("site.pem", SITE);
        folder.write("paths.map", "/a app\n");
        let file = folder.write("ctl.cfg", &CONFIGURATION.replace("[folder]", folder.text()));
        let flags: Vec<String> = flags.iter().map(|flag| flag.replace("[folder]", folder.text())).collect();
        let running = Running::start(Command::new(program).args(flags).args(["-f", &file]));
        drop(connect_unix(&folder.path("stats")));
        drop(connect_unix(&folder.path("user")));
        Self { folder, _running: running }
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path(name).display().to_string()
    }

    /// Calls the client with the socket of that name.
    fn call(&self, socket: &str, words: &[&str], input: &str) -> Called {
        let mut all = vec!["-s".to_owned(), self.path(socket)];
        all.extend(words.iter().map(|word| (*word).to_owned()));
        call(&all, input)
    }

    /// Calls the client and returns the output of a success.
    pub fn ask(&self, words: &[&str]) -> String {
        let called = self.call("stats", words, "");
        assert_eq!((called.status, called.stderr.as_str()), (Some(0), ""), "{words:?}: {}", called.stdout);
        called.stdout
    }

    /// Calls the client and returns the JSON document.
    fn json(&self, words: &[&str]) -> Value {
        let text = self.ask(&[&["-j"], words].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

fn call<S: AsRef<std::ffi::OsStr>>(words: &[S], input: &str) -> Called {
    let mut command = Command::new(WEIR);
    command.arg("ctl").args(words).env_remove("WEIR_SOCKET").env_remove("HAPROXY_MASTER_CLI");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // A call that needs no input may have ended.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Called { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Calls a test with Weir, and with HAProxy if it is installed.
fn with_each(flags: &[&str], test: impl Fn(&Subject)) {
    test(&Subject::start(WEIR, flags));
    if Path::new(HAPROXY).exists() {
        test(&Subject::start(HAPROXY, flags));
    } else {
        eprintln!("SKIPPED: {HAPROXY} is not installed");
    }
}

#[test]
fn answers_are_printed_and_errors_have_a_status() {
    with_each(&["-db"], |subject| {
        let info = subject.ask(&["show", "info"]);
        assert!(info.starts_with("Name: ") && info.contains("\nPid: ") && !info.ends_with("\n\n"), "{info}");
        assert_eq!(subject.ask(&["set", "server", "app/s1", "state", "drain"]), "");
        assert_eq!(subject.ask(&["get weight app/s1"]), "10 (initial 10)\n");
        let rows = [
            ("stats", "set server app/none state drain", "No such server.\n"),
            ("stats", "get weight none/s1", "No such backend.\n"),
            ("user", "disable server app/s1", "Permission denied\n"),
            ("stats", "shw info", "Unknown command"),
        ];
        for (socket, line, wanted) in rows {
            let called = subject.call(socket, &[line], "");
            assert_eq!((called.status, called.stdout.as_str()), (Some(1), ""), "{line}");
            assert!(called.stderr.starts_with(wanted), "{line}: {}", called.stderr);
        }
        // Two commands, the second of which is unknown: the first is answered.
        let called = subject.call("stats", &["get weight app/s1; shw info"], "");
        assert_eq!((called.status, called.stdout.as_str()), (Some(1), "10 (initial 10)\n"));
    });
}

#[test]
fn commands_are_read_from_a_text() {
    with_each(&["-db"], |subject| {
        let text = "# a comment\n\nget weight app/s1\nget weight none/s1\nget weight app/s2; quit\nget weight app/s1\n";
        let called = subject.call("stats", &[], text);
        assert_eq!((called.status, called.stdout.as_str()), (Some(1), "10 (initial 10)\n"));
        let called = subject.call("stats", &["-k"], text);
        assert_eq!((called.status, called.stdout.as_str()), (Some(1), "10 (initial 10)\n20 (initial 20)\n"));
        assert_eq!(called.stderr, "No such backend.\n");
        // A level that a command has set holds for the later ones.
        let called = subject.call("stats", &[], "user\ndisable server app/s1\n");
        assert_eq!((called.status, called.stderr.as_str()), (Some(1), "Permission denied\n"));
    });
}

#[test]
fn payloads_come_from_files_and_texts() {
    with_each(&["-db"], |subject| {
        let map = subject.path("paths.map");
        let get = |key: &str| subject.ask(&["get", "map", &map, key]);
        let called = subject.call("stats", &["add", "map", &map, "<<"], "/b app\n/c app\n");
        assert_eq!((called.status, called.stderr.as_str()), (Some(0), ""), "{}", called.stdout);
        assert!(get("/c").contains("found=yes"), "{}", get("/c"));
        let script = format!("add map {map} <<\n/d app\n\nget map {map} /d\n");
        let called = subject.call("stats", &[], &script);
        assert!(called.status == Some(0) && called.stdout.contains("found=yes"), "{}", called.stdout);
        let file = subject.folder.write("more", "/e app\n");
        assert_eq!(subject.ask(&["--payload", &file, "add", "map", &map]), "");
        assert!(get("/e").contains("found=yes"), "{}", get("/e"));

        // A certificate is exchanged in one call, or not at all.
        let site = subject.path("site.pem");
        let exchange = format!("set ssl cert {site} <<; commit ssl cert {site}");
        let called = subject.call("stats", &[&exchange], "no certificate\n");
        assert_eq!(called.status, Some(1), "{}{}", called.stdout, called.stderr);
        let called = subject.call("stats", &[&exchange], &OTHER.replace("-----\n", "-----\n\n"));
        assert!(
            called.status == Some(0) && called.stdout.ends_with("Success!\n"),
            "{}{}",
            called.stdout,
            called.stderr
        );
        let shown = subject.ask(&["show", "ssl", "cert", &site]);
        assert!(shown.contains("CN=other.example"), "{shown}");
        // The transaction has ended.
        assert_eq!(subject.call("stats", &["commit", "ssl", "cert", &site], "").status, Some(1));
    });
}

#[test]
fn answers_are_converted_to_json() {
    with_each(&["-db"], |subject| {
        let stat = subject.json(&["show", "stat"]);
        assert!(stat[0].is_array() && stat.to_string().contains("\"BACKEND\""), "{stat}");
        assert!(subject.json(&["show", "info"]).is_array());
        let servers = subject.json(&["show", "servers", "state"]);
        let names: Vec<&Value> = servers.as_array().expect("rows").iter().map(|row| &row["srv_name"]).collect();
        assert_eq!(names, ["s1", "s2"], "{servers}");
        assert_eq!(servers[1]["srv_uweight"], 20, "{servers}");
        assert_eq!(subject.json(&["show", "backend"])[0]["name"], "app");
        assert_eq!(subject.json(&["set table app key 192.0.2.1 data.gpc0 7"])["answer"], "");
        let tables = subject.json(&["show", "table"]);
        assert_eq!((&tables[0]["name"], &tables[0]["used"]), (&"app".into(), &1.into()), "{tables}");
        let entries = subject.json(&["show", "table", "app"]);
        assert_eq!((&entries[0]["key"], &entries[0]["gpc0"]), (&"192.0.2.1".into(), &7.into()), "{entries}");
        assert_eq!(subject.json(&["clear table app"])["answer"], "");
        assert_eq!(subject.json(&["show", "table", "app"]), Value::Array(Vec::new()));
        let called = subject.call("stats", &["-j", "show table none"], "");
        assert_eq!((called.status, called.stdout.as_str()), (Some(1), "{\"error\":\"No such table\"}\n"));
    });
}

#[test]
fn a_command_is_repeated() {
    let subject = Subject::start(WEIR, &["-db"]);
    let shown = subject.ask(&["-w", "0.1", "--count", "3", "get", "weight", "app/s1"]);
    assert_eq!(shown, "10 (initial 10)\n\n10 (initial 10)\n\n10 (initial 10)\n");
    let called = subject.call("stats", &["-w", "0.1", "get", "weight", "none/s1"], "");
    assert_eq!((called.status, called.stderr.as_str()), (Some(1), "No such backend.\n"));
}

#[test]
fn the_socket_is_found() {
    let subject = Subject::start(WEIR, &["-db"]);
    let found = call(&["-f", &subject.path("ctl.cfg"), "show", "cli", "level"], "");
    assert_eq!((found.status, found.stdout.as_str()), (Some(0), "admin\n"), "{}", found.stderr);
    let mut command = Command::new(WEIR);
    command.args(["ctl", "show", "cli", "level"]).env("WEIR_SOCKET", subject.folder.path("user"));
    let found = run(&mut command);
    assert_eq!((found.code(), found.stdout.as_str()), (Some(0), "user\n"), "{}", found.stderr);
    let none = call(&["-s", "/nowhere/at/all.sock", "show", "info"], "");
    assert_eq!(none.status, Some(2));
    assert!(none.stderr.starts_with("weir ctl: /nowhere/at/all.sock: No such file"), "{}", none.stderr);
    let none = call(&["-f", &subject.folder.write("none.cfg", "global\n"), "show", "info"], "");
    assert_eq!(none.status, Some(2), "{}", none.stderr);
    assert_eq!(call(&["--what"], "").status, Some(2));
    let help = call(&["--help"], "");
    assert!(help.status == Some(0) && help.stdout.contains("--payload FILE"));
}

/// A process that accepts and never answers, and one that closes at once.
#[test]
fn a_process_that_does_not_answer_is_reported() {
    let folder = Folder::new();
    let path = folder.path("silent");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("free");
    let path = path.display().to_string();
    let called = call(&["-s", &path, "-t", "0.1", "show", "info"], "");
    assert_eq!((called.status, called.stdout.as_str()), (Some(2), ""));
    assert!(called.stderr.contains("no answer within 0.1 s"), "{}", called.stderr);
    let closing = std::thread::spawn(move || {
        // The first connection is that of the call before.
        for stream in listener.incoming().take(2) {
            drop(stream);
        }
    });
    let called = call(&["-s", &path, "show", "info"], "");
    assert_eq!((called.status, called.stdout.as_str()), (Some(2), ""), "{}", called.stderr);
    closing.join().expect("no panic");
}

#[test]
fn a_master_passes_commands_on() {
    with_each(&["-W", "-db", "-S", "[folder]/master"], |subject| {
        drop(connect_unix(&subject.folder.path("master")));
        let master = subject.path("master");
        let ask = |words: &[&str]| call(&[&["-S", master.as_str()], words].concat(), "");
        wait_until("a worker", || ask(&["@1", "show", "info"]).status == Some(0));
        let processes = ask(&["-j", "show", "proc"]);
        let processes: Value = serde_json::from_str(&processes.stdout).expect("JSON");
        let worker = processes.as_array().expect("rows").iter().find(|row| row["type"] == "worker");
        let worker = worker.unwrap_or_else(|| panic!("{processes}"))["pid"].to_string();
        let of_worker = ask(&["-m", "show", "info"]);
        assert!(of_worker.stdout.contains(&format!("\nPid: {worker}\n")), "{}", of_worker.stdout);
        let by_number = ask(&[&format!("@!{worker} get weight app/s1; @1 get weight app/s2")]);
        assert_eq!((by_number.status, by_number.stdout.as_str()), (Some(0), "10 (initial 10)\n20 (initial 20)\n"));
        let of_all = ask(&["@*", "get", "weight", "app/s1"]);
        assert_eq!(of_all.stdout, format!("@!{worker}\n10 (initial 10)\n"), "{}", of_all.stderr);
        let of_all = ask(&["-j", "@*", "get", "weight", "app/s1"]);
        assert_eq!(of_all.stdout, format!("{{\"process\":{worker},\"answer\":{{\"answer\":\"10 (initial 10)\"}}}}\n"));
        // A target holds until the next one.
        let called = call(&["-S", &master], "@1\nget weight app/s1\n@\nshow proc\n");
        assert!(called.stdout.starts_with("10 (initial 10)\n#<PID>"), "{}{}", called.stdout, called.stderr);
        let map = subject.path("paths.map");
        let called = call(&["-S", &master, "-m", "add", "map", &map, "<<"], "/b app\n");
        assert_eq!((called.status, called.stdout.as_str()), (Some(0), ""), "{}", called.stderr);
        for line in ["@1 get weight none/s1", "@99 show info", "@1 shw info", "shw proc"] {
            let called = ask(&[line]);
            assert_eq!((called.status, called.stdout.as_str()), (Some(1), ""), "{line}: {}", called.stderr);
        }
    });
}
