//! The text of the configuration and the diagnostics of the start, without known secrets and without sections outside
//! of `stats scope`. Must never show it to clients that were not admitted.

use super::answer::{Answer, put};
use super::json::{Commas, Quoted, lossy};
use super::request::DashboardRequest;

/// Replaces a secret.
const HIDDEN: &str = "<hidden>";

/// Words that precede a secret.
const BEFORE: &[&str] = &["password", "insecure-password", "anonkey", "stats-auth", "eab-key", "secret"];
/// Functions whose arguments are secret.
const FUNCTIONS: &[&str] = &["hmac(", "aes_gcm_enc(", "aes_gcm_dec(", "aes_cbc_enc(", "aes_cbc_dec(", "jwt_verify("];
/// Parts of names of variables and fields whose values are secret.
const NAMES: &[&str] =
    &["password", "passwd", "secret", "token", "api-key", "api_key", "apikey", "authorization", "credential"];

/// Whether the configuration is shown: the client has the admin level, or the page requires authentication.
pub(super) fn is_shown(asked: &DashboardRequest) -> bool {
    asked.admin() || asked.page().is_some_and(|page| page.is_guarded())
}

/// `config`.
pub(super) async fn show(asked: DashboardRequest, mut answer: Answer) {
    if !is_shown(&asked) {
        return answer.refuse(403, "the configuration is shown at admin level, or where the page asks for credentials");
    }
    answer.begin_json();
    answer.push("{\"files\":[");
    let mut commas = Commas::default();
    for (name, bytes) in asked.generation.text() {
        answer.push(&format!("{}{{\"name\":{},\"lines\":[", commas.next(), Quoted(name)));
        let (mut inner, mut scope) = (Commas::default(), Scope::new(asked.shows_all()));
        for line in bytes.split(|byte| *byte == b'\n') {
            let mut text = inner.next().to_owned();
            let line = lossy(line);
            // Hidden lines stay as empty lines, so that line numbers match.
            let shown = if scope.shows(&line, |name| asked.shows_name(name)) { masked(&line) } else { String::new() };
            put(&mut text, format_args!("{}", Quoted(&shown)));
            answer.push(&text);
            answer.relieve().await;
        }
        answer.push("]}");
    }
    answer.push("],\"diagnostics\":[");
    let mut commas = Commas::default();
    // A message may name any proxy.
    for line in asked.worker.process.host.startup_logs.lines().filter(|_| asked.shows_all()) {
        answer.push(&format!("{}{}", commas.next(), Quoted(&masked(line))));
        answer.relieve().await;
    }
    answer.push("]}\n");
}

/// Selects the lines that a page with `stats scope` shows: only the sections of proxies in the scope.
struct Scope {
    all: bool,
    is_inside: bool,
    /// The previous line ends with a continuation.
    goes_on: bool,
}

impl Scope {
    fn new(all: bool) -> Self {
        Self { all, is_inside: false, goes_on: false }
    }

    /// Whether the next line is shown; `shows_name`: whether a proxy of that name is shown.
    fn shows(&mut self, line: &str, shows_name: impl Fn(&str) -> bool) -> bool {
        if self.all {
            return true;
        }
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if !self.goes_on && config::language::section::is_section(first.trim_matches(['"', '\''])) {
            let name = words.next().unwrap_or_default();
            self.is_inside = matches!(first, "frontend" | "backend" | "listen") && shows_name(name);
        }
        self.goes_on = line.ends_with('\\');
        self.is_inside
    }
}

/// Returns a line with known secrets replaced.
fn masked(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let words = line.split_whitespace().collect::<Vec<_>>();
    let is_account = words.starts_with(&["stats", "auth"]);
    let (mut rest, mut number, mut hides, mut quote) = (line, 0, false, None);
    while let Some(begin) = rest.find(|c: char| !c.is_whitespace()) {
        out.push_str(&rest[..begin]);
        let end = rest[begin..].find(char::is_whitespace).map_or(rest.len(), |at| begin + at);
        let word = &rest[begin..end];
        rest = &rest[end..];
        match word {
            // A quoted value may have several words.
            _ if hides => {
                out.push_str(HIDDEN);
                let begins = quote.is_none().then(|| word.chars().next()).flatten();
                quote = quote.or(begins.filter(|one| matches!(one, '"' | '\'')));
                let is_alone = begins.is_some() && word.len() == 1;
                quote = quote.filter(|quote| is_alone || !word.ends_with(*quote));
                hides = quote.is_some();
            }
            _ if is_account && number == 2 => {
                out.push_str(word.split(':').next().unwrap_or_default());
                out.push(':');
                out.push_str(HIDDEN);
            }
            _ => {
                out.push_str(&without_arguments(word));
                let lower = word.to_ascii_lowercase();
                hides = BEFORE.contains(&word)
                    || NAMES.iter().any(|name| lower.contains(name)) && number > 0 && !lower.contains('{');
            }
        }
        number += 1;
    }
    out.push_str(rest);
    out
}

/// Replaces the arguments of functions that take keys.
fn without_arguments(word: &str) -> String {
    let mut text = word.to_owned();
    for name in FUNCTIONS {
        let Some(at) = text.find(name) else { continue };
        let begin = at + name.len();
        let end = text[begin..].find(')').map_or(text.len(), |at| begin + at);
        text.replace_range(begin..end, HIDDEN);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_outside_of_the_scope_are_hidden() {
        let text = "global\n stats x\ndefaults\n a\nfrontend f\n b\n\n c \\\nbackend b\nbackend b\n d\n listen f\n e\nuserlist u\n f\n\
                    backend \"f\"\n g\nbackend f # x\n h";
        let mut scope = Scope::new(false);
        let shown: Vec<&str> = text.split('\n').filter(|line| scope.shows(line, |name| name == "f")).collect();
        let wanted = ["frontend f", " b", "", " c \\", "backend b", " listen f", " e", "backend f # x", " h"];
        assert_eq!(shown, wanted);
        let mut scope = Scope::new(true);
        assert!(text.split('\n').all(|line| scope.shows(line, |_| false)));
    }

    #[test]
    fn secrets_are_hidden() {
        for (line, wanted) in [
            ("    stats auth admin:pa:ss", "    stats auth admin:<hidden>"),
            ("\tuser a insecure-password x groups g", "\tuser a insecure-password <hidden> groups g"),
            ("user a password $5$x", "user a password <hidden>"),
            (
                "http-request set-header Authorization \"Basic x y\" if a",
                "http-request set-header Authorization <hidden> <hidden> <hidden> if a",
            ),
            ("setenv API_TOKEN abc", "setenv API_TOKEN <hidden>"),
            ("acl a req.hdr(x),hmac(sha256,k),hex -m str z", "acl a req.hdr(x),hmac(<hidden>),hex -m str z"),
            ("bind :80 # comment", "bind :80 # comment"),
            ("  ", "  "),
            ("", ""),
        ] {
            assert_eq!(masked(line), wanted, "{line}");
        }
    }
}
