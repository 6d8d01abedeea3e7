//! Checks with the protocol of a service, against the real servers: Redis, MariaDB, PostgreSQL, OpenSMTPD, OpenLDAP.
//! One that is not installed is skipped with a message.

use crate::support::{Folder, PATIENCE, Running, free_port};
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Returns the program of that name, in the usual folders of services.
pub fn program(name: &str) -> Option<String> {
    let mut places: Vec<_> = ["/usr/bin", "/usr/sbin", "/usr/local/bin"].iter().map(|place| (*place).into()).collect();
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        places.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let found = places.iter().map(|place: &std::path::PathBuf| place.join(name)).find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: {name} is not installed");
    }
    found.map(|path| path.display().to_string())
}

fn at(folder: &Folder, name: &str) -> String {
    folder.path(name).display().to_string()
}

/// Runs Weir with a check of a server on that port until it succeeds; returns its log line.
fn succeeds(option: &str, port: u16) -> String {
    reported(option, port, "succeeded")
}

/// Returns the first log line of a check with that outcome.
fn reported(option: &str, port: u16, outcome: &str) -> String {
    let log = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    log.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let folder = Folder::new();
    let config = folder.write(
        "weir.cfg",
        &format!(
            "frontend f\n bind {}\n timeout client 5s\nbackend b\n log {} local0\n option log-health-checks\n option {option}\n timeout connect 60s\n timeout server \
             60s\n timeout check 60s\n server s 127.0.0.1:{port} check inter 1s rise 1 fall 1\n",
            folder.path("socket").display(),
            log.local_addr().expect("an address")
        ),
    );
    let _weir = Running::weir(&["-f", &config]);
    let begun = Instant::now();
    let mut heard = Vec::new();
    while begun.elapsed() < PATIENCE {
        let mut line = [0; 2048];
        let Ok(length) = log.recv(&mut line) else { break };
        let line = String::from_utf8_lossy(&line[..length]).into_owned();
        if line.contains(&format!("Health check for server b/s {outcome}")) {
            return line;
        }
        heard.push(line);
    }
    panic!("option {option}: no check has {outcome}: {heard:?}");
}

/// The same, and checks the message.
fn assert_says(option: &str, port: u16, words: &str) {
    let line = succeeds(option, port);
    assert!(line.contains(words), "option {option}: {line}");
}

#[test]
fn redis() {
    let Some(program) = program("redis-server") else { return };
    let (folder, port) = (Folder::new(), free_port());
    let arguments = ["--bind", "127.0.0.1", "--save", "", "--dir", &at(&folder, ""), "--port", &port.to_string()];
    let _server = Running::start(Command::new(program).args(arguments));
    assert_says("redis-check", port, "info: \"Redis server is ok\"");
}

#[test]
fn ldap() {
    let Some(program) = program("slapd") else { return };
    let (folder, port) = (Folder::new(), free_port());
    let config = folder.write("slapd.conf", &format!("pidfile {}\ndatabase frontend\n", at(&folder, "slapd.pid")));
    let address = format!("ldap://127.0.0.1:{port}");
    let _server = Running::start(Command::new(program).args(["-d", "0", "-h", &address, "-f", &config]));
    assert_says("ldap-check", port, "info: \"Success\"");
}

#[test]
fn smtp() {
    let Some(program) = program("smtpd") else { return };
    if !is_root() {
        return eprintln!("skipped: OpenSMTPD runs as root alone");
    }
    let (folder, port) = (Folder::new(), free_port());
    let mails = at(&folder, "mails");
    let config = format!("action a maildir \"{mails}\"\nlisten on 127.0.0.1 port {port}\nmatch for local action a\n");
    let config = folder.write("smtpd.conf", &config);
    let _server = Running::start(Command::new(program).args(["-d", "-f", &config]));
    assert_says("smtpchk EHLO weir.example.com", port, "code: 221");
}

#[test]
fn mysql() {
    let (Some(program), Some(install)) = (program("mariadbd"), program("mariadb-install-db")) else { return };
    let (folder, port) = (Folder::new(), free_port());
    let (data, socket) = (format!("--datadir={}", at(&folder, "data")), format!("--socket={}", at(&folder, "s")));
    let user = if is_root() { "--user=root" } else { "--skip-name-resolve" };
    let prepared = Command::new(install)
        .args(["--no-defaults", user, &data, "--auth-root-authentication-method=normal", "--skip-test-db"])
        .output();
    assert!(prepared.as_ref().is_ok_and(|output| output.status.success()), "{prepared:?}");
    let file = folder.write("first.sql", "CREATE USER IF NOT EXISTS 'weir'@'%';\n");
    let (first, port_argument) = (format!("--init-file={file}"), format!("--port={port}"));
    let arguments = ["--no-defaults", user, &data, &socket, &first, "--bind-address=127.0.0.1", &port_argument];
    let _server = Running::start(Command::new(program).args(arguments));
    assert_says("mysql-check", port, "MariaDB");
    assert_says("mysql-check user weir", port, "MariaDB");
    assert_says("mysql-check user weir post-80", port, "MariaDB");
    assert_says("mysql-check user weir query \"SELECT 1\"", port, "MariaDB");
    let refused = reported("mysql-check user weir query \"SELECT * FROM mysql.user\"", port, "failed");
    assert!(refused.contains("Layer7 wrong status, code: 1142, info: ") && refused.contains("denied"), "{refused}");
}

#[test]
fn postgres() {
    let (Some(program), Some(initdb)) = (program("postgres"), program("initdb")) else { return };
    let (folder, port) = (Folder::new(), free_port());
    let data = at(&folder, "data");
    std::fs::create_dir(&data).unwrap();
    // It refuses to run as root.
    let command = |program: &str| {
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
        command
    };
    if is_root() {
        std::os::unix::fs::chown(&data, Some(65_534), Some(65_534)).unwrap();
        open_to_all(Path::new(&at(&folder, "")));
    }
    let prepared = command(&initdb).args(["-D", &data, "-A", "trust", "-N"]).output();
    assert!(prepared.as_ref().is_ok_and(|output| output.status.success()), "{prepared:?}");
    let arguments = ["-D", &data, "-p", &port.to_string(), "-h", "127.0.0.1", "-k", ""];
    let _server = Running::start(command(&program).args(arguments));
    assert_says("pgsql-check user nobody", port, "info: \"PostgreSQL server is ok\"");
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).expect("permissions");
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}
