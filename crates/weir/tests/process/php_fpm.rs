//! PHP-FPM behind Weir: parameters and answers of a script, a body, standard error, and a stopped application. Skipped
//! with a message if PHP-FPM is not installed.

use crate::support::{DEFAULTS, Folder, Running, connect, exchange, free_port, get};
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::process::Command;

const PROGRAMS: [&str; 4] = ["php-fpm", "php-fpm8.4", "php-fpm8.2", "php-fpm8.1"];

const SCRIPT: &str = "<?php
error_log('told ' . $_SERVER['REQUEST_URI']);
http_response_code(203);
header('X-Kind: test');
echo implode(' ', [$_SERVER['REQUEST_METHOD'], $_SERVER['SCRIPT_NAME'], $_SERVER['PATH_INFO'] ?? '-', ($_SERVER['QUERY_STRING'] ?? ''),
    $_SERVER['HTTP_X_OWN'] ?? '-', strlen(file_get_contents('php://input'))]);
";

/// A script whose process is killed during its answer.
const KILLED: &str = "<?php
header('X-Kind: cut');
echo str_repeat('begun ', 20000);
flush();
exec('kill -9 ' . getmypid());
";

/// Runs PHP-FPM on a port; `None`: it is missing, which was printed.
fn start(folder: &Folder) -> Option<(Running, u16)> {
    let found =
        PROGRAMS.iter().find(|program| Command::new(program).arg("-v").output().is_ok_and(|out| out.status.success()));
    let Some(program) = found else {
        eprintln!("skipped: php-fpm is not installed");
        return None;
    };
    let port = free_port();
    let text = format!(
        "[global]\nerror_log = /proc/self/fd/2\ndaemonize = no\n[www]\nuser = root\ngroup = root\nlisten = 127.0.0.1:{port}\n\
         pm = static\npm.max_children = 2\nclear_env = yes\nphp_admin_value[log_errors] = 1\n"
    );
    let file = folder.write("fpm.conf", &text);
    let running = Running::start(Command::new(program).args(["-F", "-R", "-n", "-y", &file]));
    drop(connect(port));
    Some((running, port))
}

#[test]
fn scripts_answer_and_a_manager_that_is_gone_is_a_503() {
    let folder = Folder::new();
    folder.write("index.php", SCRIPT);
    folder.write("killed.php", KILLED);
    let Some((fpm, application)) = start(&folder) else { return };
    let (port, root) = (free_port(), folder.text());
    let text = format!(
        "global\n log stdout format raw daemon\n{DEFAULTS}listen web\n bind 127.0.0.1:{port}\n log global\n option httplog\n use-fcgi-app php\n \
         server s 127.0.0.1:{application} proto fcgi\nfcgi-app php\n docroot {root}\n index index.php\n \
         path-info ^(/.+\\.php)(/.*)?$\n log-stderr global\n"
    );
    let file = folder.write("weir.cfg", &text);
    let mut weir = Running::weir(&["-db", "-f", &file]);
    let mut client = connect(port);
    assert_eq!(exchange(&mut client, &get("/?a=b")), (203, "GET /index.php - a=b - 0".to_owned()));
    weir.wait_for_line(|line| line.contains("told /?a=b"));
    let body = "x".repeat(100_000);
    let post =
        format!("POST /index.php/more HTTP/1.1\r\nhost: a\r\nx-own: 1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    assert_eq!(exchange(&mut client, &post), (203, "POST /index.php /more  1 100000".to_owned()));
    // FPM answers so itself, with its own status.
    assert_eq!(exchange(&mut client, &get("/none.php")).0, 404);
    let mut next = connect(port);
    assert_eq!(exchange(&mut next, &get("/?c")), (203, "GET /index.php - c - 0".to_owned()));
    // A truncated answer is recognizable, and its connection is not reused.
    let mut cut = connect(port);
    cut.write_all(get("/killed.php").as_bytes()).expect("a request");
    let mut answer = Vec::new();
    // It may end with a reset.
    let _ = cut.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("x-kind: cut\r\n"), "{answer}");
    assert!(answer.contains("begun begun ") && !answer.ends_with("0\r\n\r\n"), "it is whole");
    weir.wait_for_line(|line| line.contains("/killed.php") && line.contains(" SD-- "));
    assert_eq!(exchange(&mut next, &get("/?d")), (203, "GET /index.php - d - 0".to_owned()));
    fpm.send(Signal::TERM);
    fpm.finish();
    let mut last = connect(port);
    assert_eq!(exchange(&mut last, &get("/")).0, 503);
    weir.send(Signal::TERM);
}
