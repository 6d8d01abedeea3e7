//! Compiles `stick` rules: keys, conditions and tables. Must never look up a key.

use super::Compiler;
use super::names::{Reach, SpecNames};
use crate::rule::{Parsing, RuleError, StickRule, Words};
use config::diagnostic::Form;
use config::keyword::rule::{HTTP_REQUEST, HTTP_RESPONSE};
use config::spec::{DataKind, ProxySpec, RuleLineSpec};
use expression::Expression;
use expression::sample::{EvalPlace, cast};
use live::table::StickTable;
use live::table::sample_type;
use std::cell::RefCell;

impl Compiler<'_> {
    /// Compiles a rule. Its first word is the action: `on`, `match`, `store-request`, `store-response`.
    pub(super) fn stick(
        &mut self,
        line: &RuleLineSpec,
        written: &ProxySpec,
        reach: &Reach,
        names: &SpecNames<'_>,
    ) -> Option<StickRule> {
        let mut words = Words::new(&line.words);
        let on_response = words.action() == "store-response";
        let (matches, stores) = match words.action() {
            "on" => (true, true),
            "match" => (true, false),
            _ => (false, true),
        };
        names.begin(line);
        let place = if on_response { EvalPlace::StickStore } else { EvalPlace::ServerChoice };
        let set = if on_response { HTTP_RESPONSE } else { HTTP_REQUEST };
        let parsing = Parsing { names, place, set, proxy: written, warnings: RefCell::default() };
        let key = match stick_key(&parsing, &mut words) {
            Ok(key) => key,
            Err(error) => {
                let message = match error.message.as_str() {
                    "expects a fetch method." => "'stick' expects a fetch method.".to_owned(),
                    other => format!("'stick': {other}"),
                };
                self.alert_with_hint(error.span.unwrap_or(line.span), Form::Parsing, message, error.hint);
                return None;
            }
        };
        let mut name = written.name.value.as_str();
        if words.peek_text() == "table" {
            words.take();
            name = words.take().map_or("", |word| &word.text);
        }
        if let Some(word) = words.peek() {
            self.alert(word.span, Form::Parsing, format!("'stick': unknown keyword '{}'.", word.text));
            return None;
        }
        let rest = words.rest();
        let what = "'stick': error detected while parsing sticking condition";
        let condition = self.bare_condition(line, rest, reach, names, what);
        if condition.is_none() && !rest.is_empty() {
            return None;
        }
        self.warn_of_misfit(condition.as_ref(), rest, place, place, "", written);
        let table = self.stick_table(line, written, name, &key)?;
        let place = super::rules::rule_place(line);
        Some(StickRule { matches, stores, on_response, table, key, condition, place })
    }

    /// Returns the table with that name, and makes it store servers.
    fn stick_table(&mut self, line: &RuleLineSpec, written: &ProxySpec, name: &str, key: &Expression) -> Option<usize> {
        let place = self.shared.indexes.tables.find(&self.shared.tables.borrow(), name, |table| Some(&table.name));
        let found = place.ok_or_else(|| format!("unable to find stick-table '{name}'"));
        let found = found.and_then(|place| remember_servers(&mut self.shared.tables.borrow_mut(), place, key));
        match found {
            Ok(index) => Some(index),
            Err(why) => {
                self.alert(line.span, Form::Bare, format!("Proxy '{}': {why}.", written.name.value));
                None
            }
        }
    }
}

fn remember_servers(tables: &mut [StickTable], index: usize, key: &Expression) -> Result<usize, String> {
    let table = &mut tables[index];
    if cast(key.output(), sample_type(table.key)).is_none() {
        return Err(format!("type of pattern not usable with type of stick-table '{}'", table.name));
    }
    table.require(DataKind::ServerId);
    table.require(DataKind::ServerKey);
    Ok(index)
}

/// Parses the key; errors have HAProxy's messages for these rules.
fn stick_key(parsing: &Parsing<'_>, words: &mut Words<'_>) -> Result<Expression, RuleError> {
    let Some(first) = words.peek() else { return Err(RuleError::new("expects a fetch method.")) };
    let error = match parsing.expression(words) {
        Err(error) if error.message.starts_with("sample fetch <") => error,
        other => return other,
    };
    let name = first.text.split(['(', ',']).next().unwrap_or_default();
    let Some(fetch) = parsing.names.vocabulary().fetch(name) else { return Err(error) };
    let needs = fetch.wanted();
    let when = if parsing.is_request() { "during request" } else { "for 'store-response'" };
    let message =
        format!("fetch method '{name}' extracts information from '{needs}', none of which is available {when}.");
    Err(RuleError { message, ..error })
}
