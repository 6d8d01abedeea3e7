//! Privileges that the process drops before it serves. Most tests need root; without it they report so and pass.

use crate::support::{DEFAULTS, Folder, Running, connect, exchange, free_port, get, weir};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

/// Starts a process with these lines in `global`, and sends it a request.
fn serving(folder: &Folder, global: &str) -> Running {
    let port = free_port();
    let lonely = format!("frontend web\n    bind 127.0.0.1:{port}\n    default_backend none\nbackend none\n");
    let file = folder.write("rights.cfg", &format!("global\n{global}\n{DEFAULTS}{lonely}"));
    let running = Running::weir(&["-db", "-f", &file]);
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 503);
    running
}

fn status(running: &Running, field: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{}/status", running.id())).expect("it lives");
    let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
    line.trim_start_matches(':').split_whitespace().collect::<Vec<_>>().join(" ")
}

#[allow(clippy::print_stderr, reason = "whoever reads the tests' output has to know what was left out")]
fn is_superuser() -> bool {
    let is = rustix::process::geteuid().is_root();
    if !is {
        eprintln!("skipped: only the superuser can give up being it");
    }
    is
}

#[test]
fn user_group_and_capabilities_are_given_up_and_the_jail_is_empty() {
    if !is_superuser() {
        return;
    }
    let folder = Folder::new();
    let running = serving(&folder, "    uid 12345\n    gid 23456\n    setcap cap_net_raw\n    chroot auto");
    assert_eq!(status(&running, "Uid"), "12345 12345 12345 12345");
    assert_eq!(status(&running, "Gid"), "23456 23456 23456 23456");
    assert_eq!(status(&running, "Groups"), "");
    assert_eq!(status(&running, "CapPrm"), format!("{:016x}", 1 << 13));
    assert_eq!(status(&running, "CapEff"), format!("{:016x}", 1 << 13));
    let root = std::fs::read_link(format!("/proc/{}/root", running.id())).expect("a root");
    assert!(root.to_string_lossy().ends_with("(deleted)"), "{root:?}");
}

#[test]
fn without_capabilities_a_new_user_has_none() {
    if !is_superuser() {
        return;
    }
    let folder = Folder::new();
    let running = serving(&folder, "    uid 12345");
    assert_eq!(status(&running, "CapPrm"), "0000000000000000");
    assert_eq!(status(&running, "Groups"), "", "the groups of the superuser are left");
    let root = std::fs::read_link(format!("/proc/{}/root", running.id())).expect("a root");
    assert_eq!(root, Path::new("/"));
}

#[test]
fn the_jail_is_the_directory_that_is_named() {
    if !is_superuser() {
        return;
    }
    let folder = Folder::new();
    let running = serving(&folder, &format!("    chroot {}\n    user root", folder.text()));
    let root = std::fs::read_link(format!("/proc/{}/root", running.id())).expect("a root");
    assert_eq!(root, Path::new(folder.text()));
    let said = {
        running.send(rustix::process::Signal::TERM);
        running.finish()
    };
    assert!(!said.stderr.contains("[WARNING]"), "{}", said.stderr);
}

#[test]
fn a_jail_that_is_not_there_keeps_the_process_from_serving() {
    let folder = Folder::new();
    let port = free_port();
    let text =
        format!("global\n    chroot {}/none\n{DEFAULTS}frontend web\n    bind 127.0.0.1:{port}\n", folder.text());
    let file = folder.write("rights.cfg", &text);
    for flags in [&["-db"][..], &["-D"]] {
        let finished = weir([flags, &["-f", &file]].concat());
        assert_eq!(finished.code(), Some(1), "{flags:?}");
        assert!(finished.stderr.contains(&format!("Cannot chroot({}/none)", folder.text())), "{}", finished.stderr);
    }
}

#[test]
fn whoever_keeps_all_rights_is_told() {
    if !is_superuser() {
        return;
    }
    let folder = Folder::new();
    let running = serving(&folder, "");
    running.send(rustix::process::Signal::TERM);
    let said = running.finish().stderr;
    assert!(said.contains("without any 'chroot'") && said.contains("'user' nor 'uid'"), "{said}");
}

#[test]
fn threads_run_on_their_processors() {
    let folder = Folder::new();
    let running = serving(&folder, "    nbthread 1\n    cpu-map 1/all 0");
    assert_eq!(status(&running, "Cpus_allowed_list"), "0");
}

#[test]
fn memory_is_limited() {
    let folder = Folder::new();
    let port = free_port();
    let lonely = format!("frontend web\n    bind 127.0.0.1:{port}\n    default_backend none\nbackend none\n");
    let socket = folder.path("cli");
    let global = format!("global\n    stats socket {}\n", socket.display());
    let file = folder.write("memory.cfg", &format!("{global}{DEFAULTS}{lonely}"));
    let running = Running::weir(&["-db", "-m", "300", "-f", &file]);
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 503);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.id())).expect("it lives");
    let data = limits.lines().find(|line| line.starts_with("Max data size")).expect("a line");
    assert!(data.contains(&(300 << 20).to_string()), "{data}");
    let told = crate::crowd::command(socket.to_str().expect("text"), "show info\n");
    assert!(told.contains("\nMemmax_MB: 300\n") && told.contains("\nMemmax_bytes: 314572800\n"), "{told}");
}

#[test]
fn a_daemon_may_be_in_a_jail() {
    if !is_superuser() {
        return;
    }
    let folder = Folder::new();
    let port = free_port();
    let lonely = format!("frontend web\n    bind 127.0.0.1:{port}\n    default_backend none\nbackend none\n");
    let file = folder.write("daemon.cfg", &format!("global\n    chroot auto\n    uid 12345\n{DEFAULTS}{lonely}"));
    let pid_file = folder.path("pid");
    let started = weir(["-D", "-f", &file, "-p", pid_file.to_str().expect("text")]);
    assert_eq!(started.code(), Some(0), "{started:?}");
    let number = std::fs::read_to_string(&pid_file).expect("written").trim().parse().expect("a number");
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 503);
    rustix::process::kill_process(crate::support::pid(number), rustix::process::Signal::TERM).expect("it lives");
}

/// The features of this kernel are not known in advance; the test checks that the process reports what it obtained, and
/// that the kernel agrees.
#[test]
fn the_process_forbids_itself_what_it_does_not_need() {
    let folder = Folder::new();
    let mut lines = vec![("confine off", false), ("confine auto", true)];
    while let Some((line, confined)) = lines.pop() {
        let running = serving(&folder, &format!("    {line}"));
        assert_eq!(status(&running, "NoNewPrivs"), if confined { "1" } else { "0" }, "{line}");
        let filter = status(&running, "Seccomp");
        running.send(rustix::process::Signal::TERM);
        let said = running.finish().stderr;
        assert_eq!(said.contains("The process has forbidden itself"), confined, "{said}");
        let (told, refused) = said.split_once("not forbidden").unwrap_or((&said, ""));
        let filtered = told.contains("system calls that serving does not need");
        assert_eq!(filter == "2", filtered, "{filter}: {said}");
        // The filter costs time in every system call: it is installed if requested, or if landlock is missing.
        let free = told.contains("changes of the file system") && line == "confine auto";
        assert_eq!(filtered, confined && !free && !refused.contains("system calls"), "{said}");
        if free {
            lines.push(("confine strict", true));
        }
    }
}

#[test]
fn strict_confinement_takes_no_exception() {
    let folder = Folder::new();
    let port = free_port();
    let text = format!(
        "global\n    confine strict\n    insecure-fork-wanted\n{DEFAULTS}frontend web\n    bind 127.0.0.1:{port}\n"
    );
    let finished = weir(["-db", "-f", &folder.write("strict.cfg", &text)]);
    assert_eq!(finished.code(), Some(1));
    assert!(
        finished.stderr.contains("'confine strict' : cannot forbid changes of the file system"),
        "{}",
        finished.stderr
    );
}

#[test]
fn clients_with_a_privileged_port_are_not_served_where_that_is_asked_for() {
    if !is_superuser() {
        return;
    }
    let folder = Folder::new();
    for (line, served) in [("on", false), ("off", true)] {
        let port = free_port();
        let lonely = format!("frontend web\n    bind 127.0.0.1:{port}\n    default_backend none\nbackend none\n");
        let global = format!("global\n    harden.reject-privileged-ports.tcp {line}\n");
        let file = folder.write("ports.cfg", &format!("{global}{DEFAULTS}{lonely}"));
        let _running = Running::weir(&["-db", "-f", &file]);
        assert_eq!(exchange(&mut connect(port), &get("/")).0, 503, "others are served");
        let mut client = connect_privileged(port);
        if served {
            assert_eq!(exchange(&mut client, &get("/")).0, 503);
        } else {
            crate::support::wait_for_close(client);
        }
    }
}

/// Connects from a privileged port.
fn connect_privileged(to: u16) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, ipproto, socket};
    let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
    for from in 600..1024 {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP)).expect("a socket");
        if bind(&socket, &local(from)).is_ok() {
            connect(&socket, &local(to)).expect("somebody listens");
            let stream = TcpStream::from(socket);
            stream.set_read_timeout(Some(crate::support::PATIENCE)).expect("a socket");
            return stream;
        }
    }
    panic!("every privileged port is taken");
}

#[test]
fn descriptors_are_opened_in_advance_and_the_priority_is_set() {
    let folder = Folder::new();
    let running = serving(&folder, "    prealloc-fd\n    tune.renice.runtime 5\n    ulimit-n 3000\n    noreuseport");
    let slots: u64 = status(&running, "FDSize").parse().expect("a number");
    assert!(slots >= 3000, "{slots}");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", running.id())).expect("it lives");
    let nice = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(16)).expect("a field");
    assert_eq!(nice, "5");
}

#[test]
fn a_process_that_may_leave_a_core_may_make_files() {
    let folder = Folder::new();
    let running = serving(&folder, "    set-dumpable");
    running.send(rustix::process::Signal::TERM);
    let said = running.finish().stderr;
    assert!(said.contains("changes of the file system (the configuration asks for more)"), "{said}");
}
