//! External checks: arguments, exit status, and no processes left.

use crate::support::{DEFAULTS, Folder, Running, WEIR, free_port, line, pid, wait_until};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

const ALLOWED: &str = "global\n    external-check\n    insecure-fork-wanted\n";

/// Writes an executable script.
fn script(folder: &Folder, name: &str, body: &str) -> String {
    let path = folder.write(name, &format!("#!/bin/sh\n{body}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("own file");
    path
}

/// A `listen` section whose server is checked by the command at once, then every hour.
fn checked(port: u16, command: &str, more: &str) -> String {
    format!(
        "{DEFAULTS}    log stdout format raw daemon\nlisten l\n    bind 127.0.0.1:{port}\n    option external-check\n    \
         option log-health-checks\n    external-check command {command}\n    external-check path /usr/bin:/bin\n    \
         server s1 127.0.0.1:7 id 5 check inter 1h maxconn 9 {more}\n"
    )
}

fn told(running: &mut Running) -> String {
    let line = running.wait_for_line(|line| line.starts_with("Health check for server l/s1 "));
    let (before, after) = line.trim_end().split_once("check duration: ").expect("a duration");
    format!("{before}{}", after.split_once("ms").expect("milliseconds").1)
}

#[test]
fn a_program_is_told_of_its_server_and_of_nothing_else() {
    let folder = Folder::new();
    let out = folder.path("told").display().to_string();
    let body =
        format!("{{ echo \"$*\"; env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= | sort; }} > {out}.new; mv {out}.new {out}");
    let command = script(&folder, "tell.sh", &body);
    for mode in [&["-db"][..], &["-W"][..]] {
        let port = free_port();
        let file = folder.write("told.cfg", &format!("{ALLOWED}    setenv SECRET x\n{}", checked(port, &command, "")));
        let mut running = Running::start(Command::new(WEIR).args(mode).args(["-f", &file]));
        let expected =
            "Health check for server l/s1 succeeded, reason: External check passed, code: 0, , status: 1/2 DOWN.";
        assert_eq!(told(&mut running), expected);
        let expected = format!(
            "127.0.0.1 {port} 127.0.0.1 7\nHAPROXY_PROXY_ADDR=127.0.0.1\nHAPROXY_PROXY_ID=2\nHAPROXY_PROXY_NAME=l\n\
             HAPROXY_PROXY_PORT={port}\nHAPROXY_SERVER_ADDR=127.0.0.1\nHAPROXY_SERVER_CURCONN=0\nHAPROXY_SERVER_ID=5\n\
             HAPROXY_SERVER_MAXCONN=9\nHAPROXY_SERVER_NAME=s1\nHAPROXY_SERVER_PORT=7\nHAPROXY_SERVER_PROTO=h1\n\
             HAPROXY_SERVER_SSL=0\nPATH=/usr/bin:/bin\n"
        );
        assert_eq!(fs::read_to_string(&out).expect("the program wrote it"), expected, "{mode:?}");
        fs::remove_file(&out).expect("own file");
        running.send(Signal::TERM);
        running.finish();
    }
}

#[test]
fn the_environment_is_kept_where_that_is_asked_for() {
    let folder = Folder::new();
    let global = "global\n    external-check preserve-env\n    insecure-fork-wanted\n    setenv OWN x\n    setenv \
                  HAPROXY_SERVER_NAME no\n";
    let command = script(&folder, "kept.sh", "[ \"$OWN $HAPROXY_SERVER_NAME\" = 'x s1' ]");
    let file = folder.write("kept.cfg", &format!("{global}{}", checked(free_port(), &command, "")));
    let mut running = Running::weir(&["-db", "-f", &file]);
    assert!(told(&mut running).contains("succeeded, reason: External check passed, code: 0"));
}

#[test]
fn the_end_of_a_program_is_the_result() {
    let folder = Folder::new();
    let killed = script(&folder, "killed.sh", "kill -9 $$");
    let failed = script(&folder, "failed.sh", "exit 3");
    let none = folder.path("none").display().to_string();
    let no_program = folder.write("no-program", "text");
    for (command, code) in [(&*failed, 3), (&killed, -1), ("false", 1), (&none, 255), (&no_program, 255)] {
        let file = folder.write("end.cfg", &format!("{ALLOWED}{}", checked(free_port(), command, "")));
        let mut running = Running::weir(&["-db", "-f", &file]);
        if code == 255 {
            let why = if command == none { "No such file or directory" } else { "Permission denied" };
            let said = running.wait_for_line(|line| line.starts_with("Failed to exec"));
            assert_eq!(said, format!("Failed to exec process for external health check: {why}. Aborting.\n"));
        }
        let expected = format!(
            "Health check for server l/s1 failed, reason: External check error, code: {code}, , status: 0/2 DOWN."
        );
        assert_eq!(told(&mut running), expected, "{command}");
    }
}

#[test]
fn a_program_that_hangs_ends_with_all_that_it_has_started() {
    let folder = Folder::new();
    let [own, other] = ["own", "other"].map(|name| folder.path(name).display().to_string());
    // It ignores SIGTERM, and so does its child.
    let body = format!("trap '' TERM\nsleep 3600 &\necho $! > {other}\necho $$ > {own}\nwait\nsleep 3600");
    let command = script(&folder, "hang.sh", &body);
    let file = folder.write("hang.cfg", &format!("{ALLOWED}{}", checked(free_port(), &command, "inter 300ms")));
    let mut running = Running::weir(&["-db", "-f", &file]);
    let expected = "Health check for server l/s1 failed, reason: External check timeout, code: 0, , status: 0/2 DOWN.";
    assert_eq!(told(&mut running), expected);
    for file in [own, other] {
        let Ok(number) = fs::read_to_string(&file) else { continue };
        wait_until("it ends", || !lives(number.trim()));
    }
    // The next check may have begun: an ended process is a zombie until it is reaped, but none stays one.
    let left = zombies(running.id());
    wait_until("zombies are reaped", || zombies(running.id()).iter().all(|number| !left.contains(number)));
}

/// Returns the children of a process that have ended and were not reaped.
fn zombies(of: u32) -> Vec<String> {
    let numbers = fs::read_dir("/proc").expect("a system with processes").flatten();
    let stats = numbers.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter_map(|stat| {
            let (number, rest) = stat.split_once(' ')?;
            let mut fields = rest.rsplit_once(") ")?.1.split(' ');
            let (state, parent) = (fields.next()?, fields.next()?);
            (state == "Z" && parent == of.to_string()).then(|| number.to_owned())
        })
        .collect()
}

#[test]
fn programs_end_with_a_soft_stop() {
    let folder = Folder::new();
    let own = folder.path("own").display().to_string();
    let command = script(&folder, "long.sh", &format!("echo $$ > {own}.new; mv {own}.new {own}; exec sleep 3600"));
    let file = folder.write("long.cfg", &format!("{ALLOWED}{}", checked(free_port(), &command, "")));
    let running = Running::weir(&["-db", "-f", &file]);
    wait_until("it runs", || fs::exists(&own).unwrap_or(false));
    running.send(Signal::USR1);
    let number = fs::read_to_string(&own).expect("it was there");
    running.finish();
    wait_until("it ends", || !lives(number.trim()));
}

/// The process is killed during two checks that hang, one of them with a child of its own.
#[test]
fn programs_end_with_a_process_that_is_killed() {
    let folder = Folder::new();
    let [own, other] = ["own", "other"].map(|name| folder.path(name).display().to_string());
    let body = format!("sleep 3600 &\necho $! > {other}\necho $$ > {own}.new; mv {own}.new {own}\nwait\nsleep 3600");
    let command = script(&folder, "hang.sh", &body);
    for mode in [&["-db"][..], &["-W"][..]] {
        let file = folder.write("killed.cfg", &format!("{ALLOWED}{}", checked(free_port(), &command, "")));
        let running = Running::start(Command::new(WEIR).args(mode).args(["-f", &file]));
        wait_until("the program runs", || fs::exists(&own).unwrap_or(false));
        let started = [&own, &other].map(|file| fs::read_to_string(file).expect("it was written"));
        let parent = parent(started[0].trim());
        kill_process(pid(parent.parse().expect("a number")), Signal::KILL).expect("it lives");
        for number in started {
            wait_until("the program ends", || !lives(number.trim()));
        }
        fs::remove_file(&own).expect("own file");
        drop(running);
    }
}

/// Whether a process is running. A zombie does not count: it may not be our child to reap.
fn lives(number: &str) -> bool {
    fs::read_to_string(format!("/proc/{number}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Returns the process id of the parent.
fn parent(number: &str) -> String {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).expect("it lives");
    let behind = stat.rsplit_once(") ").expect("a name").1;
    behind.split(' ').nth(1).expect("a parent").to_owned()
}

#[test]
fn nothing_is_run_without_permission() {
    let folder = Folder::new();
    let out = folder.path("ran").display().to_string();
    let command = script(&folder, "run.sh", &format!("touch {out}"));
    let file = folder.write("no.cfg", &format!("global\n    external-check\n{}", checked(free_port(), &command, "")));
    let warning = "Proxy 'l' : 'insecure-fork-wanted' not enabled in the global section, 'option external-check' will \
                   likely fail.";
    assert!(line(&format!("-c -f {file}")).stderr.contains(warning));
    let mut running = Running::weir(&["-db", "-f", &file]);
    let said = running.wait_for_line(|line| line.starts_with("Failed to fork"));
    let why = "process for external health check (likely caused by missing 'insecure-fork-wanted'): Resource \
               temporarily unavailable. Aborting.\n";
    assert_eq!(said, format!("Failed to fork {why}"));
    let expected = "Health check for server l/s1 failed, reason: Socket error, info: \"Resource temporarily \
                    unavailable\", , status: 0/2 DOWN.";
    assert_eq!(told(&mut running), expected);
    assert!(!fs::exists(&out).expect("own folder"));
}

#[test]
fn what_is_missing_is_told() {
    let folder = Folder::new();
    let body = checked(1, "/bin/true", "");
    let without = body.replace("    external-check command /bin/true\n", "");
    for (global, body, what) in [
        ("global\n    insecure-fork-wanted\n", &body, "global.external-check"),
        (ALLOWED, &without, "external-check command"),
    ] {
        let found = line(&format!("-c -f {}", folder.write("missing.cfg", &format!("{global}{body}"))));
        assert_eq!(found.code(), Some(1));
        let expected = format!("Proxy 'l' : 'option external-check' unable to find required '{what}'.");
        assert!(found.stderr.contains(&expected), "{}", found.stderr);
    }
}
