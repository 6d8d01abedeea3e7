//! `show errors`: the last invalid HTTP/1 messages (management manual, section 9.3). Must never capture one.

use std::fmt::Write as _;
use std::sync::Arc;

use config::spec::RuntimeLevel;
use policy::program::Program;

use super::super::{Call, Command, Pending, Run};
use engine::captures::Capture;
use engine::captures::Captures;
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show errors",
    "show errors [<px>] [request|response]",
    "report last request and/or response errors for each proxy",
    Run::Gradual(show),
)
.at(RuntimeLevel::Operator)];

/// Selects captures.
struct CapturesQuery {
    /// The id of the frontend or backend; `None`: all.
    proxy: Option<u32>,
    requests: bool,
    responses: bool,
}

impl CapturesQuery {
    fn read(program: &Program, words: &[String]) -> Result<Self, &'static str> {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let proxy = match word(0) {
            "" => None,
            name => match program.proxies.iter().find(|proxy| *proxy.name == *name) {
                Some(proxy) => Some(proxy.id),
                // An id that no proxy has selects nothing.
                None => match name.parse::<i64>().map_err(|_| "No such proxy.\n")? {
                    -1 => None,
                    number => Some(u32::try_from(number).unwrap_or(u32::MAX)),
                },
            },
        };
        let (requests, responses) = match word(1) {
            "" => (true, true),
            "request" => (true, false),
            "response" => (false, true),
            _ => return Err("Expects either 'request' or 'response'.\n"),
        };
        Ok(Self { proxy, requests, responses })
    }

    fn wants(&self, program: &Program, capture: &Capture) -> bool {
        let is_wanted = |index: usize| program.proxies.get(index).is_some_and(|proxy| self.proxy == Some(proxy.id));
        let kind = if capture.server.is_some() { self.responses } else { self.requests };
        let backend = capture.server.is_some_and(|(backend, _)| is_wanted(backend));
        kind && (self.proxy.is_none() || is_wanted(capture.frontend) || backend)
    }
}

fn show<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let program = &call.generation.program;
        let wish = match CapturesQuery::read(program, call.words.get(2..).unwrap_or_default()) {
            Ok(wish) => wish,
            Err(sentence) => {
                call.refuse(sentence);
                return Ok(());
            }
        };
        let captures = &call.state.process.service::<Captures>();
        let kept: Vec<Arc<Capture>> = captures.all();
        let _ = writeln!(call.answer, "Total events captured on [{}] : {}", date(rt::wall()), captures.count());
        for capture in kept.iter().filter(|capture| wish.wants(program, capture)) {
            call.answer.push(head(program, capture));
            let mut at = 0;
            while at < capture.bytes.len() {
                let mut text = String::new();
                at = line(&capture.bytes, at, &mut text);
                call.answer.push(text);
                call.answer.relieve().await?;
            }
        }
        Ok(())
    })
}

fn date(time: base::WallTime) -> String {
    let mut text = Vec::new();
    expression::log_format::date_with_millis(&mut text, time, rt::local_offset(time.seconds));
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the name of a proxy as shown there; the proxy may have been removed.
fn proxy_name(program: &Program, index: usize) -> String {
    program
        .proxies
        .get(index)
        .map_or_else(|| "<NONE> (#-1)".to_owned(), |proxy| format!("{} (#{})", proxy.name, proxy.id))
}

fn head(program: &Program, capture: &Capture) -> String {
    let server = |backend: usize, server: Option<usize>| {
        let backend = program.proxies.get(backend).and_then(|proxy| proxy.backend.as_ref());
        let server = backend.zip(server).and_then(|(backend, server)| backend.servers.get(server));
        server.map_or_else(|| "<NONE> (#-1)".to_owned(), |server| format!("{} (#{})", server.name, server.id))
    };
    let front = proxy_name(program, capture.frontend);
    let (what, other) = match capture.server {
        None => (format!("frontend {front}: invalid request"), "backend <NONE> (#-1), server <NONE> (#-1)".to_owned()),
        Some((backend, own)) => (
            format!("backend {}: invalid response", proxy_name(program, backend)),
            format!("frontend {front}, server {}", server(backend, own)),
        ),
    };
    let (length, position) = (capture.bytes.len(), capture.fault.position);
    format!(
        " \n[{}] {what}\n  {other}, event #{}, src {}\n  buffer starts at 0 (including 0 out), {} free,\n  len {length}, wraps at \
         {}, error at position {position}\n  {} :\n  \n",
        date(capture.at),
        capture.number,
        capture.source,
        capture.capacity.saturating_sub(length),
        capture.capacity,
        capture.fault.reason,
    )
}

/// Maximum width of the bytes in a line, in columns.
const WIDTH: usize = 70;

/// Writes one line of bytes from an offset, until a line feed or the width. Returns the offset of its end.
fn line(bytes: &[u8], from: usize, text: &mut String) -> usize {
    let continues = from > 0 && bytes[from - 1] != b'\n';
    let _ = write!(text, "  {from:05}{} ", if continues { '+' } else { ' ' });
    let (begin, mut at) = (text.len(), from);
    while let Some(&byte) = bytes.get(at) {
        let before = text.len();
        let _ = match byte {
            b'\n' => write!(text, "\\n"),
            b'\r' => write!(text, "\\r"),
            b'\t' => write!(text, "\\t"),
            0x1b => write!(text, "\\e"),
            b'\\' => write!(text, "\\\\"),
            b' '..=b'~' => write!(text, "{}", char::from(byte)),
            other => write!(text, "\\x{other:02X}"),
        };
        if text.len() - begin > WIDTH && at > from {
            text.truncate(before);
            break;
        }
        at += 1;
        if byte == b'\n' {
            break;
        }
    }
    text.push('\n');
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_by_lines_of_bounded_width() {
        let bytes = [&b"a: \x01\x1b\\\t\r\n"[..], &[b'x'; 75], b"\nend"].concat();
        let (mut text, mut at) = (String::new(), 0);
        while at < bytes.len() {
            at = line(&bytes, at, &mut text);
        }
        let long = "x".repeat(70);
        assert_eq!(
            text,
            format!("  00000  a: \\x01\\e\\\\\\t\\r\\n\n  00009  {long}\n  00079+ xxxxx\\n\n  00085  end\n")
        );
    }
}
