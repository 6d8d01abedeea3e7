//! `set-bandwidth-limit`: enables a bandwidth filter of the proxy for the stream. Must never count a byte.

use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use config::spec::FilterSpec;
use config::units;
use expression::Expression;
use expression::sample::{Context, Type, cast};
use std::time::Duration;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("set-bandwidth-limit", set_bandwidth_limit)];

/// The parameters of `set-bandwidth-limit`.
#[derive(Debug, Clone, PartialEq)]
pub struct BandwidthChange {
    /// Index of the proxy with the filter.
    pub proxy: usize,
    /// Index of the filter in the proxy; `None` if there is none with that name.
    pub filter: Option<usize>,
    /// The name as configured.
    pub name: Box<str>,
    /// Limit in bytes per period; `None` for that of the filter.
    limit: Option<Amount>,
    /// Period in milliseconds; `None` for that of the filter.
    period: Option<Amount>,
}

/// A constant or evaluated number.
#[derive(Debug, Clone, PartialEq)]
enum Amount {
    Fixed(u64),
    Computed(Expression),
}

impl Amount {
    /// Returns the number; `None` if the expression has no positive value.
    fn evaluate(&self, context: &Context<'_>) -> Option<u64> {
        let amount = match self {
            Self::Fixed(amount) => *amount,
            Self::Computed(expression) => {
                let value = expression.evaluate(context)?;
                let value = cast(value.kind(), Type::Int).and_then(|cast| cast(context, value))?;
                u64::try_from(value.integer()?).ok()?
            }
        };
        (amount > 0).then_some(amount)
    }
}

impl BandwidthChange {
    /// Returns limit and period, each if it differs from that of the filter.
    pub fn evaluate(&self, context: &Context<'_>) -> (Option<u64>, Option<Duration>) {
        let amount = |amount: &Option<Amount>| amount.as_ref().and_then(|amount| amount.evaluate(context));
        let period = amount(&self.period).map(|millis| Duration::from_millis(millis.min(i32::MAX as u64)));
        (amount(&self.limit), period)
    }
}

fn set_bandwidth_limit(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let name = words.expect("missing bwlim filter name")?;
    let list = &parsing.proxy.filters.list;
    let filter = list.iter().position(|filter| matches!(filter, FilterSpec::Bandwidth(own) if own.name == name.text));
    let (mut limit, mut period) = (None, None);
    while matches!(words.peek_text(), "limit" | "period") {
        let option = words.take().map_or("", |word| &word.text);
        let text = words.peek_text();
        let (fixed, what) = match option {
            "limit" => (units::size(text, u64::from(u32::MAX)).ok(), "size"),
            _ => (units::milliseconds(text).ok().map(|time| time.value), "time"),
        };
        let name = text.split(['(', ',']).next().unwrap_or_default();
        let amount = match fixed {
            Some(fixed) => {
                words.take();
                Amount::Fixed(fixed)
            }
            None if parsing.names.vocabulary().fetch(name).is_none() => {
                let message = format!("'{option}': invalid {what} value or unknown fetch method '{text}'");
                return Err(RuleError::at(words.peek(), message));
            }
            None => Amount::Computed(parsing.expression(words)?),
        };
        *if option == "limit" { &mut limit } else { &mut period } = Some(amount);
    }
    let proxy = parsing.names.current().unwrap_or_default();
    Ok(Action::LimitBandwidth(Box::new(BandwidthChange {
        proxy,
        filter,
        name: name.text.as_str().into(),
        limit,
        period,
    })))
}
