//! State of a session of the client. Each command has a connection of its own, so that a session outlives a reload or a
//! restart of the process; commands that change the state of a connection are therefore remembered, and sent again
//! before every later command. Must never open a connection.

use super::line::{FramedPayload, Target};

/// Format of messages that the client asks for.
const SEVERITIES: &str = "set severity-output number";

/// Process that owns the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A process that serves, or a process that is not known yet.
    Worker,
    /// A master. Its prefix `@@` hands a whole line to a worker.
    Master,
    /// A master older than HAProxy 3.2, without `@@`.
    OldMaster,
}

/// Bytes of a request, and the form of its answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub bytes: Vec<u8>,
    /// Number of leading answers to settings.
    pub settings: usize,
    /// The connection stays open after the answer unless the client closes its side.
    pub stays_open: bool,
}

/// Settings of the session.
#[derive(Debug, Clone)]
pub struct Session {
    pub owner: Owner,
    /// Target of commands without a prefix.
    pub target: Target,
    /// Accepted commands that change the state of a connection, each by the words that identify it.
    sticky: Vec<(String, String)>,
}

/// First words of commands that change the state of a connection.
const STICKY: [&str; 7] =
    ["expert-mode", "experimental-mode", "mcli-debug-mode", "operator", "user", "set anon", "set timeout cli"];

impl Session {
    /// Begins a session whose commands without a prefix go to that target.
    pub fn new(owner: Owner, target: Target) -> Self {
        Self { owner, target, sticky: Vec::new() }
    }

    /// Begins the session that options select: the socket is that of a master, and commands without a prefix go to its
    /// worker.
    pub fn of_options(is_master: bool, to_worker: bool) -> Self {
        let owner = if is_master { Owner::Master } else { Owner::Worker };
        Self::new(owner, if to_worker { Target::Worker("1".to_owned()) } else { Target::Owner })
    }

    /// Remembers an accepted command if it changes the state of a connection.
    pub fn note(&mut self, words: &[String]) {
        let is = |sticky: &&&str| {
            sticky.split(' ').enumerate().all(|(at, word)| words.get(at).is_some_and(|one| one == word))
        };
        let Some(kind) = STICKY.iter().find(is) else { return };
        let length = kind.split(' ').count();
        // Without an argument a mode is only printed; the key of the process is none of the connection.
        let changes =
            matches!(*kind, "operator" | "user") || matches!(words.get(length), Some(word) if word != "global-key");
        if changes {
            // A level replaces the other one.
            let kind = if *kind == "user" { "operator" } else { kind };
            self.sticky.retain(|(known, _)| known != kind);
            self.sticky.push((kind.to_owned(), words.join(" ")));
        }
    }

    /// Returns the marks of the session for a prompt: modes in parentheses.
    pub fn marks(&self) -> String {
        let is_on = |kind: &str| self.sticky.iter().any(|(known, text)| known == kind && text.ends_with(" on"));
        let marks = [("experimental-mode", 'x'), ("expert-mode", 'e'), ("mcli-debug-mode", 'd')];
        let marks: String = marks.iter().filter(|(kind, _)| is_on(kind)).map(|(_, mark)| *mark).collect();
        if marks.is_empty() { marks } else { format!("({marks})") }
    }

    /// Returns the request of a command for a target.
    pub fn request(&self, target: &Target, text: &[u8], payload: Option<&FramedPayload>) -> Request {
        let sticky: Vec<&str> = self.sticky.iter().map(|(_, text)| text.as_str()).collect();
        let (prefix, settings, suffix): (String, Vec<&str>, String) = match (target, self.owner) {
            (Target::Owner, Owner::Worker) => (String::new(), [&[SEVERITIES], &*sticky].concat(), String::new()),
            (Target::Owner, _) => (String::new(), sticky, String::new()),
            (Target::Worker(name), Owner::OldMaster) => (String::new(), sticky, format!("@{name} ")),
            (Target::Worker(name), _) => (format!("@@{name} "), [&[SEVERITIES], &*sticky].concat(), String::new()),
            (Target::EveryWorker, _) => (String::new(), Vec::new(), String::new()),
        };
        let mut bytes = prefix.into_bytes();
        for setting in &settings {
            bytes.extend_from_slice(setting.as_bytes());
            bytes.push(b';');
        }
        bytes.extend_from_slice(suffix.as_bytes());
        bytes.extend_from_slice(text);
        if let Some(payload) = payload {
            bytes.extend_from_slice(b" <<");
            bytes.extend_from_slice(&payload.marker);
            bytes.push(b'\n');
            bytes.extend_from_slice(&payload.lines);
            bytes.extend_from_slice(&payload.marker);
        }
        bytes.push(b'\n');
        let is_for_master = !matches!((target, self.owner), (Target::Owner, Owner::Worker));
        // A master answers its own settings with nothing.
        let has_severities = settings.first() == Some(&SEVERITIES);
        Request { bytes, settings: if has_severities { settings.len() } else { 0 }, stays_open: is_for_master }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn sent(session: &Session, target: &Target, text: &str) -> (String, usize) {
        let request = session.request(target, text.as_bytes(), None);
        (String::from_utf8(request.bytes).expect("text"), request.settings)
    }

    #[test]
    fn what_changes_a_connection_is_sent_again() {
        let mut session = Session::new(Owner::Worker, Target::Owner);
        for text in
            ["expert-mode on", "set anon on 7", "set anon global-key 9", "show info", "operator", "user", "expert-mode"]
        {
            session.note(&words(text));
        }
        let before = "set severity-output number;";
        assert_eq!(
            sent(&session, &Target::Owner, "show info"),
            (format!("{before}expert-mode on;set anon on 7;user;show info\n"), 4)
        );
        assert_eq!(session.marks(), "(e)");
        session.note(&words("expert-mode off"));
        assert_eq!(session.marks(), "");
    }

    #[test]
    fn targets_have_prefixes() {
        let worker = Target::Worker("!7".to_owned());
        let mut session = Session::new(Owner::Master, Target::Owner);
        session.note(&words("experimental-mode on"));
        assert_eq!(sent(&session, &Target::Owner, "show proc"), ("experimental-mode on;show proc\n".to_owned(), 0));
        assert_eq!(
            sent(&session, &worker, "show info"),
            ("@@!7 set severity-output number;experimental-mode on;show info\n".to_owned(), 2)
        );
        session.owner = Owner::OldMaster;
        assert_eq!(sent(&session, &worker, "show info"), ("experimental-mode on;@!7 show info\n".to_owned(), 0));
    }

    #[test]
    fn a_payload_follows_its_line() {
        let session = Session::new(Owner::Worker, Target::Owner);
        let payload = FramedPayload::new(b"a\n\nb");
        let request = session.request(&Target::Owner, b"set ssl cert x", Some(&payload));
        let wanted = "set severity-output number;set ssl cert x <<%EOF%\na\n\nb\n%EOF%\n";
        assert_eq!(String::from_utf8(request.bytes).expect("text"), wanted);
    }
}
