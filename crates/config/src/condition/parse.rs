//! Grammar of conditions: alternatives of conjunctions of terms. Recursion is bounded by [`MAX_DEPTH`].

use super::error::ConditionError;
pub use super::predicate::Predicate;
use super::predicate::{self, PREDICATES};

/// Maximum depth of nested parentheses, as in HAProxy.
pub const MAX_DEPTH: usize = 341;

/// A parsed condition.
#[derive(Debug)]
pub enum Expression {
    /// A number.
    Constant(bool),
    /// `!`
    Not(Box<Expression>),
    /// `&&`
    All(Vec<Expression>),
    /// `||`
    Any(Vec<Expression>),
    /// A predicate. Start and end are those of its arguments.
    Call { predicate: &'static Predicate, arguments: Vec<String>, start: usize, end: usize },
}

/// Parser of one condition.
pub struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// Parses the whole text. A text of blanks only is false.
    pub fn parse(mut self) -> Result<Expression, ConditionError> {
        if self.text.trim_matches([' ', '\t']).is_empty() {
            return Ok(Expression::Constant(false));
        }
        let expression = self.any()?;
        match self.rest().chars().next() {
            None => Ok(expression),
            Some(found) => {
                let message =
                    format!("unexpected character '{found}' at the end of conditional expression '{}'", self.text);
                let hint = match found {
                    '&' | '|' => "the operators are '&&' and '||'",
                    ')' => "no '(' is open here",
                    '(' => "the arguments of a predicate follow its name without a blank",
                    _ => "write '&&' or '||' between two conditions",
                };
                Err(self.error(message, self.at, self.at + found.len_utf8(), Some(hint.into())))
            }
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    fn skip(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn error(&self, message: String, start: usize, end: usize, hint: Option<String>) -> ConditionError {
        ConditionError { message, position: start, start, end, hint }
    }

    fn unparsable(&self, at: usize, hint: Option<String>) -> ConditionError {
        let rest = self.text.get(at..).unwrap_or_default();
        let message = format!("unparsable conditional expression '{rest}'");
        self.error(message, at, self.text.len(), hint)
    }

    fn any(&mut self) -> Result<Expression, ConditionError> {
        self.list("||", Self::all, Expression::Any)
    }

    fn all(&mut self) -> Result<Expression, ConditionError> {
        self.list("&&", Self::term, Expression::All)
    }

    /// Parses operands separated by an operator; returns a single operand unchanged.
    fn list(
        &mut self,
        operator: &str,
        operand: fn(&mut Self) -> Result<Expression, ConditionError>,
        combine: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, ConditionError> {
        let start = self.at;
        let mut operands = vec![operand(self)?];
        loop {
            self.skip_blanks();
            let operator_at = self.at;
            if !self.skip(operator) {
                break;
            }
            self.skip_blanks();
            if self.rest().is_empty() {
                // HAProxy's message also contains the text before '||', which it parses together with what follows.
                let from = if operator == "||" { start } else { operator_at };
                let message = format!("unparsable conditional expression '{}'", self.text[from..].trim_end());
                let hint = format!("a condition must follow '{operator}'");
                return Err(self.error(message, operator_at, operator_at + operator.len(), Some(hint)));
            }
            operands.push(operand(self)?);
        }
        match operands.pop() {
            Some(only) if operands.is_empty() => Ok(only),
            last => {
                operands.extend(last);
                Ok(combine(operands))
            }
        }
    }

    fn term(&mut self) -> Result<Expression, ConditionError> {
        let start = self.at;
        self.skip_blanks();
        let mut negated = false;
        while self.skip("!") {
            negated = !negated;
            self.skip_blanks();
        }
        let inner = if self.rest().starts_with('(') {
            self.parenthesis(start)?
        } else if let Some(value) = self.integer() {
            Expression::Constant(value)
        } else {
            self.call(start)?
        };
        Ok(if negated { Expression::Not(Box::new(inner)) } else { inner })
    }

    /// Parses `( … )`. The error about a missing end contains the whole term, as in HAProxy.
    fn parenthesis(&mut self, term: usize) -> Result<Expression, ConditionError> {
        let open = self.at;
        let whole = self.text.get(term..).unwrap_or_default();
        if self.depth == MAX_DEPTH {
            let message = format!("unparsable conditional sub-expression '{whole}'");
            let hint = format!("no more than {MAX_DEPTH} parentheses can be open at once");
            return Err(self.error(message, open, open + 1, Some(hint)));
        }
        self.depth += 1;
        self.at += 1;
        self.skip_blanks();
        if self.rest().is_empty() {
            return Err(self.unparsable(term, predicate::hint("", None)));
        }
        let inner = self.any()?;
        self.skip_blanks();
        if !self.skip(")") {
            let message = format!("expected ')' after conditional expression '{whole}'");
            let hint = "this '(' is never closed".to_owned();
            return Err(ConditionError { start: open, ..self.error(message, term, open + 1, Some(hint)) });
        }
        self.depth -= 1;
        Ok(inner)
    }

    /// Parses a number as C does: with a sign, in octal or in hexadecimal. Returns whether it is not zero.
    fn integer(&mut self) -> Option<bool> {
        let text = self.rest();
        let unsigned = text.trim_ascii_start();
        let unsigned = unsigned.strip_prefix(['-', '+']).unwrap_or(unsigned);
        let hexadecimal = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"));
        let (digits, base) = match hexadecimal {
            Some(digits) if digits.starts_with(|first: char| first.is_ascii_hexdigit()) => (digits, 16),
            _ if unsigned.starts_with('0') => (unsigned, 8),
            _ => (unsigned, 10),
        };
        let behind = digits.trim_start_matches(|digit: char| digit.is_digit(base));
        let number = digits.strip_suffix(behind).filter(|number| !number.is_empty())?;
        self.at += text.len() - behind.len();
        Some(number.bytes().any(|digit| digit != b'0'))
    }

    fn call(&mut self, term: usize) -> Result<Expression, ConditionError> {
        let start = self.at;
        let name = self.rest().split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        let behind = self.rest()[name.len()..].chars().next();
        let known = PREDICATES.iter().find(|predicate| predicate.name == name);
        let Some(predicate) = known.filter(|_| matches!(behind, None | Some('(' | ' ' | '\t'))) else {
            return Err(self.unparsable(term, predicate::hint(name, behind)));
        };
        self.at += name.len();
        let (arguments, start) = if behind == Some('(') {
            self.at += 1;
            (self.arguments(predicate)?, start + name.len() + 1)
        } else if predicate.arguments > 1 {
            return Err(self.missing(predicate, 1));
        } else {
            (vec![String::new(); predicate.arguments], start)
        };
        let end = if behind == Some('(') { self.at - 1 } else { self.at };
        Ok(Expression::Call { predicate, arguments, start, end: end.max(start) })
    }

    /// Parses the arguments of a predicate after its opening parenthesis, up to and including the closing one.
    fn arguments(&mut self, predicate: &'static Predicate) -> Result<Vec<String>, ConditionError> {
        let mut arguments = Vec::new();
        while arguments.len() < predicate.arguments {
            arguments.push(self.argument(predicate, arguments.len())?);
            if arguments.len() == predicate.arguments || !self.skip(",") {
                break;
            }
        }
        if arguments.len() < predicate.arguments {
            return Err(self.missing(predicate, arguments.len()));
        }
        if self.skip(")") {
            return Ok(arguments);
        }
        let number = predicate.arguments.min(1);
        let before = if self.rest().is_empty() { String::new() } else { format!(" before '{}'", self.rest()) };
        let message = format!(
            "expected ')'{before} in argument {number} of predicate '{}' used in conditional expression",
            predicate.name
        );
        Err(self.error(message, self.at, self.at + 1, Some(predicate.usage.to_owned())))
    }

    fn missing(&self, predicate: &Predicate, found: usize) -> ConditionError {
        let message = format!(
            "missing arguments (got {found}/{}), type 'string' expected in argument {found} of predicate '{}' used in \
             conditional expression",
            predicate.arguments, predicate.name
        );
        self.error(message, self.at, self.at + 1, Some(predicate.usage.to_owned()))
    }

    /// Parses one argument: quotes and backslashes apply once more, up to an unprotected comma or closing parenthesis.
    fn argument(&mut self, predicate: &Predicate, number: usize) -> Result<String, ConditionError> {
        let mut value = String::new();
        let mut quote = None;
        let mut characters = self.rest().char_indices().peekable();
        let mut length = self.rest().len();
        while let Some((at, found)) = characters.next() {
            match (found, quote) {
                ('\'' | '"', Some(open)) if found == open => quote = None,
                (_, Some('\'')) => value.push(found),
                ('\\', _) => match characters.peek().map(|&(_, next)| next) {
                    Some(next @ (' ' | '\\' | '\'' | '"' | 'n' | 'r' | 't')) => {
                        characters.next();
                        value.push(match next {
                            'n' => '\n',
                            'r' => '\r',
                            't' => '\t',
                            other => other,
                        });
                    }
                    Some(_) => value.push('\\'),
                    None => return Err(self.lone_backslash(predicate, number, at)),
                },
                (_, Some(_)) => value.push(found),
                ('\'' | '"', None) => quote = Some(found),
                (',' | ')', None) => {
                    length = at;
                    break;
                }
                (_, None) => value.push(found),
            }
        }
        self.at += length;
        Ok(value)
    }

    fn lone_backslash(&self, predicate: &Predicate, number: usize, at: usize) -> ConditionError {
        let message = format!(
            "failed to parse '\\' after '{}' as type 'string' at position {} in argument {number} of predicate '{}' used \
             in conditional expression",
            &self.rest()[..at],
            number + 1,
            predicate.name
        );
        let hint = "write \\\\ if the backslash itself is meant".to_owned();
        self.error(message, self.at + at, self.at + at + 1, Some(hint))
    }
}
