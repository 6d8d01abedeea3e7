//! `debug dev …`: debugging of an installation (management manual, section 9.3). Commands that end the process, or
//! block a worker, do so on purpose: they require admin level and expert mode.

use config::spec::{LogLevel, RuntimeLevel};

use super::super::{Call, Command, Mode, Run};
use engine::worker::Worker;

const fn expert(name: &'static str, usage: &'static str, doc: &'static str, run: Run<Worker>) -> Command<Worker> {
    Command::new(name, usage, doc, run).at(RuntimeLevel::Admin).in_mode(Mode::Expert)
}

#[rustfmt::skip]
pub(super) const TABLE: &[Command<Worker>] = &[
    expert("debug dev exit", "debug dev exit [code]", "immediately exit the process", Run::Now(exit)),
    Command::new("debug dev hash", "debug dev hash [msg]", "return msg hashed if anon is set", Run::Now(hash)),
    expert("debug dev log", "debug dev log [msg] ...", "send this msg to global logs", Run::Now(log)),
    expert("debug dev loop", "debug dev loop <ms>", "loop this long, possibly isolated", Run::Now(turn)),
    expert("debug dev panic", "debug dev panic", "immediately trigger a panic", Run::Now(|_| std::process::abort())),
    expert("debug dev write", "debug dev write [size]", "write that many bytes in return", Run::Now(write)),
];

/// Ends the process immediately with the given status.
fn exit(call: &mut Call<'_, Worker>) {
    let digits: String = call.word(3).chars().take_while(char::is_ascii_digit).collect();
    call.state.logger.flush();
    std::process::exit(digits.parse::<i64>().map_or(0, |status| (status & 255) as i32));
}

fn hash(call: &mut Call<'_, Worker>) {
    let shown = call.conversation.anonymous.name(call.word(3)).into_owned();
    call.inform(&shown);
}

/// Sends the words to the logs of the process.
fn log(call: &mut Call<'_, Worker>) {
    let text = call.words.get(3..).unwrap_or_default().join(" ");
    call.state.logger.message(None, LogLevel::Info, &text);
    // The line must be written before the answer, even if the process is killed right after.
    call.state.logger.flush();
}

/// Maximum duration of `debug dev loop` in milliseconds.
const LONGEST_LOOP: u64 = 60_000;

/// Blocks this worker, to trigger the watchdog.
fn turn(call: &mut Call<'_, Worker>) {
    let wanted = call.word(3).parse::<u64>().unwrap_or(0).min(LONGEST_LOOP);
    let begin = rt::read_clock();
    while rt::read_clock().saturating_since(begin).as_millis() < u128::from(wanted) {}
}

fn write(call: &mut Call<'_, Worker>) {
    if call.word(3).is_empty() {
        call.refuse("Missing output size.");
        return;
    }
    let size = call.word(3).parse::<usize>().unwrap_or(0);
    if size >= rt::buffer_size() {
        call.refuse("Output too large, must be <tune.bufsize.");
        return;
    }
    call.answer.push(vec![b'.'; size]);
    call.answer.push("\n");
}
