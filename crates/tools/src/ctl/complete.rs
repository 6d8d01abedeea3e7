//! Completion of a line that is edited. The commands are those of the process, from its `help`. Must never wait longer
//! than its client does, and never print anything.

use super::answer::Verdict;
use super::client::Client;
use super::line::{Command, Target};
use super::names::Names;
use super::session::Session;
use super::usage::{NextWord, Usages};
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::cell::RefCell;
use std::time::Duration;

/// Time limit of a question.
const PATIENCE: Duration = Duration::from_secs(2);

/// Completes words of commands.
#[derive(Debug)]
pub struct Completion(RefCell<Knowledge>);

#[derive(Debug)]
struct Knowledge {
    client: Client,
    /// Usages of the commands of that target.
    usages: Option<(Target, Usages)>,
    names: Names,
}

impl Completion {
    /// Creates it for the process of a client.
    pub fn new(client: &Client) -> Self {
        let client = Client::new(client.socket.clone(), client.session.clone(), Some(Some(PATIENCE)));
        Self(RefCell::new(Knowledge { client, usages: None, names: Names::default() }))
    }

    /// Prepares for the next line: commands may have changed what there is.
    pub fn begin_line(&self, session: &Session) {
        let mut knowledge = self.0.borrow_mut();
        if knowledge.client.session.marks() != session.marks() {
            knowledge.usages = None;
        }
        knowledge.client.session = session.clone();
        knowledge.names.forget();
    }
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let line = line.get(..position).unwrap_or_default();
        let (start, words) = edited(line);
        let partial = &line[start..];
        // A question that is asked while the line is edited may not fail twice at once: the keys wait for it.
        let mut found = match self.0.try_borrow_mut() {
            Ok(mut knowledge) => knowledge.after(&words),
            Err(_) => Vec::new(),
        };
        found.retain(|word| word.starts_with(partial));
        // After a whole word comes the next one.
        if let [only] = &mut *found {
            only.push(' ');
        }
        Ok((start, found))
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}
impl Validator for Completion {}
impl Helper for Completion {}

impl Knowledge {
    /// Returns the words that may follow these words of a command.
    fn after(&mut self, words: &[String]) -> Vec<String> {
        let session_target = self.client.session.target.clone();
        let (own, words) = match words.split_first() {
            Some((first, rest)) if first.starts_with('@') => (Command::parse(first.as_bytes()).target, rest),
            _ => (None, words),
        };
        if let Some(target) = own {
            // The list of commands is that of one worker.
            self.client.session.target = match target {
                Target::EveryWorker => Target::Worker("1".to_owned()),
                other => other,
            };
        }
        let found = self.after_words(&words.iter().map(String::as_str).collect::<Vec<_>>());
        self.client.session.target = session_target;
        found
    }

    fn after_words(&mut self, words: &[&str]) -> Vec<String> {
        let target = self.client.session.target.clone();
        if self.usages.as_ref().is_none_or(|(known, _)| *known != target) {
            let Ok((Verdict::Accepted, help)) = self.client.query("help") else { return Vec::new() };
            self.usages = Some((target, Usages::of_help(&help)));
        }
        let next = self.usages.as_ref().map(|(_, usages)| usages.after(words)).unwrap_or_default();
        let mut found: Vec<String> = Vec::new();
        for word in next {
            match word {
                NextWord::Literal(text) => found.push(text),
                NextWord::Placeholder(name) => found.extend(self.names.of(&name, &mut self.client)),
            }
        }
        found.sort();
        found.dedup();
        found
    }
}

/// Returns where the word before the end of a line begins, and the words before it in the same command.
fn edited(line: &str) -> (usize, Vec<String>) {
    let (mut command, mut word, mut escaped) = (0, 0, false);
    for (at, letter) in line.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ';' => (command, word) = (at + 1, at + 1),
            ' ' | '\t' => word = at + 1,
            _ => {}
        }
    }
    (word, super::line::words(&line.as_bytes()[command..word]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edited_word_is_that_before_the_end() {
        for (line, start, words) in [
            ("", 0, vec![]),
            ("sh", 0, vec![]),
            ("show ", 5, vec!["show"]),
            ("show info; show st", 16, vec!["show"]),
            ("@1 show\\ x y", 11, vec!["@1", "show x"]),
            ("a;", 2, vec![]),
        ] {
            assert_eq!(edited(line), (start, words.into_iter().map(str::to_owned).collect()), "{line}");
        }
    }
}
