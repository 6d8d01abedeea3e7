//! The master CLI (`-S`; management guide, section 9.4): its own commands, and the prefix `@` that forwards commands to
//! a worker. Must never interpret commands for a worker.

use super::counter::Counter;
use super::life::{Master, ReloadKind, StopSignal};
use super::{debug, forward};
use crate::version;
use config::spec::RuntimeLevel;
use control::runtime::{
    Answer, Call, Command, CommandSet, CommandTarget, Conversation, Disconnected, OpenConnections, Opened, Pending,
    Prompt, ReceivedCommand, RemainingInput, Run, accept,
};
use engine::handshake::entrance;
use policy::program::Bind;
use std::rc::Rc;
use std::time::Duration;

/// Maximum number of connections.
const MOST: u32 = 256;
/// Inactivity timeout of a connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// The sockets of `-S`.
pub struct Sockets {
    pub opened: Vec<Opened>,
    /// Level and `bind` line of each, by index.
    pub rights: Vec<(RuntimeLevel, Bind)>,
    /// Their addresses, the value of `$HAPROXY_MASTER_CLI`.
    pub addresses: String,
}

/// Accepts connections on every socket.
pub fn open(office: &Rc<Master>, sockets: Sockets, environment: Vec<String>) {
    let crowd = OpenConnections::new(MOST);
    let counter = Rc::new(Counter(Rc::clone(office), environment));
    for opened in sockets.opened {
        let Some((level, bind)) = sockets.rights.get(opened.index).cloned() else { continue };
        let set = CommandSet { state: Rc::clone(&counter), tables: &[TABLE, debug::TABLE] };
        let mut first = Conversation::begin(level, PATIENCE);
        first.prompt = Prompt::Silent;
        let (socket, entrance) = (opened.socket, entrance(&bind));
        rt::spawn(rt::Class::Normal, rt::NO_TAG, accept(set, socket, entrance, first, Rc::clone(&crowd), || false));
    }
}

/// Returns the names of its commands, including those of the protocol.
pub fn commands() -> impl Iterator<Item = &'static str> {
    TABLE.iter().chain(control::runtime::command::basic::<Counter>()).map(|row| row.name)
}

const TABLE: &[Command<Counter>] = &[
    Command::new("@!<pid>", "@!<pid>", "send a command to the <pid> process", Run::Now(nothing)),
    Command::new(
        "@<relative pid>",
        "@<relative pid>",
        "send a command to the <relative pid> process",
        Run::Now(nothing),
    ),
    Command::new("@master", "@master", "send a command to the master process", Run::Now(nothing)),
    Command::new("hard-reload", "hard-reload", "achieve a hard-reload (-st) of haproxy", Run::Gradual(hard_reload))
        .at(RuntimeLevel::Operator),
    Command::new("reload", "reload", "achieve a soft-reload (-sf) of haproxy", Run::Gradual(soft_reload))
        .at(RuntimeLevel::Operator),
    Command::new("show env", "show env [var]", "dump environment variables known to the process", Run::Now(show_env))
        .at(RuntimeLevel::Operator),
    Command::new("mcli-debug-mode", "", "debug the master process itself", Run::Now(debug_mode))
        .at(RuntimeLevel::Admin),
    Command::new("show cli sockets", "show cli sockets", "dump list of cli sockets", Run::Now(nothing)),
    Command::new("show proc", "show proc", "show processes status", Run::Now(show_proc)).at(RuntimeLevel::Operator),
    Command::new(
        "show startup-logs",
        "show startup-logs",
        "report logs emitted during HAProxy startup",
        Run::Now(show_startup_logs),
    )
    .at(RuntimeLevel::Operator),
];

/// Sets the flag that the prompt shows and that [`debug::TABLE`] requires.
fn debug_mode(call: &mut Call<'_, Counter>) {
    if !call.word(1).is_empty() {
        call.conversation.debug = call.word(1) == "on";
    }
}

/// For prefixes, which are handled before the lookup and are in the table for `help`; and for the list of sockets,
/// which belong to the workers: HAProxy's master lists none.
fn nothing(_: &mut Call<'_, Counter>) {}

fn show_env(call: &mut Call<'_, Counter>) {
    let wanted = call.word(2).to_owned();
    let is_wanted = |line: &&String| wanted.is_empty() || line.split('=').next() == Some(wanted.as_str());
    let found: Vec<&String> = call.state.1.iter().filter(is_wanted).collect();
    if found.is_empty() {
        call.refuse("Variable not found");
        return;
    }
    let text: String = found.into_iter().map(|line| format!("{line}\n")).collect();
    call.answer.push(text);
}

fn show_proc(call: &mut Call<'_, Counter>) {
    if !["", "debug"].contains(&call.word(2)) {
        call.refuse("'show proc' only supports 'debug' as argument");
        return;
    }
    call.answer.push(call.state.0.show());
}

fn show_startup_logs(call: &mut Call<'_, Counter>) {
    call.answer.push(call.state.0.logs());
}

fn soft_reload<'a>(call: &'a mut Call<'_, Counter>) -> Pending<'a> {
    Box::pin(reload(call, ReloadKind::InPlace))
}

fn hard_reload<'a>(call: &'a mut Call<'_, Counter>) -> Pending<'a> {
    Box::pin(reload(call, ReloadKind::NewWorker(StopSignal::Hard)))
}

/// Reloads, answers with the result and the messages, and closes the connection.
async fn reload(call: &mut Call<'_, Counter>, wish: ReloadKind) -> Result<(), Disconnected> {
    let success = call.state.0.reloaded(wish).await;
    call.answer.push(format!("Success={}\n--\n{}\n", u8::from(success), call.state.0.logs()));
    call.conversation.leaving = true;
    Ok(())
}

impl CommandTarget for Counter {
    type Generation = ();

    fn generation(&self) {}

    fn version(&self) -> &str {
        version::runtime()
    }

    fn uptime(&self, conversation: &Conversation) -> u64 {
        let started = conversation.target.and_then(|pid| self.0.worker_started(pid));
        rt::now().saturating_since(started.unwrap_or_else(|| self.0.started())).as_secs()
    }

    fn is_interactive(&self) -> bool {
        true
    }

    fn place(&self, conversation: &Conversation) -> String {
        let flags: String = [(conversation.experimental, 'x'), (conversation.expert, 'e'), (conversation.debug, 'd')]
            .iter()
            .filter(|flag| flag.0)
            .map(|flag| flag.1)
            .collect();
        let flags = if flags.is_empty() { flags } else { format!("({flags})") };
        match conversation.target {
            Some(pid) => format!("{pid}{flags}"),
            None if self.0.has_failed() => format!("master[ReloadFailed]{flags}"),
            None => format!("master{flags}"),
        }
    }

    fn addressed<'a>(&self, command: &'a [u8]) -> &'a [u8] {
        let command = command.trim_ascii();
        let own = [&b"@master"[..], b"@"].into_iter().filter_map(|prefix| command.strip_prefix(prefix));
        let mut own = own.filter(|rest| rest.first().is_some_and(u8::is_ascii_whitespace));
        own.next().map_or(command, <[u8]>::trim_ascii)
    }

    fn takes_whole(&self, line: &[u8]) -> bool {
        line.trim_ascii_start().starts_with(b"@@")
    }

    fn route<'a>(
        &'a self,
        typed: ReceivedCommand<'a>,
        conversation: &'a mut Conversation,
        answer: &'a mut Answer,
        rest: &'a mut RemainingInput,
    ) -> Option<Pending<'a>> {
        let done = || -> Option<Pending<'a>> { Some(Box::pin(std::future::ready(Ok(())))) };
        let command = typed.command.trim_ascii();
        let Some(addressed) = command.strip_prefix(b"@") else {
            let pid = conversation.target.filter(|_| !is_for_the_connection(command))?;
            return Some(Box::pin(forward::command(
                &self.0,
                pid,
                ReceivedCommand { command, ..typed },
                conversation,
                answer,
            )));
        };
        let is_session = addressed.starts_with(b"@");
        let addressed = addressed.strip_prefix(b"@").unwrap_or(addressed);
        let end = addressed.iter().position(u8::is_ascii_whitespace).unwrap_or(addressed.len());
        let (prefix, rest_of_line) = (&addressed[..end], addressed[end..].trim_ascii());
        let Some(target) = self.target(prefix) else {
            let ats = if is_session { "@@" } else { "@" };
            answer.push(format!("Can't find the target PID matching the prefix '{ats}{}'\n", prefix.escape_ascii()));
            return done();
        };
        let typed = ReceivedCommand { command: rest_of_line, ..typed };
        match target {
            Some(pid) if is_session => {
                Some(Box::pin(forward::session(&self.0, pid, typed, conversation, answer, rest)))
            }
            _ if rest_of_line.is_empty() => {
                conversation.target = target;
                done()
            }
            Some(pid) => Some(Box::pin(forward::command(&self.0, pid, typed, conversation, answer))),
            None => None,
        }
    }
}

/// Whether a command concerns the connection itself and is executed by the master.
fn is_for_the_connection(command: &[u8]) -> bool {
    let first = command.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    [&b"prompt"[..], b"quit", b"expert-mode", b"experimental-mode", b"mcli-debug-mode", b"operator", b"user"]
        .contains(&first)
}

impl Counter {
    /// Returns the target of a prefix: `None` if unknown, `Some(None)` for the master.
    fn target(&self, prefix: &[u8]) -> Option<Option<u32>> {
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<u32>().ok();
        match prefix {
            b"" | b"master" => Some(None),
            [b'!', pid @ ..] => number(pid).filter(|pid| self.0.knows(*pid)).map(Some),
            relative => number(relative).and_then(|number| self.0.worker(number)).map(Some),
        }
    }
}
