//! A connection of the runtime API: reads lines, calls commands, writes answers and prompts (management manual, section
//! 9.3). Must never buffer more input than a line and a payload of bounded size.

use std::rc::Rc;

use conn::handshake::Accepted;

use super::call::{Call, Conversation, Prompt};
use super::command::{Command, CommandSet, CommandTarget, Mode, RemainingInput, Run};
use super::{Answer, Disconnected, command, help, line, scripted};

const LINE_TOO_LONG: &str = "The command line is too big for the buffer size. Please change 'tune.bufsize' in the \
                             configuration to use a bigger command.\n";
const PAYLOAD_TOO_LONG: &str = "The payload is too big. Please change 'tune.cli.max-payload-size' in the configuration \
                                to use a bigger payload.\n";
const TOO_MANY_WORDS: &str = "Too many arguments. Commands must have at most 64 arguments.";

/// Serves a connection until it closes.
pub async fn serve<S: CommandTarget>(set: CommandSet<S>, accepted: Accepted, conversation: Conversation) {
    let Accepted { transport, input, .. } = accepted;
    let answer = Answer::new(transport, conversation.timeout, rt::buffer_size());
    let open = Open::begin(Rc::clone(&set.state));
    let rest = RemainingInput { typed: input.data().to_vec(), ended: false };
    drop(input);
    let mut connection = Connection { set, conversation, answer, rest };
    // After an error the peer is no longer connected.
    if connection.converse().await.is_ok() {
        connection.answer.close().await;
    }
    drop(open);
}

/// Counts a connection as open until dropped.
struct Open<S: CommandTarget>(Rc<S>);

impl<S: CommandTarget> Open<S> {
    fn begin(state: Rc<S>) -> Self {
        state.begun();
        Self(state)
    }
}

impl<S: CommandTarget> Drop for Open<S> {
    fn drop(&mut self) {
        self.0.ended();
    }
}

struct Connection<S: CommandTarget> {
    set: CommandSet<S>,
    conversation: Conversation,
    answer: Answer,
    rest: RemainingInput,
}

/// Commands that only change the connection's state.
const SETTINGS: [&str; 6] = ["prompt", "expert-mode", "experimental-mode", "mcli-debug-mode", "operator", "user"];

/// The result of a search in the input.
enum InputSearch<T> {
    Found(T),
    /// The input ended before.
    Ended,
    /// The input is too long.
    TooLong,
}

impl<S: CommandTarget> Connection<S> {
    async fn converse(&mut self) -> Result<(), Disconnected> {
        loop {
            self.prompt("> ");
            self.flush().await?;
            self.answer.patience = self.conversation.timeout;
            let found = self.until(rt::buffer_size(), |typed| memchr::memchr(b'\n', typed)).await?;
            let typed = match found {
                InputSearch::Found(length) => self.take(length, length + 1),
                InputSearch::Ended => return Ok(()),
                InputSearch::TooLong => {
                    self.answer.push(LINE_TOO_LONG);
                    return self.flush().await;
                }
            };
            match line::announces_payload(&typed) {
                None => self.line(&typed, None).await?,
                Some((typed, marker)) => match self.payload(marker).await? {
                    InputSearch::Found(payload) => self.line(typed, Some((&payload, marker))).await?,
                    InputSearch::Ended => return Ok(()),
                    InputSearch::TooLong => {
                        self.answer.push(PAYLOAD_TOO_LONG);
                        return self.flush().await;
                    }
                },
            }
            if self.conversation.leaving || self.conversation.prompt == Prompt::Single {
                return self.flush().await;
            }
        }
    }

    /// Sends all buffered bytes and counts them.
    async fn flush(&mut self) -> Result<(), Disconnected> {
        let flushed = self.answer.flush().await;
        self.set.state.sent(self.answer.take_sent());
        flushed
    }

    /// Reads the payload that a line announced.
    async fn payload(&mut self, marker: &[u8]) -> Result<InputSearch<Vec<u8>>, Disconnected> {
        if line::payload_end(&self.rest.typed, marker).is_none() {
            self.prompt("+ ");
        }
        // A payload that fits into a buffer is always accepted.
        let most = self.set.state.max_payload().max(rt::buffer_size());
        let found = self.until(most, |typed| line::payload_end(typed, marker)).await?;
        Ok(match found {
            InputSearch::Found((length, all)) => InputSearch::Found(self.take(length, all)),
            InputSearch::Ended => InputSearch::Ended,
            InputSearch::TooLong => InputSearch::TooLong,
        })
    }

    /// Reads until `find` succeeds on the input, which must be shorter than `most` bytes until then.
    async fn until<T>(
        &mut self,
        most: usize,
        find: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<InputSearch<T>, Disconnected> {
        loop {
            if let Some(found) = find(&self.rest.typed) {
                return Ok(InputSearch::Found(found));
            }
            if self.rest.typed.len() >= most {
                return Ok(InputSearch::TooLong);
            }
            if self.rest.ended {
                return Ok(InputSearch::Ended);
            }
            self.flush().await?;
            let mut buffer = rt::buffer();
            self.rest.ended = self.answer.read(&mut buffer).await? == 0;
            self.rest.typed.extend_from_slice(buffer.data());
        }
    }

    /// Removes `all` bytes from the front of the input and returns the first `length` of them.
    fn take(&mut self, length: usize, all: usize) -> Vec<u8> {
        let taken = self.rest.typed[..length].to_vec();
        self.rest.typed.drain(..all.min(self.rest.typed.len()));
        taken
    }

    fn prompt(&mut self, mark: &str) {
        if self.conversation.prompt != Prompt::Shown {
            return;
        }
        let place = self.set.state.place(&self.conversation);
        if self.conversation.timed {
            let up = self.set.state.uptime(&self.conversation);
            let (days, hours, minutes, seconds) = (up / 86_400, up / 3_600 % 24, up / 60 % 60, up % 60);
            let gap = if place.is_empty() { "" } else { " " };
            self.answer.push(format!("[{days}:{hours:02}:{minutes:02}:{seconds:02}]{gap}"));
        }
        self.answer.push(place);
        self.answer.push(mark);
    }

    /// Executes every command of a line. The payload belongs to the last.
    async fn line(&mut self, typed: &[u8], payload: Option<(&[u8], &[u8])>) -> Result<(), Disconnected> {
        let whole = self.set.state.takes_whole(typed);
        let commands = if whole { vec![typed] } else { line::commands(typed) };
        let last = commands.len().saturating_sub(1);
        for (at, command) in commands.into_iter().enumerate() {
            let payload = payload.filter(|_| at == last);
            let typed = command::ReceivedCommand { command, payload };
            let said = self.answer.waiting().len();
            let routed = match self.set.state.route(typed, &mut self.conversation, &mut self.answer, &mut self.rest) {
                Some(answered) => answered.await.map(|()| true)?,
                None => false,
            };
            if routed {
                self.answer.relieve().await?;
                continue;
            }
            let words = line::words(self.set.state.addressed(command));
            let generation = self.set.state.generation();
            let mut call = Call {
                state: &*self.set.state,
                generation: &generation,
                words: words.as_deref().unwrap_or_default(),
                payload: payload.map(|(payload, _)| payload),
                conversation: &mut self.conversation,
                answer: &mut self.answer,
            };
            if words.is_err() {
                call.refuse(TOO_MANY_WORDS);
            } else {
                call.answer.has_typed = !self.rest.typed.is_empty();
                let has_more = call.answer.has_typed;
                dispatch(&self.set, &mut call).await?;
                if has_more && !self.answer.has_typed {
                    self.rest.typed.clear();
                }
            }
            if self.conversation.leaving {
                return Ok(());
            }
            let first = words.ok().and_then(|words| words.into_iter().next()).unwrap_or_default();
            let is_setting = self.set.state.is_interactive() && SETTINGS.contains(&&*first);
            if !is_setting || self.answer.waiting().len() > said {
                self.answer.push("\n");
            }
            self.answer.relieve().await?;
        }
        Ok(())
    }
}

/// Executes a command of the process itself, with all rights, on a worker. `None`: it would have to wait, or its answer
/// is too long.
pub(super) fn execute<S: CommandTarget>(
    set: &CommandSet<S>,
    words: &[String],
    payload: Option<&[u8]>,
) -> Option<Vec<u8>> {
    let mut conversation = Conversation::begin(config::spec::RuntimeLevel::Admin, std::time::Duration::ZERO);
    conversation.expert = true;
    let (generation, mut answer) = (set.state.generation(), Answer::kept());
    let row = set.find(words)?;
    let mut call = Call {
        state: &*set.state,
        generation: &generation,
        words,
        payload,
        conversation: &mut conversation,
        answer: &mut answer,
    };
    match row.run {
        Run::Now(run) => run(&mut call),
        Run::Gradual(run) => {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            let std::task::Poll::Ready(Ok(())) = run(&mut call).as_mut().poll(&mut cx) else { return None };
        }
    }
    Some(answer.into_bytes())
}

/// Finds the command, checks permissions, and calls it.
async fn dispatch<S: CommandTarget>(set: &CommandSet<S>, call: &mut Call<'_, S>) -> Result<(), Disconnected> {
    if call.words.is_empty() {
        return Ok(());
    }
    let row = set.find(call.words).filter(|row| row.mode != Mode::Debug || call.conversation.debug);
    if let Some(place) = set.find_scripted(call.words, row.map_or(0, |row| row.words().count())) {
        return scripted::run(set, place, call).await;
    }
    let Some(row) = row else {
        let text = help::unknown(set, call.words, call.conversation);
        call.inform(&text);
        return Ok(());
    };
    if row.name == "help" {
        let text = help::matching(set, &call.words[1..], call.conversation);
        call.inform(&text);
        return Ok(());
    }
    if let Some(sentence) = missing_mode(row, call.conversation) {
        call.refuse(sentence);
        return Ok(());
    }
    if !call.permits(row.level) {
        return Ok(());
    }
    match row.run {
        Run::Now(run) => {
            run(call);
            Ok(())
        }
        Run::Gradual(run) => run(call).await,
    }
}

fn missing_mode<S: CommandTarget>(row: &Command<S>, conversation: &Conversation) -> Option<&'static str> {
    match row.mode {
        Mode::Expert if !conversation.expert => Some("This command is restricted to expert mode only."),
        Mode::Experimental if !conversation.experimental => {
            Some("This command is restricted to experimental mode only.")
        }
        _ => None,
    }
}
