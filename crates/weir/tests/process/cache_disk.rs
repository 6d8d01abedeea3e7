//! The file of a cache (`disk`) on a real file system: its contents are served, and whatever happens to it, clients get
//! the server's answers.

use crate::reload;
use crate::support::{DEFAULTS, Folder, Running, WEIR, connect, exchange, free_port, get, pid, wait_until, weir};
use rustix::process::{Resource, Rlimit, Signal, prlimit};
use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Two responses of this length fit in memory, ten in the file.
const LENGTH: usize = 400_000;

/// Responses of the cache have status 203, those of the server 200.
fn sections(port: &str, origin: u16, file: &str) -> String {
    format!(
        "listen web\n    bind 127.0.0.1:{port}\n    http-request cache-use c\n    http-response set-header cache-control max-age=1000\n    \
         http-response cache-store c\n    http-response set-status 203 if {{ res.cache_hit }}\n    server s 127.0.0.1:{origin}\ncache \
         c\n    total-max-size 1\n    max-object-size 500000\n    disk {file} 4\n"
    )
}

struct Origin {
    port: u16,
    _running: Running,
}

fn origin() -> Origin {
    let port = free_port();
    let running = Running::start(Command::new(WEIR).args(["origin", "-L", &format!("127.0.0.1:{port}")]));
    drop(connect(port));
    Origin { port, _running: running }
}

/// Requests responses that were not requested before.
struct Reader {
    port: u16,
    next: Cell<usize>,
}

impl Reader {
    fn new(port: u16) -> Self {
        Self { port, next: Cell::new(0) }
    }

    /// Requests that response; returns whether it is from the cache.
    fn is_hit(&self, number: usize) -> bool {
        let length = LENGTH + number % 50;
        let (status, body) = exchange(&mut connect(self.port), &get(&format!("/?s={length}&n={number}")));
        let line = ".123456789.123456789.123456789.123456789.12345678\n";
        assert!(body.len() == length && body.as_bytes().chunks(50).all(|chunk| line.as_bytes().starts_with(chunk)));
        status == 203
    }

    /// Fills memory and file with five responses, and returns the first of them: it is in the file, or is being written
    /// to it.
    fn fill(&self) -> usize {
        let first = self.next.get();
        self.next.set(first + 5);
        for number in first..first + 5 {
            assert!(!self.is_hit(number));
        }
        first
    }

    /// Waits until a response that was evicted from memory is served: writing takes time, and on a busy machine
    /// responses are dropped if the disk is too slow, so that others are requested.
    fn expect_hit(&self) {
        wait_until("a response in the file", || {
            let asked = self.fill();
            let found = (0..100).any(|_| {
                self.is_known(asked) || {
                    thread::sleep(Duration::from_millis(10));
                    false
                }
            });
            found && self.is_hit(asked)
        });
    }

    /// Whether the cache answers a HEAD, which stores nothing if the server answers it.
    fn is_known(&self, number: usize) -> bool {
        let length = LENGTH + number % 50;
        let request = format!("HEAD /?s={length}&n={number} HTTP/1.1\r\nhost: weir.test\r\nconnection: close\r\n\r\n");
        let mut stream = connect(self.port);
        let mut answer = String::new();
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer.starts_with("HTTP/1.1 203 ")
    }
}

struct Site {
    folder: Folder,
    origin: Origin,
    port: u16,
    weir: Running,
}

fn site() -> Site {
    let (folder, origin, port) = (Folder::in_memory(), origin(), free_port());
    let file = folder.path("cache");
    let text = format!("{DEFAULTS}{}", sections(&port.to_string(), origin.port, &file.display().to_string()));
    let config = folder.write("weir.cfg", &text);
    let weir = Running::weir(&["-db", "-f", &config]);
    Site { folder, origin, port, weir }
}

#[test]
fn a_restart_begins_with_an_empty_file() {
    let site = site();
    Reader::new(site.port).expect_hit();
    let file = site.folder.path("cache");
    assert!(std::fs::metadata(&file).expect("the file").len() > LENGTH as u64);
    site.weir.send(Signal::TERM);
    site.weir.finish();
    let weir = Running::weir(&["-db", "-f", site.folder.path("weir.cfg").to_str().expect("text")]);
    // The process listens before it creates the file.
    wait_until("an empty file", || std::fs::metadata(&file).is_ok_and(|found| found.len() == 0));
    // The first response was in memory and in the file before.
    Reader::new(site.port).expect_hit();
    drop((weir, site.origin));
}

#[test]
fn a_reload_in_place_keeps_the_file_and_another_one_makes_it_anew() {
    let (folder, origin) = (Folder::in_memory(), origin());
    let file = folder.path("cache");
    let text = sections("PORT", origin.port, &file.display().to_string());
    let service = reload::Service::start_with("", &text, folder);
    let reader = Reader::new(service.port);
    reader.expect_hit();
    let before = std::fs::metadata(&file).expect("the file").len();
    service.write("    # another line\n", &text);
    assert!(service.reload().contains("Reloaded in place"));
    assert!(before > 0 && std::fs::metadata(&file).expect("the file").len() >= before);
    reader.expect_hit();
    service.write("    tune.bufsize 20000\n", &text);
    assert!(service.reload().contains("No reload in place: "));
    reader.expect_hit();
}

#[test]
fn a_file_that_cannot_grow_is_a_miss_and_recovers() {
    let site = site();
    drop(connect(site.port));
    let process = Some(pid(site.weir.id()));
    let before = prlimit(process, Resource::Fsize, Rlimit { current: Some(100_000), maximum: None }).expect("a child");
    let reader = Reader::new(site.port);
    for _ in 0..3 {
        let first = reader.fill();
        assert!(!reader.is_hit(first), "it had no room");
    }
    prlimit(process, Resource::Fsize, before).expect("a child");
    reader.expect_hit();
}

#[test]
fn what_is_cut_off_or_overwritten_under_the_process_is_a_miss() {
    let site = site();
    let reader = Reader::new(site.port);
    let file = OpenOptions::new().write(true).open({
        reader.expect_hit();
        site.folder.path("cache")
    });
    let file = file.expect("the file");
    for round in 0..3 {
        // Each byte of the file is changed, or the file is truncated.
        match round {
            0 => file.set_len(0).expect("own file"),
            1 => file.set_len(100).expect("own file"),
            _ => file.write_all_at(&vec![b'x'; 4 << 20], 0).expect("own file"),
        }
        // Requests every response that may be in the file, not in memory.
        for number in 0..reader.next.get().min(8) {
            reader.is_hit(number);
        }
        reader.expect_hit();
    }
    // A file that is removed is still used without a name.
    std::fs::remove_file(site.folder.path("cache")).expect("own file");
    reader.expect_hit();
}

#[test]
fn a_disk_that_hangs_costs_no_request_its_answer() {
    let site = site();
    let reader = Reader::new(site.port);
    reader.expect_hit();
    let (id, said) = (site.weir.id().to_string(), site.folder.path("said"));
    // Every read of the file is delayed by an hour, or until strace ends.
    let started = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=pread64", "-e", "inject=pread64:delay_enter=3600000000", "-p", &id, "-o"])
        .arg(&said)
        .spawn();
    let Ok(mut strace) = started else {
        eprintln!("skipped: strace is not installed");
        return;
    };
    let traced = || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
    };
    wait_until("strace", || traced() || !std::path::Path::new(&format!("/proc/{id}")).exists());
    for number in 0..reader.next.get().min(8) {
        // Checks size and contents.
        reader.is_hit(number);
    }
    let _ = strace.kill();
    let _ = strace.wait();
    drop(site);
}

#[test]
fn a_check_says_where_no_file_can_be_made() {
    let folder = Folder::new();
    let rows = [
        (folder.path("none/cache"), Some("No such file or directory")),
        (folder.path("weir.cfg/cache"), Some("not a directory")),
        (folder.path(""), Some("entity already exists")),
        (folder.path("cache"), None),
    ];
    for (path, why) in rows {
        let text = format!("{DEFAULTS}{}", sections("1", 1, &path.display().to_string()));
        let found = weir(["-c", "-f", &folder.write("weir.cfg", &text)]);
        match why {
            Some(why) => {
                assert_eq!(found.code(), Some(1), "{}", path.display());
                let said = format!("cache 'c': cannot make the file '{}' : ", path.display());
                assert!(found.stderr.contains(&said) && found.stderr.contains(why), "{}", found.stderr);
            }
            None => assert_eq!(found.code(), Some(0), "{}", found.stderr),
        }
        assert!(!folder.path("cache").exists(), "a check makes nothing");
    }
}
