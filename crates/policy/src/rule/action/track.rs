//! Actions on stick tables: `track-sc0` and others, `sc-inc-gpc` and others. Must never look up a key.

use super::{Action, Number, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words, leading_integer};
use config::spec::DataKind;
use expression::Expression;
use expression::sample::{Context, cast};
use live::table::{Datum, Tracked, sample_type};

/// The actions of this family. The number of `track-sc` is part of its name.
pub(super) const TABLE: &[Row] = &[
    row("track-sc", track),
    row("sc-add-gpc", |words, parsing| change(words, parsing, Verb::Add)),
    row("sc-inc-gpc", |words, parsing| change(words, parsing, Verb::Increment)),
    row("sc-inc-gpc0", |words, parsing| increment(words, parsing, DataKind::Gpc0)),
    row("sc-inc-gpc1", |words, parsing| increment(words, parsing, DataKind::Gpc1)),
    row("sc-set-gpt", |words, parsing| change(words, parsing, Verb::Set)),
    row("sc-set-gpt0", set_first),
];

/// The parameters of `track-sc`.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    /// Number of the stick counter.
    pub number: u8,
    /// Index of the stick table.
    pub table: usize,
    pub key: Expression,
    /// The key is exactly the client's address (`src`).
    pub of_client: bool,
}

/// The operation on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Add,
    Increment,
    Set,
}

/// A change of a tracked entry.
#[derive(Debug, Clone, PartialEq)]
pub struct StickChange {
    /// Number of the stick counter.
    pub number: u8,
    verb: Verb,
    /// The data type to change; `None` if no table stores it.
    datum: Option<Datum>,
    by: Number,
}

impl StickChange {
    /// Returns the amount or the new value, truncated to 32 bits; `None` if the expression has no value.
    pub fn amount(&self, context: &Context<'_>) -> Option<u32> {
        Some(self.by.evaluate(context)? as u32)
    }

    /// Performs the change.
    pub fn perform(&self, context: &Context<'_>, tracked: &Tracked, amount: u32) {
        let Some(datum) = self.datum else { return };
        tracked.change(context.now, |entry| match self.verb {
            Verb::Add | Verb::Increment => datum.count(entry, tracked.table(), amount.into()),
            Verb::Set => datum.set(entry, tracked.table(), amount.into()),
        });
    }
}

fn track(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let action = words.action();
    let rules = parsing.rules();
    // Errors in TCP rules are reported without the place of the rule.
    let told = |message: String| if parsing.is_tcp() { format!("'{rules} {action}' : {message}") } else { message };
    let digits = action.strip_prefix("track-sc").unwrap_or_default();
    let most = parsing.names.stick_counters();
    let number = match digits.parse::<u64>() {
        Ok(number) if number < u64::from(most) => number as u8,
        Ok(number) => {
            let last = i32::from(most) - 1;
            return Err(RuleError::new(told(format!(
                "{number} track-sc number exceeding {last} (tune.stick-counters-1) value"
            ))));
        }
        Err(_) if digits.is_empty() => 0,
        Err(_) => return Err(RuleError::new(told(format!("Wrong track-sc number '{digits}'")))),
    };
    let key = parsing.key(words).map_err(|error| RuleError { message: told(error.message), ..error })?;
    let place = words.peek().map_or(words.span(), |word| word.span);
    let name = if words.peek_text() == "table" {
        words.take();
        words.expect(&told("missing table name".to_owned()))?.text.as_str()
    } else if parsing.names.is_inherited() {
        // Each proxy that uses a 'defaults' section would refer to its own table.
        ""
    } else {
        parsing.names.current_name().unwrap_or_default()
    };
    let proxy = &parsing.proxy.name.value;
    let Some(table) = parsing.names.table(name) else {
        let message = format!("Proxy '{proxy}': unable to find table '{name}' referenced by {action}.");
        return Err(RuleError { span: Some(place), ..RuleError::whole(message) });
    };
    let fits = |table| cast(key.output(), sample_type(table)).is_some();
    if !parsing.names.table_plan(table).is_some_and(|plan| fits(plan.key)) {
        let message =
            format!("Proxy '{proxy}': stick-table '{name}' uses a type incompatible with the '{action}' rule.");
        return Err(RuleError { span: Some(place), ..RuleError::whole(message) });
    }
    let of_client = key.is_plain() && key.fetch().name == "src";
    Ok(Action::Track(Box::new(Track { number, table, key, of_client })))
}

/// Validates the number of a stick counter.
fn check_number(number: u64, parsing: &Parsing<'_>, shown: &str, setting: &str) -> Result<u8, RuleError> {
    let most = parsing.names.stick_counters();
    if number < u64::from(most) {
        return Ok(number as u8);
    }
    let last = i32::from(most) - 1;
    Err(RuleError::new(format!("invalid stick table track ID{shown}. The max allowed ID is {last}{setting}")))
}

/// Parses `sc-inc-gpc0` and `sc-inc-gpc1`.
fn increment(words: &mut Words<'_>, parsing: &Parsing<'_>, kind: DataKind) -> Result<Action, RuleError> {
    let action = words.action();
    let number = match words.parentheses() {
        None | Some("") => 0,
        Some(inside) => leading_integer(inside)
            .filter(|(_, rest)| rest.is_empty())
            .map(|(number, _)| number)
            .ok_or_else(|| RuleError::new(format!("invalid stick table track ID. Expects {action}(<Track ID>)")))?,
    };
    let number = check_number(number, parsing, "", " (tune.stick-counters)")?;
    let change = StickChange { number, verb: Verb::Increment, datum: Some(Datum::first(kind)), by: Number::Fixed(1) };
    Ok(Action::ChangeTracked(Box::new(change)))
}

/// Parses `sc-set-gpt0`.
fn set_first(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let action = words.action();
    let number = match words.parentheses() {
        None | Some("") => 0,
        Some(inside) => {
            leading_integer(inside).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number).ok_or_else(|| {
                let why = format!("invalid stick table track ID '{action}'. Expects sc-set-gpt0(<Track ID>)");
                RuleError::new(why)
            })?
        }
    };
    let number = check_number(number, parsing, &format!(" '{action}'"), "")?;
    let datum = Some(Datum::first(DataKind::Gpt0));
    Ok(Action::ChangeTracked(Box::new(StickChange { number, verb: Verb::Set, datum, by: amount(words, parsing)? })))
}

/// Parses the actions on arrays.
fn change(words: &mut Words<'_>, parsing: &Parsing<'_>, verb: Verb) -> Result<Action, RuleError> {
    let action = words.action();
    let (name, what, kind) = match verb {
        Verb::Add => ("sc-add-gpc", "gpc", DataKind::Gpc),
        Verb::Increment => ("sc-inc-gpc", "gpc", DataKind::Gpc),
        Verb::Set => ("sc-set-gpt", "gpt", DataKind::Gpt),
    };
    let capital = what.to_uppercase();
    let usage = format!("Expects {name}(<{capital} ID>,<Track ID>)");
    let Some((_, inside)) = action.split_once('(') else {
        return Err(RuleError::new(format!("invalid {what} ID '{action}'. {usage}")));
    };
    let Some((index, rest)) = leading_integer(inside).and_then(|(index, rest)| Some((index, rest.strip_prefix(',')?)))
    else {
        let message = match verb {
            Verb::Add => format!("Missing gpc ID. Expects {action}(<GPC ID>,<Track ID>)"),
            _ => format!("Missing {what} ID '{action}'. {usage}"),
        };
        return Err(RuleError::new(message));
    };
    let number = leading_integer(rest).filter(|(_, rest)| rest.starts_with(')')).map(|(number, _)| number);
    let number = number.ok_or_else(|| RuleError::new(format!("invalid stick table track ID '{action}'. {usage}")))?;
    let setting = if verb == Verb::Set { "" } else { " (tune.stick-counters)" };
    let number = check_number(number, parsing, &format!(" '{action}'"), setting)?;
    let by = if verb == Verb::Increment { Number::Fixed(1) } else { amount(words, parsing)? };
    let datum = i64::try_from(index).ok().and_then(|index| Datum::array(kind, index));
    Ok(Action::ChangeTracked(Box::new(StickChange { number, verb, datum, by })))
}

/// Parses a number or an expression. A missing one is 0, as in HAProxy.
fn amount(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Number, RuleError> {
    let Some(word) = words.peek() else { return Ok(Number::Fixed(0)) };
    if let Ok(number) = word.text.parse::<i64>() {
        words.take();
        return Ok(Number::Fixed(i64::from(number as u32)));
    }
    Ok(Number::Computed(parsing.key(words)?))
}
