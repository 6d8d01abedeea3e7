//! Executes commands, one after the other, in a session. Must never print anything but answers.

use super::answer::{AnswerSink, Verdict};
use super::exchange::{Answer, AnswerEnd, ExchangeError, TimeLimits, exchange};
use super::json;
use super::keyboard::Keyboard;
use super::line::{Command, FramedPayload, Target};
use super::output::{HeldAnswer, Output};
use super::session::{Owner, Session};
use crate::stats_socket::Socket;
use std::time::Duration;

/// Time limit of an answer, unless the user or the command sets another one.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit of the answer to a reload, which comes after the configuration was read.
const PATIENCE_OF_RELOAD: Duration = Duration::from_secs(300);
/// Time limit of a connection.
const PATIENCE_OF_CONNECT: Duration = Duration::from_secs(5);
/// Longest time that a command may ask for; the API's own limit is 24 days.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 86_400);

/// First words of the answer of a master without `@@`.
const NO_SESSIONS: &[u8] = b"Can't find the target PID matching the prefix '@@";
/// First words of the answer of a master that does not know a process.
const NO_PROCESS: &[u8] = b"Can't find the target PID";

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandResult {
    Accepted,
    /// The API has answered with an error, which was printed.
    Refused,
    /// There is no answer, for that reason.
    Unanswered(String),
    /// The user has interrupted the command.
    Interrupted,
    /// `quit`: no further command is wanted.
    Left,
}

/// A client with its session.
#[derive(Debug)]
pub struct Client {
    pub socket: Socket,
    pub session: Session,
    /// Time limit of answers set by the user. `Some(None)`: unlimited.
    timeout: Option<Option<Duration>>,
    /// Ctrl-C interrupts a command.
    pub has_keyboard: bool,
    /// `quit` was executed.
    pub has_left: bool,
}

impl Client {
    /// Creates a client that begins a session.
    pub fn new(socket: Socket, session: Session, timeout: Option<Option<Duration>>) -> Self {
        Self { socket, session, timeout, has_keyboard: false, has_left: false }
    }

    /// Executes a command and prints its answer.
    pub fn run(&mut self, command: &Command, payload: Option<&[u8]>, output: &mut Output) -> CommandResult {
        let words = command.words();
        if let Some(target) = &command.target {
            self.is_addressed(target);
            if command.text.is_empty() {
                self.session.target = target.clone();
                return CommandResult::Accepted;
            }
        }
        match words.first().map(String::as_str) {
            Some("quit" | "exit") => {
                self.has_left = true;
                return CommandResult::Left;
            }
            // The client has a prompt of its own.
            Some("prompt") | None => return CommandResult::Accepted,
            Some(_) => {}
        }
        let payload = payload.map(FramedPayload::new);
        let target = command.target.clone().unwrap_or_else(|| self.session.target.clone());
        match target {
            Target::EveryWorker => self.run_for_every_worker(command, payload.as_ref(), output),
            target => self.run_for(&target, command, payload.as_ref(), output).unwrap_or_else(CommandResult::from),
        }
    }

    /// Notes that the user has addressed a worker: the socket is that of a master.
    fn is_addressed(&mut self, target: &Target) {
        if *target != Target::Owner && self.session.owner == Owner::Worker {
            self.session.owner = Owner::Master;
        }
    }

    fn run_for_every_worker(
        &mut self,
        command: &Command,
        payload: Option<&FramedPayload>,
        output: &mut Output,
    ) -> CommandResult {
        let processes = match self.query_of(&Target::Owner, b"show proc") {
            Ok((_, text)) => json::workers(&text),
            Err(error) => return error.into(),
        };
        if processes.is_empty() {
            return CommandResult::Unanswered(format!("{}: 'show proc' lists no worker", self.socket.shown()));
        }
        let mut result = CommandResult::Accepted;
        for process in processes {
            let name = format!("!{process}");
            if !output.is_json {
                output.line(&format!("@{name}"));
            }
            match self.run_for(&Target::Worker(name), command, payload, output) {
                Ok(CommandResult::Accepted) => {}
                Ok(other) => result = other,
                Err(error) => return error.into(),
            }
        }
        result
    }

    /// Executes a command in one process.
    fn run_for(
        &mut self,
        target: &Target,
        command: &Command,
        payload: Option<&FramedPayload>,
        output: &mut Output,
    ) -> Result<CommandResult, ExchangeError> {
        let words = command.words();
        let form = output.is_json.then(|| json::machine_form(&words, &command.text)).flatten();
        let text = form.as_ref().unwrap_or(&command.text);
        let answer = if output.is_json {
            let mut held = HeldAnswer::default();
            let answer = self.ask(target, text, payload, &mut held)?;
            if held.is_cut {
                return Err(ExchangeError::Unanswered("the answer is too long for JSON".to_owned()));
            }
            let document = held.document(&words, answer.verdict);
            match target {
                Target::Worker(name)
                    if *target != self.session.target && command.target == Some(Target::EveryWorker) =>
                {
                    output.line(&json::of_worker(name, &document));
                }
                _ => output.line(&document),
            }
            answer
        } else {
            self.ask(target, text, payload, output)?
        };
        if answer.verdict == Verdict::Refused {
            return Ok(CommandResult::Refused);
        }
        self.session.note(&words);
        Ok(CommandResult::Accepted)
    }

    /// Asks for a text that is not printed.
    ///
    /// # Errors
    /// There is no answer.
    pub fn query(&mut self, text: &str) -> Result<(Verdict, String), ExchangeError> {
        let target = self.session.target.clone();
        self.query_of(&target, text.as_bytes())
    }

    fn query_of(&mut self, target: &Target, text: &[u8]) -> Result<(Verdict, String), ExchangeError> {
        let mut held = HeldAnswer::default();
        let answer = self.ask(target, text, None, &mut held)?;
        Ok((answer.verdict, String::from_utf8_lossy(&held.bytes).into_owned()))
    }

    /// Sends a command and reads its answer. A master that does not know `@@` is asked again with `@`.
    fn ask(
        &mut self,
        target: &Target,
        text: &[u8],
        payload: Option<&FramedPayload>,
        sink: &mut dyn AnswerSink,
    ) -> Result<Answer, ExchangeError> {
        let words = super::line::words(text);
        let keyboard = self.has_keyboard.then(Keyboard::begin).flatten();
        let mut is_second = false;
        loop {
            let request = self.session.request(target, text, payload);
            let is_for_session = matches!(target, Target::Worker(_)) && self.session.owner == Owner::Master;
            let mut withheld = Withheld { sink, is_withheld: is_for_session, was_old: false };
            let (limits, end) = (self.limits(&words), end_of(&words));
            let answer = exchange(&self.socket, &request, limits, end, keyboard.as_ref(), &mut withheld)?;
            if withheld.was_old {
                self.session.owner = Owner::OldMaster;
                is_second = true;
                continue;
            }
            if is_second && answer.first.starts_with(NO_PROCESS) {
                // It is the process that it does not know.
                self.session.owner = Owner::Master;
            }
            if !answer.refused_setting.is_empty() && self.session.owner == Owner::Worker {
                self.session.owner = Owner::Master;
            }
            return Ok(answer);
        }
    }

    /// Returns the time limits of a command.
    fn limits(&self, words: &[String]) -> TimeLimits {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let silence = match (self.timeout, word(0)) {
            (Some(set), _) => set,
            (None, "reload" | "hard-reload") => Some(PATIENCE_OF_RELOAD),
            (None, "wait") => Some(PATIENCE + delay(word(1)).min(LONGEST_WAIT)),
            (None, _) if is_followed(words) => None,
            (None, _) => Some(PATIENCE),
        };
        TimeLimits { connect: PATIENCE_OF_CONNECT, silence }
    }
}

impl From<ExchangeError> for CommandResult {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Unanswered(why) => Self::Unanswered(why),
            ExchangeError::Interrupted => Self::Interrupted,
        }
    }
}

/// Passes an answer on, except that of a master without `@@`.
struct Withheld<'a> {
    sink: &'a mut dyn AnswerSink,
    is_withheld: bool,
    was_old: bool,
}

impl AnswerSink for Withheld<'_> {
    fn take(&mut self, verdict: Verdict, bytes: &[u8]) {
        self.was_old |= self.is_withheld && bytes.starts_with(NO_SESSIONS);
        if !self.was_old {
            self.sink.take(verdict, bytes);
        }
    }
}

/// Whether a command prints events as they happen (`show events <sink> -w`).
fn is_followed(words: &[String]) -> bool {
    let is_events = matches!(words, [first, second, ..] if first == "show" && second == "events");
    is_events && words.iter().skip(2).any(|word| word.starts_with('-') && word.contains('w'))
}

/// Returns how the answer to a command ends.
fn end_of(words: &[String]) -> AnswerEnd {
    let waits = words.first().is_some_and(|first| first == "wait") || is_followed(words);
    if waits { AnswerEnd::EmptyLine } else { AnswerEnd::Closed }
}

/// Parses a time of the API: a number with a unit, milliseconds without one. Zero if it is none.
fn delay(word: &str) -> Duration {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let number = word[..digits].parse::<u32>().unwrap_or(0);
    match &word[digits..] {
        "us" => Duration::from_micros(number.into()),
        "" | "ms" => Duration::from_millis(number.into()),
        "s" => Duration::from_secs(number.into()),
        "m" => Duration::from_secs(u64::from(number) * 60),
        "h" => Duration::from_secs(u64::from(number) * 3600),
        "d" => Duration::from_secs(u64::from(number) * 86_400),
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn commands_that_wait_have_longer_limits() {
        let session = Session::new(Owner::Worker, Target::Owner);
        let client = Client::new(Socket::Unix("/x".into()), session.clone(), None);
        for (text, seconds) in [
            ("show info", Some(10)),
            ("wait 2000 srv-removable app/s1", Some(12)),
            ("wait 1m", Some(70)),
            ("wait -h", Some(10)),
            ("reload", Some(300)),
            ("show events buf0", Some(10)),
            ("show events buf0 -w", None),
            ("show events buf0 -nw", None),
        ] {
            assert_eq!(client.limits(&words(text)).silence.map(|time| time.as_secs()), seconds, "{text}");
        }
        let set = Client::new(Socket::Unix("/x".into()), session, Some(Some(Duration::from_secs(3))));
        assert_eq!(set.limits(&words("reload")).silence, Some(Duration::from_secs(3)));
    }
}
