//! `shm-stats-file`: counters are shared by processes and survive reloads; a `stats-file` and a reload in place. Must
//! never depend on when counters are exchanged.

use crate::counts::statistics;
use crate::reload::{Service, named};
use crate::support::{
    DEFAULTS, Folder, ProcessResult, Running, connect, connect_unix, exchange, free_port, get, wait_until, weir,
};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Shared memory that is removed at the end of the test.
struct Shm(String);

impl Shm {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(format!("weir-test-shm-{}-{number}", std::process::id()))
    }

    fn path(&self) -> PathBuf {
        Path::new("/dev/shm").join(&self.0)
    }

    /// Whether an object has a record.
    fn has(&self, guid: &[u8]) -> bool {
        let bytes = std::fs::read(self.path()).expect("there");
        let mut records = bytes.chunks(512).skip(1).filter(|record| record[0] != 0);
        records.any(|record| usize::from(record[1]) == guid.len() && record[16..].starts_with(guid))
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.path());
    }
}

/// A process with its own socket and port.
struct One {
    running: Running,
    socket: PathBuf,
    port: u16,
}

fn text(shm: &Shm, socket: &Path, port: u16, global: &str) -> String {
    format!(
        "global\n    stats socket {} level admin\n    shm-stats-file /{}\n    {global}\n{DEFAULTS}frontend web\n    guid web\n    \
         option socket-stats\n    bind 127.0.0.1:{port} guid-prefix addr name main\n    default_backend app\nbackend app\n    guid app\n    \
         server s1 127.0.0.1:1 guid s1\n    server s2 127.0.0.1:1\n    http-request return status 204\n",
        socket.display(),
        shm.0
    )
}

impl One {
    fn start(folder: &Folder, shm: &Shm, name: &str, more: &[&str]) -> Self {
        let (socket, port) = (folder.path(name), free_port());
        let file = folder.write(&format!("{name}.cfg"), &text(shm, &socket, port, ""));
        let mut arguments = if more.contains(&"-W") { Vec::new() } else { vec!["-db"] };
        arguments.extend(["-f", &*file]);
        arguments.extend(more);
        let running = Running::weir(&arguments);
        let one = Self { running, socket, port };
        // The socket listens before the file is opened: a command is answered once the process serves.
        assert!(!one.ask("show version").is_empty());
        one
    }

    fn ask(&self, command: &str) -> String {
        let mut stream = connect_unix(&self.socket);
        writeln!(stream, "{command}").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn serve(&self, requests: usize) {
        let mut stream = connect(self.port);
        for _ in 0..requests {
            assert_eq!(exchange(&mut stream, &get("/")).0, 204);
        }
    }

    fn column(&self, proxy: &str, name: &str, column: &str) -> u64 {
        statistics(&self.ask("show stat"), proxy, name).get(column).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// Returns requests of the frontend, sessions of its listener, requests of the backend.
    fn counts(&self) -> [u64; 3] {
        [
            self.column("web", "FRONTEND", "req_tot"),
            self.column("web", "main", "stot"),
            self.column("app", "BACKEND", "stot"),
        ]
    }

    fn waits_for(&self, counts: [u64; 3]) {
        wait_until(&format!("{counts:?}"), || self.counts() == counts);
    }

    fn end(self, signal: Signal) -> ProcessResult {
        self.running.send(signal);
        self.running.finish()
    }
}

#[test]
fn counts_go_on_in_the_process_that_takes_over_and_end_with_a_soft_stop() {
    let (folder, shm) = (Folder::new(), Shm::new());
    let one = One::start(&folder, &shm, "one", &[]);
    one.serve(3);
    one.waits_for([3, 1, 3]);
    // The second one starts while the first one serves, sees its counters, and terminates it.
    let pid = one.running.id().to_string();
    let mut two = One::start(&folder, &shm, "two", &["-sf", &pid]);
    assert_eq!(one.running.finish().code(), Some(0));
    two.waits_for([3, 1, 3]);
    two.serve(2);
    two.waits_for([5, 2, 5]);
    assert!(two.ask("dump stats-file").contains("\nweb,2,"), "{}", two.ask("dump stats-file"));
    // What it has counted is kept where a signal ends it at once, and is forgotten when it is the last and stops softly.
    for (name, signal) in [("three", Signal::TERM), ("four", Signal::INT)] {
        assert_eq!(two.end(signal).code(), Some(128 + signal.as_raw()));
        two = One::start(&folder, &shm, name, &[]);
        assert_eq!(two.counts(), [5, 2, 5], "{signal:?}");
    }
    assert_eq!(two.end(Signal::USR1).code(), Some(0));
    assert_eq!(One::start(&folder, &shm, "five", &[]).counts(), [0, 0, 0]);
}

/// Connections of HTTP/2, which have counters of their own.
#[test]
fn connections_of_http2_are_shared() {
    let (folder, shm) = (Folder::new(), Shm::new());
    let (one, two) = (One::start(&folder, &shm, "one", &[]), One::start(&folder, &shm, "two", &[]));
    for process in [&one, &two] {
        let mut stream = connect(process.port);
        // The preface with empty settings, which the other side answers with its own.
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").expect("sent");
        stream.read_exact(&mut [0; 9]).expect("a frame");
    }
    for process in [&one, &two] {
        wait_until("both are shown", || process.column("web", "FRONTEND", "h2_total_connections") == 2);
    }
}

/// The same below a master, which passes its signals on.
#[test]
fn counts_are_kept_over_a_stop_of_the_master() {
    let (folder, shm) = (Folder::new(), Shm::new());
    let one = One::start(&folder, &shm, "one", &["-W"]);
    one.serve(3);
    one.waits_for([3, 1, 3]);
    assert_eq!(one.end(Signal::TERM).code(), Some(0));
    let two = One::start(&folder, &shm, "two", &["-W"]);
    assert_eq!(two.counts(), [3, 1, 3]);
    assert_eq!(two.end(Signal::USR1).code(), Some(0));
    let three = One::start(&folder, &shm, "three", &["-W"]);
    assert_eq!(three.counts(), [0, 0, 0]);
    assert_eq!(three.end(Signal::TERM).code(), Some(0));
}

#[test]
fn two_processes_count_together_and_a_crash_forgets_nothing() {
    let (folder, shm) = (Folder::new(), Shm::new());
    let (one, two) = (One::start(&folder, &shm, "one", &[]), One::start(&folder, &shm, "two", &[]));
    one.serve(3);
    two.serve(4);
    one.waits_for([7, 2, 7]);
    two.waits_for([7, 2, 7]);
    // Shared counters are not cleared accidentally; if they are, it applies to all processes.
    let refusal = "Server counters are stored in a shared-memory stats file; clearing them breaks monotonicity for monitoring \
                   tools and affects all attached processes. Append 'force' to clear anyway.\n\n";
    assert_eq!(one.ask("clear counters server app/s1"), refusal);
    assert_eq!(one.ask("clear counters server app/s1 force"), "Server counters cleared.\n\n");
    assert_eq!(one.ask("clear counters server app/s2"), "Server counters cleared.\n\n");
    assert_eq!(one.ask("clear counters"), "\n");
    assert_eq!(one.counts(), [7, 2, 7]);
    assert_eq!(one.ask("clear counters all"), "\n");
    assert_eq!(one.counts(), [0, 0, 0]);
    two.waits_for([0, 0, 0]);
    two.serve(2);
    one.serve(1);
    one.waits_for([3, 2, 3]);
    two.waits_for([3, 2, 3]);
    assert_eq!(two.end(Signal::KILL).code(), None);
    drop(one);
    let three = One::start(&folder, &shm, "three", &[]);
    assert_eq!(three.counts(), [3, 2, 3]);
    // A file's values apply to objects that do not continue shared counters.
    let dump = three.ask("dump stats-file").replace("\nweb,2,", "\nweb,1000,");
    folder.write("counts", &dump);
    let (socket, port) = (folder.path("four"), free_port());
    let global = format!("stats-file {}/counts", folder.text());
    let file = folder.write("four.cfg", &text(&shm, &socket, port, &global));
    let four = One { running: Running::weir(&["-db", "-f", &file]), socket, port };
    assert_eq!(four.column("web", "FRONTEND", "stot"), 2);
}

#[test]
fn servers_come_and_go_with_their_counts() {
    let (folder, shm) = (Folder::new(), Shm::new());
    let one = One::start(&folder, &shm, "one", &[]);
    assert!(!shm.has(b"added"));
    assert_eq!(one.ask("add server app/added 127.0.0.1:1 guid added"), "New server registered.\n\n");
    wait_until("the added server is in the file", || shm.has(b"added"));
    assert!(one.ask("clear counters server app/added").contains("Append 'force' to clear anyway."));
    assert_eq!(one.ask("del server app/added"), "Server deleted.\n\n");
    wait_until("the removed server is not in the file", || !shm.has(b"added"));
    assert!(shm.has(b"s1") && shm.has(b"web") && shm.has(b"app"));
}

#[test]
fn memory_that_cannot_be_used_is_refused() {
    let (folder, shm) = (Folder::new(), Shm::new());
    let name = format!("/{}", shm.0);
    let port = free_port();
    let start = |global: &str, expected: &str| {
        let file = folder.write("weir.cfg", &text(&shm, &folder.path("api"), port, global));
        let found = weir(["-db", "-f", &file]);
        assert_eq!(found.code(), Some(1), "{}", found.stderr);
        assert!(found.stderr.contains(&expected.replace("NAME", &name)), "{}", found.stderr);
    };
    start(
        "shm-stats-file-max-objects 2",
        "Cannot add additional object to 'NAME' file, maximum number already reached (2). Adjust \"shm-stats-file-max-objects\" \
         directive if needed.",
    );
    let file = std::fs::File::options().write(true).open(shm.path()).expect("made");
    file.write_all_at(&[7], 8).expect("written");
    start(
        "",
        "config: cannot use shm stats file 'NAME': it has version 7, and this program writes version 2; remove it to begin anew",
    );
    std::fs::write(shm.path(), "hello").expect("written");
    start("", "config: cannot use shm stats file 'NAME': it is no stats file of Weir; remove it to begin anew");
    std::fs::remove_file(shm.path()).expect("there");
    std::fs::create_dir(shm.path()).expect("made");
    start("", "config: cannot open shm stats file 'NAME': ");
    std::fs::remove_dir(shm.path()).expect("there");
    // A configuration check does not touch it.
    let file = folder.write("weir.cfg", &text(&shm, &folder.path("api"), port, ""));
    assert_eq!(weir(["-c", "-f", &file]).code(), Some(0));
    assert!(!shm.path().exists());
}

/// Returns a column of `show stat` for a frontend.
fn shown(service: &Service, proxy: &str, column: &str) -> u64 {
    let answer = service.ask("api", "show stat");
    statistics(&answer, proxy, "FRONTEND").get(column).and_then(|value| value.parse().ok()).unwrap_or(0)
}

#[test]
fn shared_counts_go_on_over_reloads_of_a_master() {
    let shm = Shm::new();
    let global = format!("    shm-stats-file {}\n", shm.0);
    let guid = named("one").replace("frontend web\n", "frontend web\n    guid web\n");
    let service = Service::start_with(&global, &guid, Folder::new());
    exchange(&mut connect(service.port), &get("/"));
    wait_until("the request", || shown(&service, "web", "req_tot") == 1);
    // In place: the process is the same, and an added object is counted with the others.
    let worker = service.worker();
    let more = format!("{guid}frontend more\n    guid more\n    bind 127.0.0.1:{}\n", free_port());
    service.write(&global, &more);
    assert!(service.reload().starts_with("Success=1\n"));
    assert_eq!(service.worker(), worker);
    exchange(&mut connect(service.port), &get("/"));
    wait_until("the next request", || shown(&service, "web", "req_tot") == 2);
    assert_eq!(shown(&service, "more", "req_tot"), 0);
    wait_until("the new object is in the file", || shm.has(b"more"));
    // A new worker.
    service.write(&format!("{global}    tune.bufsize 20000\n"), &more);
    assert!(service.reload().starts_with("Success=1\n"));
    assert_ne!(service.worker(), worker);
    wait_until("the counts of the worker before", || shown(&service, "web", "req_tot") == 2);
    // Another name needs a new worker, too: its counters begin there.
    let worker = service.worker();
    let other = Shm::new();
    service.write(&format!("    shm-stats-file {}\n    tune.bufsize 20000\n", other.0), &more);
    let answer = service.reload();
    assert!(answer.contains("shared counters of the process"), "{answer}");
    assert_ne!(service.worker(), worker);
    // The previous worker may answer until it is signalled.
    wait_until("counts from 0 on", || shown(&service, "web", "req_tot") == 0);
}

#[test]
fn a_stats_file_is_read_by_new_workers_alone() {
    let folder = Folder::new();
    let counts = |number: u32| format!("#fe guid,stot,req_tot,\nweb,{number},{number},\nmore,{number},{number},\n");
    folder.write("counts", &counts(40));
    let global = format!("    stats-file {}/counts\n", folder.text());
    let guid = named("one").replace("frontend web\n", "frontend web\n    guid web\n");
    let service = Service::start_with(&global, &guid, folder);
    exchange(&mut connect(service.port), &get("/"));
    wait_until("the request", || (shown(&service, "web", "stot"), shown(&service, "web", "req_tot")) == (41, 41));
    // In place: counters continue, and added objects start from 0, whatever the file contains now.
    let worker = service.worker();
    service.folder.write("counts", &counts(500));
    let more = format!("{guid}frontend more\n    guid more\n    bind 127.0.0.1:{}\n", free_port());
    service.write(&global, &more);
    assert!(service.reload().starts_with("Success=1\n"));
    assert_eq!(service.worker(), worker);
    exchange(&mut connect(service.port), &get("/"));
    assert_eq!((shown(&service, "web", "stot"), shown(&service, "more", "stot")), (42, 0));
    // The file has another name: that alone needs no new worker either.
    service.write(&global.replace("/counts", "/others"), &more);
    assert!(service.reload().starts_with("Success=1\n"));
    assert_eq!((service.worker(), shown(&service, "web", "stot")), (worker, 42));
    // A new worker loads the file.
    service.write(&format!("{global}    tune.bufsize 20000\n"), &more);
    assert!(service.reload().starts_with("Success=1\n"));
    assert_ne!(service.worker(), worker);
    wait_until("the new worker", || (shown(&service, "web", "stot"), shown(&service, "more", "stot")) == (500, 500));
}
