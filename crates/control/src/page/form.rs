//! Forms of the page: the servers of a backend to change, and the action (configuration manual, "stats admin"). Must
//! never be called without the admin level, and never change a proxy outside of `stats scope`.

use std::rc::Rc;
use std::sync::Arc;

use engine::generation::Generation;
use engine::service::registry::PageRequest;
use engine::service::session_shutdown::shut_sessions;
use engine::service::transitions::{Orderer, force, set_admin};
use engine::stream_state::Cause;
use engine::worker::{Process, Worker};
use live::health::Operation;
use live::{Admin, Checker};
use policy::program::{Proxy, Server};

/// All servers were changed.
const DONE: &str = "DONE";
/// Some servers were changed.
const PARTLY: &str = "PART";
/// No action or server was selected, or nothing had to be changed.
const NONE: &str = "NONE";
/// Invalid parameters.
const FAULTY: &str = "ERRP";
/// The payload is too long.
const TOO_LONG: &str = "EXCD";
/// The client lacks the admin level.
pub(super) const DENIED: &str = "DENY";

/// The payload of a form.
#[derive(Debug, Default)]
pub(crate) struct Submission {
    text: Vec<u8>,
    is_too_long: bool,
    ended: bool,
}

impl Submission {
    /// Appends payload, at most `most` bytes in total.
    pub(crate) fn take(&mut self, payload: &[u8], most: usize) {
        if self.text.len() + payload.len() > most {
            self.is_too_long = true;
        } else {
            self.text.extend_from_slice(payload);
        }
    }

    /// Marks the end of the payload.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Returns the payload; `None`: it was too long.
    pub(crate) fn into_text(self) -> Option<Vec<u8>> {
        (!self.is_too_long).then_some(self.text)
    }

    /// Whether the payload is complete.
    pub(crate) fn is_whole(&self) -> bool {
        self.ended
    }
}

/// A change of a server.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Action {
    Admin(Admin),
    /// Sets the server ready if it is in this state.
    Leave(Admin),
    Force(Checker, Operation),
    Check(Checker, bool),
    Shut,
}

/// Names of the actions in forms.
const ACTIONS: &[(&[u8], Action)] = &[
    (b"ready", Action::Admin(Admin::Ready)),
    (b"enable", Action::Leave(Admin::Maintenance)),
    (b"drain", Action::Admin(Admin::Drain)),
    (b"stop", Action::Admin(Admin::Drain)),
    (b"start", Action::Leave(Admin::Drain)),
    (b"maint", Action::Admin(Admin::Maintenance)),
    (b"disable", Action::Admin(Admin::Maintenance)),
    (b"dhlth", Action::Check(Checker::Health, false)),
    (b"ehlth", Action::Check(Checker::Health, true)),
    (b"hrunn", Action::Force(Checker::Health, Operation::Up)),
    (b"hnolb", Action::Force(Checker::Health, Operation::Stopping)),
    (b"hdown", Action::Force(Checker::Health, Operation::Down)),
    (b"dagent", Action::Check(Checker::Agent, false)),
    (b"eagent", Action::Check(Checker::Agent, true)),
    (b"arunn", Action::Force(Checker::Agent, Operation::Up)),
    (b"adown", Action::Force(Checker::Agent, Operation::Down)),
    (b"shutdown", Action::Shut),
];

/// A parsed form.
#[derive(Debug, Default, PartialEq)]
struct Order {
    backend: Option<String>,
    action: Option<Vec<u8>>,
    servers: Vec<String>,
}

impl Order {
    fn read(text: &[u8]) -> Self {
        let mut order = Self::default();
        for pair in text.split(|byte| *byte == b'&') {
            let at = memchr::memchr(b'=', pair).unwrap_or(pair.len());
            let value = decode(pair.get(at + 1..).unwrap_or_default());
            let word = || config::text::from_bytes(&value);
            match &pair[..at] {
                b"b" => order.backend = Some(word()),
                b"action" => order.action = Some(value),
                b"s" => order.servers.push(word()),
                _ => {}
            }
        }
        order
    }
}

/// Decodes percent-encoding and `+` (WHATWG URL, application/x-www-form-urlencoded). Invalid escapes are kept.
pub(crate) fn decode(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| text.get(at).and_then(|byte| base::hex::digit(*byte));
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(high << 4 | low);
                at += 2;
            }
            (b'+', ..) => decoded.push(b' '),
            (byte, ..) => decoded.push(*byte),
        }
        at += 1;
    }
    decoded
}

/// Applies a form. Returns the result code that the page shows.
pub(super) async fn submit(
    process: Arc<Process>,
    worker: Rc<Worker>,
    generation: Arc<Generation>,
    request: PageRequest,
    submission: Submission,
) -> &'static str {
    if submission.is_too_long {
        return TOO_LONG;
    }
    let order = Order::read(&submission.text);
    let (Some(name), Some(action), false) = (&order.backend, &order.action, order.servers.is_empty()) else {
        return NONE;
    };
    let page = generation.proxy(request.proxy).stats.as_deref();
    let found = find_backend(&generation, name).filter(|proxy| page.is_some_and(|page| page.shows(&proxy.name)));
    let Some(proxy) = found else { return DENIED };
    let Some((_, action)) = ACTIONS.iter().find(|(known, _)| known == action) else { return FAULTY };
    let (mut changed, mut unknown) = (0, 0);
    for name in &order.servers {
        let Some(server) = proxy.servers().find(|server| *server.name == **name) else {
            unknown += 1;
            continue;
        };
        if *action == Action::Shut {
            shut_sessions(&process, proxy.place_of(server), Cause::Killed).await;
            changed += 1;
        } else {
            changed += usize::from(apply(&worker, proxy, server, *action));
        }
    }
    match (changed, unknown) {
        (0, 0) => NONE,
        (0, _) => FAULTY,
        (_, 0) => DONE,
        _ => PARTLY,
    }
}

/// Finds a backend by its name, or by its id after a sharp.
fn find_backend<'g>(generation: &'g Generation, name: &str) -> Option<&'g Proxy> {
    let is_called = |proxy: &Proxy| match name.strip_prefix('#') {
        Some(number) => number.parse() == Ok(proxy.id),
        None => *proxy.name == *name,
    };
    let mut proxies = generation.program.proxies.iter().map(|proxy| &**proxy);
    proxies.find(|proxy| proxy.backend.is_some() && is_called(proxy))
}

/// Changes a server. False: it has no such check.
fn apply(worker: &Worker, proxy: &Proxy, server: &Server, action: Action) -> bool {
    match action {
        Action::Admin(admin) => {
            set_admin(worker, proxy, server, admin, Orderer::Page);
            true
        }
        Action::Leave(state) => {
            let status = worker.process.live.proxies[proxy.index].status(server.index);
            let is_there = status.is_some_and(|status| status.admin == state);
            if is_there {
                set_admin(worker, proxy, server, Admin::Ready, Orderer::Page);
            }
            is_there
        }
        Action::Force(checker, operation) => {
            let has = checker == Checker::Health || server.agent.is_some();
            if has {
                force(worker, proxy, server, checker, operation, Orderer::Page);
            }
            has
        }
        Action::Check(checker, enabled) => {
            worker.process.live.proxies[proxy.index].enable_check(server.index, checker, enabled)
        }
        Action::Shut => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read() {
        let order = |backend: &str, action: &str, servers: &[&str]| Order {
            backend: Some(backend.into()),
            action: Some(action.into()),
            servers: servers.iter().map(|name| (*name).to_owned()).collect(),
        };
        for (text, expected) in [
            ("s=a&s=b&action=maint&b=%233", order("#3", "maint", &["a", "b"])),
            ("b=x+y&action=drain&s=%41", order("x y", "drain", &["A"])),
            ("b=%zz&action=&s=", order("%zz", "", &[""])),
            ("", Order::default()),
            ("other=1&&=", Order::default()),
        ] {
            assert_eq!(Order::read(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn no_more_than_a_buffer_is_kept() {
        let mut submission = Submission::default();
        submission.take(b"12345", 8);
        assert!(!submission.is_too_long);
        submission.take(b"6789", 8);
        assert!(submission.is_too_long);
        assert_eq!(submission.text.len(), 5);
    }
}
