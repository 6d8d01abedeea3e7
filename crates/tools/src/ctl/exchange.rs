//! One request and its answer over one connection. Must never wait without a limit, unless the user asks for it.

use super::answer::{AnswerReader, AnswerSink, Verdict};
use super::keyboard::Keyboard;
use super::session::Request;
use crate::stats_socket::{Connection, Socket};
use rt::clock::Point;
use std::io::{Read, Write};
use std::time::Duration;

/// Time limits of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// For a connection to be established, and for a request to be accepted.
    pub connect: Duration,
    /// Without a byte of the answer; `None`: unlimited.
    pub silence: Option<Duration>,
}

/// Reason why there is no whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeError {
    /// No connection, no answer, or none in time.
    Unanswered(String),
    /// The user has interrupted the command.
    Interrupted,
}

/// An answer that was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub verdict: Verdict,
    /// Its first line.
    pub first: Vec<u8>,
    /// The first line of a refused setting; empty if all were accepted.
    pub refused_setting: Vec<u8>,
}

/// How a command's answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEnd {
    /// With the connection.
    Closed,
    /// With an empty line: the command would end at once if the client closed its side.
    EmptyLine,
}

/// Sends a request and passes its answer on as it arrives.
///
/// # Errors
/// See [`ExchangeError`].
pub fn exchange(
    socket: &Socket,
    request: &Request,
    limits: TimeLimits,
    end: AnswerEnd,
    keyboard: Option<&Keyboard>,
    sink: &mut dyn AnswerSink,
) -> Result<Answer, ExchangeError> {
    let unanswered = |why: String| ExchangeError::Unanswered(format!("{}: {why}", socket.shown()));
    let mut connection = socket.connect(limits.connect).map_err(|error| unanswered(reason(&error)))?;
    // A process that refuses a long request answers and closes before it has read all of it.
    let sent = connection.write_all(&request.bytes);
    if request.stays_open && end == AnswerEnd::Closed {
        let _ = connection.finish_sending();
    }
    let mut reader = AnswerReader::new(request.settings);
    let read = receive(&mut connection, limits.silence, end, keyboard, &mut reader, sink);
    let verdict = reader.finish(sink);
    let (first, refused_setting) = (reader.first_line().to_vec(), reader.refused_setting().to_vec());
    match (read, verdict) {
        (Err(ReadError::Interrupted), _) => Err(ExchangeError::Interrupted),
        (Err(ReadError::Silent), _) => {
            let seconds = limits.silence.unwrap_or_default().as_secs_f64();
            Err(unanswered(format!("no answer within {seconds} s (-t sets the limit)")))
        }
        (Err(ReadError::System(error)), None) => Err(unanswered(reason(&error))),
        (_, Some(verdict)) => Ok(Answer { verdict, first, refused_setting }),
        (Ok(()), None) => Err(unanswered(match sent {
            Err(error) => reason(&error),
            Ok(()) => "the connection was closed without an answer".to_owned(),
        })),
    }
}

enum ReadError {
    Silent,
    Interrupted,
    System(std::io::Error),
}

/// Reads to the end of the answer.
fn receive(
    connection: &mut Connection,
    silence: Option<Duration>,
    end: AnswerEnd,
    keyboard: Option<&Keyboard>,
    reader: &mut AnswerReader,
    sink: &mut dyn AnswerSink,
) -> Result<(), ReadError> {
    /// Interval at which the keyboard is read.
    const TICK: Duration = Duration::from_millis(100);
    let mut buffer = vec![0; 64 * 1024];
    let mut last = Point::now();
    let mut is_sending = true;
    while !(end == AnswerEnd::EmptyLine && reader.has_ended()) {
        let left = silence.map(|silence| last.remaining(silence));
        if left == Some(Duration::ZERO) {
            return Err(ReadError::Silent);
        }
        let tick = keyboard.map(|_| TICK);
        connection.limit_reads(left.into_iter().chain(tick).min()).map_err(ReadError::System)?;
        match connection.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                reader.take(&buffer[..count], sink);
                last = Point::now();
                if is_sending && end == AnswerEnd::Closed && !reader.refused_setting().is_empty() {
                    // A master keeps the connection open for more.
                    is_sending = false;
                    let _ = connection.finish_sending();
                }
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(ReadError::System(error)),
        }
        if keyboard.is_some_and(Keyboard::is_interrupted) {
            return Err(ReadError::Interrupted);
        }
    }
    Ok(())
}

/// Whether a read may be repeated: a time limit has passed, or a signal has arrived.
fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Returns the system's message, without the number that the standard library appends.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) if error.raw_os_error().is_some() => text[..end].to_owned(),
        _ => text,
    }
}
