//! The steps of a peer's script, and their notation. It must never perform one.

use std::net::IpAddr;

use regex_lite::Regex;

use crate::data::Data;
use crate::failure::{Failure, Result};
use crate::lines::Node;
use crate::names;
use crate::pattern::Pattern;

/// A step and its line number.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Line number in the case's file.
    pub(crate) number: usize,
    pub(crate) step: ScriptStep,
}

/// The steps of a peer. README.md describes each of them.
#[derive(Debug, Clone)]
pub(crate) enum ScriptStep {
    Connect { listener: String, name: String, from: Option<IpAddr>, receive_buffer: Option<usize> },
    Accept { name: String },
    On(String),
    Send(Data),
    TrySend(Data),
    Expect(Data),
    ExpectMatch(Regex),
    ExpectChunks(Data),
    ExpectLastChunk(Data),
    Receive(usize),
    ReceiveRest,
    ExpectEof,
    ExpectReset,
    ExpectEnd,
    ExpectNothing,
    Shutdown,
    Close,
    Reset,
    Settle,
    Accepted,
    Signal(String),
    Answer { name: String, kind: u16, reply: Data },
    Asked { name: String, kind: u16, count: usize },
    Wait { name: String, count: usize },
    WaitLog(Pattern),
    Listen,
    Unlisten,
    Serve(Data),
    Sequence { listener: String, bodies: Vec<String>, request: Option<Data> },
    Spread { listener: String, requests: usize, shares: Vec<(String, usize)>, within: usize },
    Repeat { times: usize, script: Vec<Line> },
    Kill(String),
    ExpectExit(i32),
}

/// Parses the script of a peer.
pub(crate) fn parse(nodes: &[Node]) -> Result<Vec<Line>> {
    let line = |node: &Node| {
        let step = step(node).map_err(|failure| failure.at(format_args!("line {}", node.number)))?;
        Ok(Line { number: node.number, step })
    };
    nodes.iter().map(line).collect()
}

fn step(node: &Node) -> Result<ScriptStep> {
    let (word, rest) = node.text.split_once(' ').unwrap_or((&node.text, ""));
    let rest = rest.trim();
    let takes_data = matches!(
        word,
        "send" | "try-send" | "expect" | "expect-chunks" | "expect-last-chunk" | "serve" | "sequence" | "repeat"
    );
    if !takes_data && !node.children.is_empty() {
        return Err(Failure::new(format!("{word} takes no lines below it")));
    }
    let data = || Data::parse(rest, &node.children);
    Ok(match word {
        "connect" => connect(rest)?,
        "accept" => ScriptStep::Accept { name: name_behind_as(rest)? },
        "on" => ScriptStep::On(rest.to_owned()),
        "send" => ScriptStep::Send(data()?),
        "try-send" => ScriptStep::TrySend(data()?),
        "expect" => match rest.strip_prefix("~ ") {
            Some(pattern) => ScriptStep::ExpectMatch(regex(pattern)?),
            None => ScriptStep::Expect(data()?),
        },
        "expect-chunks" => ScriptStep::ExpectChunks(data()?),
        "expect-last-chunk" => ScriptStep::ExpectLastChunk(data()?),
        "receive" if rest == "rest" => ScriptStep::ReceiveRest,
        "receive" => ScriptStep::Receive(number(rest)?),
        "wait" => {
            let (name, count) = rest.split_once(' ').unwrap_or((rest, "1"));
            ScriptStep::Wait { name: name.to_owned(), count: number(count)? }
        }
        "signal" => ScriptStep::Signal(rest.to_owned()),
        "answer" => answer(rest)?,
        "asked" => asked(rest)?,
        "wait-log" => ScriptStep::WaitLog(Pattern::parse(rest)?),
        "serve" => ScriptStep::Serve(data()?),
        "sequence" => sequence(rest, &node.children)?,
        "spread" => spread(rest)?,
        "repeat" => ScriptStep::Repeat { times: number(rest)?, script: parse(&node.children)? },
        "kill" => ScriptStep::Kill(rest.to_owned()),
        "expect-exit" => ScriptStep::ExpectExit(rest.parse().map_err(|_| Failure::new("not an exit status"))?),
        _ if rest.is_empty() => plain(word)?,
        _ => return Err(Failure::new(format!("no such step: {}", node.text))),
    })
}

/// Makes every `wait-log` ignore connection counts.
pub(crate) fn with_any_connections(script: &mut [Line]) -> Result<()> {
    for line in script {
        match &mut line.step {
            ScriptStep::WaitLog(pattern) => *pattern = pattern.with_any_connections()?,
            ScriptStep::Repeat { script, .. } => with_any_connections(script)?,
            _ => {}
        }
    }
    Ok(())
}

/// Parses steps of one word.
fn plain(word: &str) -> Result<ScriptStep> {
    Ok(match word {
        "expect-eof" => ScriptStep::ExpectEof,
        "expect-reset" => ScriptStep::ExpectReset,
        "expect-end" => ScriptStep::ExpectEnd,
        "expect-nothing" => ScriptStep::ExpectNothing,
        "shutdown" => ScriptStep::Shutdown,
        "close" => ScriptStep::Close,
        "reset" => ScriptStep::Reset,
        "settle" => ScriptStep::Settle,
        "accepted" => ScriptStep::Accepted,
        "listen" => ScriptStep::Listen,
        "unlisten" => ScriptStep::Unlisten,
        other => return Err(Failure::new(format!("no such step: {other}"))),
    })
}

/// Parses `answer NAME KIND: REPLY`.
fn answer(text: &str) -> Result<ScriptStep> {
    let usage = || Failure::new("answer NAME KIND: REPLY");
    let (question, reply) = text.split_once(": ").ok_or_else(usage)?;
    let (name, kind) = question.split_once(' ').ok_or_else(usage)?;
    let kind = names::kind(kind)?;
    // Checked once its variables are known.
    Ok(ScriptStep::Answer { name: name.to_owned(), kind, reply: Data::parse(&format!("\"{reply}\""), &[])? })
}

/// Parses `asked NAME KIND [N]`.
fn asked(text: &str) -> Result<ScriptStep> {
    let mut words = text.split(' ');
    let (Some(name), Some(kind)) = (words.next(), words.next()) else {
        return Err(Failure::new("asked NAME KIND [N]"));
    };
    let count = words.next().map_or(Ok(1), number)?;
    Ok(ScriptStep::Asked { name: name.to_owned(), kind: names::kind(kind)?, count })
}

/// Parses `connect l as b from 127.0.0.2 receive-buffer 4096`.
fn connect(text: &str) -> Result<ScriptStep> {
    let mut words = text.split(' ');
    let listener = words.next().unwrap_or("").to_owned();
    let (mut name, mut from, mut receive_buffer) = (String::new(), None, None);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| Failure::new(format!("{word} wants a value")))?;
        match word {
            "as" => value.clone_into(&mut name),
            "from" => from = Some(value.parse().map_err(|_| Failure::new("not an address"))?),
            "receive-buffer" => receive_buffer = Some(number(value)?),
            other => return Err(Failure::new(format!("connect knows no {other}"))),
        }
    }
    Ok(ScriptStep::Connect { listener, name, from, receive_buffer })
}

fn name_behind_as(text: &str) -> Result<String> {
    if text.is_empty() {
        return Ok(String::new());
    }
    text.strip_prefix("as ").map(str::to_owned).ok_or_else(|| Failure::new("accept [as NAME]"))
}

/// Parses `sequence l: a b a c`, with an optional request below it.
fn sequence(text: &str, children: &[Node]) -> Result<ScriptStep> {
    let (listener, bodies) = text.split_once(": ").ok_or_else(|| Failure::new("sequence LISTENER: BODY BODY …"))?;
    let request = if children.is_empty() { None } else { Some(Data::parse("", children)?) };
    let bodies = bodies.split_whitespace().map(str::to_owned).collect();
    Ok(ScriptStep::Sequence { listener: listener.to_owned(), bodies, request })
}

/// Parses `spread l 300: a=100 b=200 within 30`.
fn spread(text: &str) -> Result<ScriptStep> {
    let usage = || Failure::new("spread LISTENER REQUESTS: BODY=COUNT … within COUNT");
    let (place, shares) = text.split_once(": ").ok_or_else(usage)?;
    let (listener, requests) = place.split_once(' ').ok_or_else(usage)?;
    let (shares, within) = shares.split_once(" within ").ok_or_else(usage)?;
    let share = |word: &str| {
        let (body, count) = word.split_once('=').ok_or_else(usage)?;
        Ok((body.to_owned(), number(count)?))
    };
    let shares = shares.split_whitespace().map(share).collect::<Result<_>>()?;
    Ok(ScriptStep::Spread {
        listener: listener.to_owned(),
        requests: number(requests)?,
        shares,
        within: number(within)?,
    })
}

/// Compiles a regular expression that matches at the start of the input.
fn regex(pattern: &str) -> Result<Regex> {
    Regex::new(&format!("^(?s:{pattern})")).map_err(|error| Failure::new(error.to_string()))
}

fn number(text: &str) -> Result<usize> {
    text.trim().parse().map_err(|_| Failure::new(format!("not a number: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<ScriptStep> {
        let nodes = crate::lines::read(text)?;
        Ok(parse(&nodes)?.remove(0).step)
    }

    #[test]
    fn spellings() {
        assert!(matches!(one("connect l as b from 127.0.0.2").unwrap(), ScriptStep::Connect { from: Some(_), .. }));
        assert!(
            matches!(one("repeat 3\n  accept as x\n  close").unwrap(), ScriptStep::Repeat { times: 3, script } if script.len() == 2)
        );
        assert!(matches!(one("sequence l: a b").unwrap(), ScriptStep::Sequence { bodies, .. } if bodies == ["a", "b"]));
        assert!(matches!(one("spread l 30: a=10 b=20 within 5").unwrap(), ScriptStep::Spread { within: 5, .. }));
        assert!(matches!(one("wait x 3").unwrap(), ScriptStep::Wait { count: 3, .. }));
    }

    #[test]
    fn mistakes_name_their_line() {
        for text in ["shut", "close x", "connect l as", "accept b", "close\n  \"x\"", "repeat x\n  close", "expect ~ ("]
        {
            let failure = one(text).unwrap_err();
            assert!(failure.0.contains("line 1"), "{text}: {failure}");
        }
    }
}
