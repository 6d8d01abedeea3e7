//! `busy-polling`: workers that poll instead of sleeping.

use crate::support::{Folder, Running, connect_unix, get, wait_until};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

/// A connection of the runtime API that takes several commands.
struct Commands(BufReader<UnixStream>);

impl Commands {
    fn new(folder: &Folder) -> Self {
        let mut stream = connect_unix(&folder.path("cli"));
        stream.write_all(b"prompt i\n").expect("sent");
        let mut commands = Self(BufReader::new(stream));
        commands.answer();
        commands
    }

    fn ask(&mut self, command: &str) -> String {
        self.0.get_mut().write_all(format!("{command}\n").as_bytes()).expect("sent");
        self.answer()
    }

    /// Reads up to an empty line.
    fn answer(&mut self) -> String {
        let mut answer = String::new();
        while !answer.ends_with("\n\n") && answer != "\n" {
            assert!(self.0.read_line(&mut answer).expect("text") > 0, "{answer}");
        }
        answer
    }

    fn is_polling(&mut self) -> bool {
        let answer = self.ask("show info");
        let value = answer.lines().find_map(|line| line.strip_prefix("BusyPolling: ")).expect("a line");
        assert!(["0", "1"].contains(&value), "{value}");
        value == "1"
    }

    /// Returns the iterations of the event loops since the start.
    fn loops(&mut self) -> u64 {
        let answer = self.ask("show activity");
        let value = answer.lines().find_map(|line| line.strip_prefix("loops: ")).expect("a line");
        value.split(' ').next().expect("a sum").parse().expect("a number")
    }

    /// Whether the event loop runs while the process only waits for a timer.
    fn runs_idly(&mut self) -> bool {
        let first = self.loops();
        self.ask("wait 10ms");
        self.loops() - first > 200
    }
}

fn start(folder: &Folder, global: &str) -> Running {
    let text = format!(
        "global\n    nbthread 1\n    stats socket {} level admin\n{global}defaults\n    mode http\n    timeout client 60s\n    timeout tarpit 1h\n\
         frontend f\n    bind {}\n    http-request tarpit\n",
        folder.path("cli").display(),
        folder.path("clients").display(),
    );
    Running::weir(&["-db", "-f", &folder.write("proxy.cfg", &text)])
}

/// The process that is replaced sleeps again, while its connections go on.
#[test]
fn an_old_process_sleeps_again() {
    let folder = Folder::new();
    let weir = start(&folder, "    busy-polling\n");
    let mut commands = Commands::new(&folder);
    assert!(commands.is_polling());
    let all = std::cell::RefCell::new(commands);
    wait_until("iterations without events", || all.borrow_mut().runs_idly());
    let mut client = connect_unix(&folder.path("clients"));
    client.write_all(get("/").as_bytes()).expect("sent");
    wait_until("the request", || all.borrow_mut().ask("show info").contains("\nCurrConns: 1\n"));
    weir.send(Signal::USR1);
    wait_until("the soft stop", || !all.borrow_mut().is_polling());
    // Its iterations have reasons then.
    wait_until("rest", || (0..20).all(|_| !all.borrow_mut().runs_idly()));
    drop((client, all));
    assert_eq!(weir.finish().code(), Some(0));
}

#[test]
fn busy_polling_is_off_by_default_and_can_be_forbidden() {
    for global in ["", "    busy-polling\n    no busy-polling\n"] {
        let folder = Folder::new();
        let weir = start(&folder, global);
        let mut commands = Commands::new(&folder);
        assert!(!commands.is_polling(), "{global}");
        assert!((0..20).all(|_| !commands.runs_idly()), "{global}");
        drop(commands);
        weir.send(Signal::TERM);
        weir.finish();
    }
}
