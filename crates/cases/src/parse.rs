//! Parses a `.case` file into a `Case`, for one subject. It must never run anything.

use std::path::Path;

use crate::case::{Case, Difference, ListenerKind, LogSpec, PeerSpec, Role, ServerKind};
use crate::data::Data;
use crate::failure::{Failure, Result};
use crate::lines::{self, Node};
use crate::pattern::Pattern;
use crate::script;

/// Parses a case; lines for other subjects are skipped.
pub(crate) fn case(name: &str, path: &Path, text: &str, tags: &[String]) -> Result<Case> {
    let mut case = Case {
        name: name.to_owned(),
        path: path.to_owned(),
        threads: None,
        arguments: Vec::new(),
        global: Vec::new(),
        defaults: Vec::new(),
        bare: false,
        config: Vec::new(),
        files: Vec::new(),
        listeners: Vec::new(),
        peers: Vec::new(),
        log: None,
        differences: Vec::new(),
    };
    for node in Node::select(&lines::read(text)?, tags) {
        section(&mut case, &node).map_err(|failure| failure.at(format_args!("line {}", node.number)))?;
    }
    Ok(case)
}

fn section(case: &mut Case, node: &Node) -> Result<()> {
    let (word, rest) = node.text.split_once(' ').unwrap_or((&node.text, ""));
    match word {
        "threads" => case.threads = Some(rest.parse().map_err(|_| Failure::new("not a number of threads"))?),
        "arguments" => case.arguments = rest.split(' ').map(str::to_owned).collect(),
        "global" => flatten(&node.children, &mut case.global),
        "defaults" => {
            case.bare = rest == "bare";
            flatten(&node.children, &mut case.defaults);
        }
        "config" => flatten(&node.children, &mut case.config),
        "file" => case.files.push((rest.to_owned(), Data::parse("", &node.children)?)),
        "listener" => case.listeners.push(listener(rest)?),
        "server" | "client" | "nameserver" | "process" => case.peers.push(peer(word, rest, &node.children)?),
        "log" => {
            let lines = node.children.iter().map(|child| Pattern::parse(&child.text)).collect::<Result<_>>()?;
            case.log = Some(LogSpec { ordered: rest != "in any order", lines });
        }
        "differs" => case.differences.push(difference(rest)?),
        _ => return Err(Failure::new(format!("no such section: {}", node.text))),
    }
    Ok(())
}

/// Collects the lines of a part of the configuration; HAProxy ignores their indentation.
fn flatten(nodes: &[Node], out: &mut Vec<String>) {
    for node in nodes {
        out.push(node.text.clone());
        for child in &node.children {
            out.push(format!("    {}", child.text));
        }
    }
}

fn listener(text: &str) -> Result<(String, ListenerKind)> {
    let (name, kind) = text.split_once(' ').unwrap_or((text, "fd"));
    let kind = match kind {
        "fd" => ListenerKind::Inherited,
        "fd-inet6" => ListenerKind::InheritedInet6,
        "fd-unix" => ListenerKind::InheritedUnix,
        "inet" => ListenerKind::Inet,
        "inet6" => ListenerKind::Inet6,
        "unix" => ListenerKind::Unix,
        "abstract" => ListenerKind::Abstract,
        other => return Err(Failure::new(format!("no such kind of listener: {other}"))),
    };
    Ok((name.to_owned(), kind))
}

fn peer(word: &str, rest: &str, children: &[Node]) -> Result<PeerSpec> {
    let mut words = rest.split(' ');
    let name = if word == "process" { word } else { words.next().unwrap_or("") }.to_owned();
    let (mut copies, mut kind, mut spare) = (1, ServerKind::Inet, false);
    for extra in words.filter(|extra| !extra.is_empty()) {
        match (word, extra) {
            ("server", "inet6") => kind = ServerKind::Inet6,
            ("server", "unix") => kind = ServerKind::Unix,
            ("server", "abstract") => kind = ServerKind::Abstract,
            ("server", "dead") => kind = ServerKind::Dead,
            ("server", "full") => kind = ServerKind::Full,
            ("server", "spare") => spare = true,
            ("client", many) if many.starts_with('x') => {
                copies = many[1..].parse().map_err(|_| Failure::new(format!("not a number of copies: {many}")))?;
            }
            _ => return Err(Failure::new(format!("{word} knows no {extra}"))),
        }
    }
    let role = match word {
        "server" => Role::Server { kind, spare },
        "client" => Role::Client,
        "nameserver" => Role::NameServer,
        _ => Role::Process,
    };
    Ok(PeerSpec { name, role, copies, script: script::parse(children)? })
}

/// Parses `differs haproxy-2.6: reason`, `differs weir sometimes: reason`.
fn difference(text: &str) -> Result<Difference> {
    let usage = || Failure::new("differs SUBJECT [sometimes]: REASON");
    let (subject, reason) = text.split_once(": ").ok_or_else(usage)?;
    let (subject, sometimes) = match subject.split_once(' ') {
        Some((subject, "sometimes")) => (subject, true),
        Some(_) => return Err(usage()),
        None => (subject, false),
    };
    Ok(Difference { subject: subject.to_owned(), sometimes, reason: reason.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
# Why this case exists.
threads 2
listener l unix
config
    listen l
        bind ${l}
        server s1 ${s1}
server s1 dead spare
    accept
client c x3
    connect l
    @weir send \"x\"
log in any order
    l l/s1 #
differs haproxy-2.6 sometimes: it races
";

    #[test]
    fn sections() {
        let case = case("t/x", Path::new("x"), TEXT, &["weir".to_owned()]).unwrap();
        assert_eq!(case.threads, Some(2));
        assert_eq!(case.config.len(), 3);
        assert_eq!(case.peers[0].role, Role::Server { kind: ServerKind::Dead, spare: true });
        assert_eq!((case.peers[1].copies, case.peers[1].script.len()), (3, 2));
        assert!(case.log.is_some_and(|log| !log.ordered && log.lines.len() == 1));
        assert!(case.differences[0].sometimes);
    }

    #[test]
    fn a_subject_sees_its_own_lines_only() {
        let case = case("t/x", Path::new("x"), TEXT, &["haproxy".to_owned()]).unwrap();
        assert_eq!(case.peers[1].script.len(), 1);
    }

    #[test]
    fn unknown_words_are_refused() {
        for text in ["sever s1\n", "listener l tcp\n", "server s1 slow\n", "differs weir\n", "client c y3\n"] {
            assert!(case("t/x", Path::new("x"), text, &[]).is_err(), "{text}");
        }
    }
}
