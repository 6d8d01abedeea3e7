//! The prompt of `weir ctl` on a pseudo-terminal.

use crate::ctl::{OTHER, Subject};
use crate::support::{PATIENCE, WEIR, pid, wait_until};
use crate::terminal::terminal;
use rustix::process::{Signal, kill_process};
use rustix::termios::{LocalModes, SpecialCodeIndex, tcgetattr};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, mpsc};

/// A prompt that a test types into.
struct Prompt {
    child: Child,
    terminal: File,
    /// What the program has written, without the part that was waited for.
    seen: Arc<Mutex<String>>,
    news: mpsc::Receiver<()>,
}

impl Prompt {
    /// Starts the client with the socket of that name.
    fn start(subject: &Subject, socket: &str) -> Self {
        let (own, program) = terminal(100, 30);
        let mut command = Command::new(WEIR);
        command.args(["ctl", "-s", &subject.path(socket)]).env("XDG_STATE_HOME", subject.path("state"));
        command.env("TERM", "xterm").stdin(program.try_clone().unwrap());
        let child = command.stdout(program.try_clone().unwrap()).stderr(program).spawn().expect("it starts");
        // The command holds the terminal's other side open as long as it lives.
        drop(command);
        let seen = Arc::new(Mutex::new(String::new()));
        let (sender, news) = mpsc::channel();
        let (mut reader, shared) = (own.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // A terminal whose other side is closed returns an error.
            while let Ok(count @ 1..) = reader.read(&mut piece) {
                shared.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..count]));
                if sender.send(()).is_err() {
                    return;
                }
            }
        });
        Self { child, terminal: own, seen, news }
    }

    fn type_text(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).expect("typed");
    }

    /// Waits for a text, and returns what was written up to its end.
    fn wait_for(&mut self, text: &str) -> String {
        loop {
            {
                let mut seen = self.seen.lock().unwrap();
                if let Some(at) = seen.find(text) {
                    return seen.drain(..at + text.len()).collect();
                }
            }
            if self.news.recv_timeout(PATIENCE).is_err() {
                let _ = kill_process(pid(self.child.id()), Signal::KILL);
                panic!("no '{text}' in: {:?}", self.seen.lock().unwrap());
            }
        }
    }

    /// Types a command and waits for a text and the next prompt.
    fn ask(&mut self, command: &str, wanted: &str) -> String {
        self.type_text(&format!("{command}\r"));
        let mut text = self.wait_for(wanted);
        text.push_str(&self.wait_for("> "));
        text
    }

    /// Waits until a line has ended and the next one is read: keys that are typed between the two are lost.
    #[cfg(feature = "line-editing")]
    fn wait_for_next(&mut self) {
        self.wait_for("\u{1b}[?2004l");
        self.wait_for("\u{1b}[?2004h");
    }

    /// Ends it with Ctrl-D.
    fn end(mut self) {
        self.type_text("\x04");
        assert!(self.child.wait().expect("it ends").success());
    }
}

#[cfg(feature = "line-editing")]
#[test]
fn commands_are_edited_completed_and_remembered() {
    let subject = Subject::start(WEIR, &["-db"]);
    let mut prompt = Prompt::start(&subject, "stats");
    prompt.wait_for("version ");
    prompt.wait_for("stats> ");
    prompt.ask("get weight app/s1", "10 (initial 10)");
    // An error is printed, and does not end the session.
    prompt.ask("get weight none/s1", "No such backend.");
    // The commands are those of the process, and so are the names of servers.
    prompt.ask("get we\tapp/s2", "20 (initial 20)");
    prompt.type_text("show servers co\tap\t\x01\x0b");
    prompt.type_text("set server app/\t");
    prompt.wait_for("app/s1");
    prompt.wait_for("app/s2");
    prompt.type_text("2 sta\tma\t\r");
    prompt.wait_for_next();
    // The first line of the answer: the prompt after it reads Ctrl-C as a key.
    prompt.ask("show servers state app", "# be_id");
    // Ctrl-C clears the line.
    prompt.type_text("set server app/s1 state maint\x03");
    prompt.wait_for_next();
    prompt.ask("expert-mode on", "stats(e)");
    prompt.end();

    let path = subject.folder.path("state/weir/ctl_history");
    let written = std::fs::read_to_string(&path).expect("a history");
    let lines: Vec<&str> = written.lines().collect();
    let wanted = [
        "get weight app/s1",
        "get weight none/s1",
        "get weight app/s2",
        "set server app/s2 state maint",
        "show servers state app",
        "expert-mode on",
    ];
    assert_eq!(lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>(), wanted);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).expect("a file").permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(subject.ask(&["show", "stat"]).contains("app,s2,") && subject.ask(&["show stat"]).contains(",MAINT,"));

    // The next session remembers: two lines up.
    let mut prompt = Prompt::start(&subject, "stats");
    prompt.wait_for("stats> ");
    prompt.ask("\x1b[A\x1b[A\x1b[A\x1b[A", "20 (initial 20)");
    prompt.end();
}

#[test]
fn payloads_and_keys_are_not_remembered() {
    let subject = Subject::start(WEIR, &["-db"]);
    let site = subject.path("site.pem");
    let mut prompt = Prompt::start(&subject, "stats");
    prompt.wait_for("stats> ");
    prompt.type_text(&format!("set ssl cert {site} <<\r"));
    for line in OTHER.lines().filter(|line| !line.is_empty()) {
        prompt.wait_for("+ ");
        prompt.type_text(&format!("{line}\r"));
    }
    prompt.wait_for("+ ");
    prompt.ask("", "Transaction created");
    prompt.ask("set ssl tls-key 0 c2VjcmV0", "stats");
    prompt.ask(&format!("commit ssl cert {site}"), "Success!");
    prompt.end();
    if cfg!(feature = "line-editing") {
        let written = std::fs::read_to_string(subject.folder.path("state/weir/ctl_history")).expect("a history");
        assert_eq!(written, format!("commit ssl cert {site}\n"));
    }
    assert!(subject.ask(&["show", "ssl", "cert", &site]).contains("CN=other.example"));
}

#[test]
fn a_command_is_interrupted_and_the_session_goes_on() {
    let subject = Subject::start(WEIR, &["-db"]);
    let mut prompt = Prompt::start(&subject, "stats");
    prompt.wait_for("stats> ");
    // An error is printed, and does not end the session.
    prompt.ask("get weight none/s1", "No such backend.");
    prompt.type_text("wait 100000\r");
    // While a command runs, keys are neither edited nor signals.
    let terminal = prompt.terminal.try_clone().unwrap();
    wait_until("the command runs", || {
        tcgetattr(&terminal).is_ok_and(|mode| {
            !mode.local_modes.contains(LocalModes::ISIG) && mode.special_codes[SpecialCodeIndex::VMIN] == 0
        })
    });
    prompt.type_text("\x03");
    prompt.wait_for("interrupted");
    prompt.wait_for("stats> ");
    prompt.ask("get weight app/s1", "10 (initial 10)");
    prompt.type_text("quit\r");
    assert!(prompt.child.wait().expect("it ends").success());
}

#[test]
fn a_process_that_cannot_be_reached_ends_the_prompt_at_once() {
    let subject = Subject::start(WEIR, &["-db"]);
    let mut prompt = Prompt::start(&subject, "nowhere");
    prompt.wait_for("No such file");
    assert_eq!(prompt.child.wait().expect("it ends").code(), Some(2));
}
