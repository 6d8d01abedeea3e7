//! `-dC<key>`: dumps an anonymized configuration. Names and addresses are replaced by hashes under the key, so that
//! equal names have equal hashes; arguments that may contain a secret or a name are cut off. Must never print an
//! argument that the tables do not classify as harmless.

use super::table::{Keyword, RowLookup, find};
use super::{global, option, proxy};
use crate::document::{Document, Line, Word};
use crate::text;
use std::fmt::Write as _;
use std::net::IpAddr;

/// Writes the whole configuration of a [`Document`], with hashes under a key.
pub fn dump(document: &Document, key: u32, out: &mut String) {
    for section in &document.sections {
        header(&section.line, key, out);
        let global = section.line.keyword() == "global";
        let proxy = matches!(section.line.keyword(), "defaults" | "frontend" | "listen" | "backend");
        for line in &section.body {
            out.push('\t');
            match (global, proxy) {
                (true, _) => statement(line, harmless(global::FAMILIES, line), out),
                (_, true) => proxy_line(line, key, out),
                _ => named(line, key, out),
            }
            out.push('\n');
        }
    }
}

/// Writes a section's keyword and the hashes of its names; `from` is kept.
fn header(line: &Line, key: u32, out: &mut String) {
    out.push_str(line.keyword());
    for word in line.arguments() {
        let _ = if word.text == "from" { write!(out, " from") } else { write!(out, " {}", id(&word.text, key)) };
    }
    out.push('\n');
}

/// Placeholders of the usage column whose arguments cannot be names or secrets.
const HARMLESS: &[&str] = &["<time>", "<number>", "<size>", "<percent>", "<status>", "<0..50>", "<0..100>"];

/// Returns the number of words of a line that are harmless by the tables: all of them, or the keyword alone.
fn harmless<P: Copy, X: Copy>(families: &'static [super::table::Family<Keyword<P, X>>], line: &Line) -> usize {
    match find(families, line.keyword(), line.text(1), line.text(2)) {
        RowLookup::Row(row, _) if is_harmless(row.usage) => line.words.len(),
        RowLookup::Row(_, words) => words,
        RowLookup::Group | RowLookup::Unknown => 1,
    }
}

fn is_harmless(usage: &str) -> bool {
    let mut rest = usage;
    while let Some(start) = rest.find('<') {
        let Some(end) = rest[start..].find('>') else { return false };
        if !HARMLESS.contains(&&rest[start..=start + end]) {
            return false;
        }
        rest = &rest[start + end + 1..];
    }
    true
}

fn proxy_line(line: &Line, key: u32, out: &mut String) {
    let at = usize::from(matches!(line.keyword(), "no" | "default"));
    match line.text(at) {
        "option" => {
            let row = super::table::rows(option::FAMILIES).find(|row| row.name == line.text(at + 1));
            let words = if row.is_some_and(|row| is_harmless(row.usage)) { line.words.len() } else { at + 2 };
            statement(line, words, out);
        }
        "bind" | "server" | "server-template" | "acl" | "default_backend" | "use_backend" | "use-server"
        | "description" => named(line, key, out),
        _ => statement(line, harmless(proxy::FAMILIES, line), out),
    }
}

/// Writes the first words unchanged, then a mark if words were cut off.
fn statement(line: &Line, words: usize, out: &mut String) {
    let shown: Vec<&str> = line.words.iter().take(words).map(|word| word.text.as_str()).collect();
    out.push_str(&shown.join(" "));
    if line.words.len() > words {
        out.push_str(" [...]");
    }
}

/// Writes a keyword followed by a name or an address, for a server by both.
fn named(line: &Line, key: u32, out: &mut String) {
    out.push_str(line.keyword());
    let arguments: Vec<&Word> = line.arguments().iter().collect();
    let shown = match (line.keyword(), arguments.as_slice()) {
        (_, []) => 0,
        ("bind" | "dgram-bind", [list, ..]) => {
            let parts: Vec<String> = list.text.split(',').map(|part| address(part, key)).collect();
            let _ = write!(out, " {}", parts.join(","));
            1
        }
        ("server" | "peer" | "nameserver" | "mailer", [name, at, ..]) => {
            let _ = write!(out, " {} {}", id(&name.text, key), address(&at.text, key));
            2
        }
        (_, [name, ..]) => {
            let _ = write!(out, " {}", id(&name.text, key));
            1
        }
    };
    if arguments.len() > shown {
        out.push_str(" [...]");
    }
}

fn id(name: &str, key: u32) -> String {
    format!("ID({})", hash(name, key))
}

/// Returns the hash of an address with its port; loopback addresses are kept.
pub fn address(text: &str, key: u32) -> String {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && !text.contains('/') && !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(ip) if ip.is_loopback() || ip.is_unspecified() => format!("{host}{port}"),
        Ok(IpAddr::V4(_)) => format!("IPV4({}){port}", hash(host, key)),
        Ok(IpAddr::V6(_)) => format!("IPV6({}){port}", hash(host, key)),
        Err(_) if host.is_empty() || host == "*" => format!("{host}{port}"),
        Err(_) if text.contains(['/', '@']) => format!("PATH({})", hash(text, key)),
        Err(_) => format!("ID({}){port}", hash(host, key)),
    }
}

/// Returns a hash of six digits of a text under a key (XXH32, as in HAProxy).
pub fn hash(text: &str, key: u32) -> String {
    format!("{:06x}", base::hash::xxh32(&text::to_bytes(text), key) & 0xff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::language::{InputFile, read};
    use crate::options::LanguageOptions;

    fn dumped(text: &str) -> String {
        let files = [InputFile { name: "x.cfg".into(), bytes: text.as_bytes().to_vec() }];
        let (_, document) = read(&files, &mut Environment::new(), &LanguageOptions::default(), &mut Vec::new());
        let mut out = String::new();
        dump(&document, 123, &mut out);
        out
    }

    #[test]
    fn what_is_harmless_stays() {
        let text = "global\n maxconn 100\n nosplice\ndefaults\n mode http\n timeout client 3s\n option dontlognull\n no \
                    option httpclose\n retries 3\n http-reuse safe\n";
        assert_eq!(dumped(text).replace('\t', " "), text);
    }

    #[test]
    fn names_and_secrets_go() {
        let text = "global\n user haproxy\n stats socket /run/secret.sock\ndefaults secret\nfrontend secret from secret\n \
                    bind 10.1.2.3:443,127.0.0.1:80 ssl crt secret\n acl secret path /secret\n stats auth \
                    secret:secret\n description secret\nbackend secret\n server secret secret.example:80 cookie secret\n \
                    http-request set-header X secret\n option forwardfor header secret\n errorfile 503 /secret\n\
                    userlist secret\n user secret insecure-password secret\n";
        let dump = dumped(text);
        assert!(!dump.contains("secret") && !dump.contains("haproxy") && !dump.contains("10.1.2.3"), "{dump}");
        let name = id("secret", 123);
        assert!(dump.contains(&format!("frontend {name} from {name}\n")), "{dump}");
        assert!(dump.contains("127.0.0.1:80 [...]"), "{dump}");
        assert!(dump.contains("\thttp-request [...]\n") && dump.contains("\terrorfile [...]\n"), "{dump}");
    }

    #[test]
    fn the_key_changes_everything() {
        assert_eq!(id("a", 1), id("a", 1));
        assert_ne!(id("a", 1), id("a", 2));
        assert_ne!(id("a", 1), id("b", 1));
    }
}
