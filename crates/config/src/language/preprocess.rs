//! Directives: `.if` and related ones select lines, `.notice` and related ones print messages (configuration manual,
//! section 2.4). Nesting is bounded.

use super::blocks::{Block, MAX_NESTING, State};
use super::{Reader, offset};
use crate::condition::{self, ConditionContext, ConditionError};
use crate::diagnostic::{Diagnostic, Form, Severity};
use crate::lexer::Token;
use crate::span::Span;
use crate::suggest;
use crate::text;

const DIRECTIVES: &[&str] = &[".if", ".elif", ".else", ".endif", ".diag", ".notice", ".warning", ".alert"];

impl Reader<'_> {
    /// Handles a line whose first word starts with a dot.
    pub(super) fn directive(&mut self, at: Span, tokens: &[Token]) {
        let name = text::from_bytes(tokens.first().map_or(b"", |token| &token.text));
        match name.as_str() {
            ".if" => self.open_block(at, tokens),
            ".elif" | ".else" => self.next_branch(&name, at, tokens),
            ".endif" => {
                self.refuse_argument(&name, 1, at, tokens, "put a '#' in front of a comment");
                if !self.blocks.close() {
                    self.alert(
                        whole(at, tokens),
                        "lone '.endif' with no matching '.if'.",
                        "remove it, or add the '.if'",
                    );
                }
            }
            _ if !self.blocks.active() => {}
            ".diag" => self.say(Severity::Diag, &name, at, tokens),
            ".notice" => self.say(Severity::Notice, &name, at, tokens),
            ".warning" => self.say(Severity::Warning, &name, at, tokens),
            ".alert" => self.say(Severity::Alert, &name, at, tokens),
            _ => {
                let hint = match suggest::nearest(&name, DIRECTIVES.iter().copied()) {
                    Some(meant) => format!("did you mean '{meant}'?"),
                    None => format!("the directives are {}", DIRECTIVES.join(", ")),
                };
                self.alert(word(at, tokens, 0), format!("unknown directive '{name}'."), hint);
            }
        }
    }

    fn open_block(&mut self, at: Span, tokens: &[Token]) {
        if self.blocks.open.len() + 1 >= MAX_NESTING && self.blocks.beyond == 0 {
            let message = format!("too many nested '.if', max is {MAX_NESTING}.");
            self.alert(word(at, tokens, 0), message, "use '&&' and '.elif' to do with fewer");
        }
        let state = if self.blocks.active() { self.branch(".if", at, tokens) } else { State::Done };
        self.blocks.open(state, at.line);
    }

    fn next_branch(&mut self, name: &str, at: Span, tokens: &[Token]) {
        if self.blocks.beyond > 0 {
            return;
        }
        let Some(&Block { state, last_branch, .. }) = self.blocks.open.last() else {
            let message = format!("lone '{name}' with no matching '.if'.");
            return self.alert(whole(at, tokens), message, "remove it, or add the '.if'");
        };
        if last_branch {
            let message = format!("'{name}' after '.else' is not permitted.");
            return self.alert(whole(at, tokens), message, "'.else' is the last branch of a block");
        }
        let is_last = name == ".else";
        if is_last {
            self.refuse_argument(name, 1, at, tokens, "use '.elif' for a branch with a condition");
        }
        let state = match state {
            State::Taken | State::Done => State::Done,
            State::Waiting if is_last => State::Taken,
            State::Waiting => self.branch(name, at, tokens),
        };
        if let Some(block) = self.blocks.open.last_mut() {
            block.state = state;
            block.last_branch = is_last;
        }
    }

    /// Evaluates the condition of `.if` or `.elif`.
    fn branch(&mut self, name: &str, at: Span, tokens: &[Token]) -> State {
        let arguments = tokens.get(1..).unwrap_or_default();
        let joined = arguments.iter().map(|token| &token.text[..]).collect::<Vec<_>>().join(&b' ');
        let text = text::from_bytes(&joined);
        let context = ConditionContext { environment: self.environment, options: self.options };
        match condition::eval(&text, &context) {
            Ok(true) => State::Taken,
            Ok(false) => State::Waiting,
            Err(error) => {
                let place = |offset: usize| place(arguments, text::to_bytes(text.get(..offset).unwrap_or(&text)).len());
                let span = Span { start: place(error.start).0, end: place(error.end.max(1) - 1).1, ..at };
                self.condition_error(name, span, error);
                State::Done
            }
        }
    }

    fn condition_error(&mut self, name: &str, span: Span, error: ConditionError) {
        let message = format!("{} in '{name}' at position {}:", error.message, error.position + 1);
        let diagnostic = Diagnostic::alert(Span { end: span.end.max(span.start), ..span }, message);
        self.report(Diagnostic { hint: error.hint, ..diagnostic.with_form(Form::ParsingTight) });
    }

    fn say(&mut self, severity: Severity, name: &str, at: Span, tokens: &[Token]) {
        if self.refuse_argument(name, 2, at, tokens, "put quotes around the message") {
            return;
        }
        let message = text::from_bytes(tokens.get(1).map_or(b"", |token| &token.text));
        self.report(Diagnostic::new(severity, at, format!("'{message}'.")).with_form(Form::ParsingTight));
    }

    /// Reports an extra argument. Returns whether there is one.
    fn refuse_argument(&mut self, name: &str, number: usize, at: Span, tokens: &[Token], hint: &str) -> bool {
        let Some(token) = tokens.get(number) else { return false };
        let quotes = if number > 1 { " Use quotes if the message should contain spaces." } else { "" };
        let message = format!("Unexpected argument '{}' for '{name}'.{quotes}", text::from_bytes(&token.text));
        self.alert(word(at, tokens, number), message, hint);
        true
    }
}

/// Maps an offset in the arguments, joined by one blank, to the source: returns the offset of the byte there
/// and the offset after its last byte.
fn place(arguments: &[Token], mut offset: usize) -> (u32, u32) {
    for token in arguments {
        if let Some(&start) = token.places.get(offset) {
            let end = token.places.get(offset + 1).map_or(token.end, |&next| next.max(start + 1));
            return (start, end);
        }
        if offset == token.text.len() {
            return (token.end, token.end + 1);
        }
        offset -= token.text.len() + 1;
    }
    let end = arguments.last().map_or(0, |token| token.end);
    (end, end)
}

fn word(at: Span, tokens: &[Token], number: usize) -> Span {
    tokens.get(number).map_or(at, |token| Span { start: token.start, end: token.end, ..at })
}

fn whole(at: Span, tokens: &[Token]) -> Span {
    let end = tokens.last().map_or(offset(0), |token| token.end);
    Span { end, ..word(at, tokens, 0) }
}
