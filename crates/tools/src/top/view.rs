//! Selection and order of rows; rates are differences of two samples. Must never draw.

use super::condition::{Condition, conditions};
use super::sample::{Kind, Row, Sample};
use std::collections::HashMap;
use std::sync::Arc;

/// Kinds of rows that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    All,
    Proxies,
    Servers,
}

impl Scope {
    pub fn find(name: &str) -> Option<Self> {
        [Self::All, Self::Proxies, Self::Servers].into_iter().find(|scope| scope.option() == name)
    }

    /// Returns the name on the command line.
    const fn option(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Proxies => "proxies",
            Self::Servers => "servers",
        }
    }

    /// Returns the name of this number of rows.
    pub const fn rows(self, count: usize) -> &'static str {
        let is_one = count == 1;
        match self {
            Self::All if is_one => "row",
            Self::All => "rows",
            Self::Proxies if is_one => "proxy",
            Self::Proxies => "proxies",
            Self::Servers if is_one => "server",
            Self::Servers => "servers",
        }
    }

    /// Whether rows of this kind are shown.
    pub fn has(self, kind: Kind) -> bool {
        match self {
            Self::All => kind != Kind::Listener,
            Self::Proxies => matches!(kind, Kind::Frontend | Kind::Backend),
            Self::Servers => kind == Kind::Server,
        }
    }

    /// Returns the next scope, for a key.
    pub const fn next(self) -> Self {
        match self {
            Self::Proxies => Self::Servers,
            Self::Servers => Self::All,
            Self::All => Self::Proxies,
        }
    }

    /// Returns the previous scope, for a key.
    pub const fn previous(self) -> Self {
        self.next().next()
    }
}

/// Sort key of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortKey {
    Status,
    Name,
    Since,
    Sessions,
    Queue,
    Requests,
    Errors,
    In,
    Out,
    Time,
    P50,
    P95,
    P99,
}

impl SortKey {
    pub const ALL: [(&'static str, Self); 13] = [
        ("status", Self::Status),
        ("name", Self::Name),
        ("since", Self::Since),
        ("sessions", Self::Sessions),
        ("queue", Self::Queue),
        ("requests", Self::Requests),
        ("errors", Self::Errors),
        ("in", Self::In),
        ("out", Self::Out),
        ("time", Self::Time),
        ("p50", Self::P50),
        ("p95", Self::P95),
        ("p99", Self::P99),
    ];

    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, key)| key)
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, key)| *key == self).map_or("", |(name, _)| name)
    }

    /// Returns the sort key `steps` after this one, for keys.
    pub fn step(self, steps: usize) -> Self {
        let at = Self::ALL.iter().position(|(_, key)| *key == self).unwrap_or(0);
        Self::ALL[(at + steps) % Self::ALL.len()].1
    }

    /// Returns the previous sort key, for a key.
    pub fn previous(self) -> Self {
        self.step(Self::ALL.len() - 1)
    }

    /// Orders two rows: the worst, largest or newest first.
    fn compare(self, a: &ViewRow, b: &ViewRow) -> std::cmp::Ordering {
        let largest = |a: f64, b: f64| b.total_cmp(&a);
        let slowest = |at: usize| {
            let time = |one: &ViewRow| one.row.percentiles.map_or(-1.0, |times| times[at]);
            largest(time(a), time(b))
        };
        let (one, two) = (&a.row, &b.row);
        match self {
            Self::Status => a.condition.severity.cmp(&b.condition.severity),
            // The order of the process, which is that of the configuration.
            Self::Name => std::cmp::Ordering::Equal,
            Self::Since => one.since.unwrap_or(u64::MAX).cmp(&two.since.unwrap_or(u64::MAX)),
            Self::Sessions => two.sessions.cmp(&one.sessions),
            Self::Queue => two.queue.cmp(&one.queue),
            Self::Requests => largest(a.rates.requests, b.rates.requests),
            Self::Errors => largest(a.rates.errors, b.rates.errors).then(two.errors.cmp(&one.errors)),
            Self::In => largest(a.rates.received, b.rates.received),
            Self::Out => largest(a.rates.sent, b.rates.sent),
            Self::Time => two.time.cmp(&one.time),
            Self::P50 => slowest(0),
            Self::P95 => slowest(1),
            Self::P99 => slowest(2),
        }
    }
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortOrder {
    pub key: SortKey,
    pub reversed: bool,
}

/// Rates of a row, per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    pub requests: f64,
    pub errors: f64,
    pub received: f64,
    pub sent: f64,
}

/// A row with its rates and its condition.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewRow {
    pub row: Arc<Row>,
    pub rates: Rates,
    pub condition: Condition,
}

/// Returns the rows of a sample with their rates since the previous one; without one, with the process's own request
/// rate.
pub fn with_rates(sample: &Sample, before: Option<&Sample>) -> Vec<ViewRow> {
    let known: HashMap<(Kind, &str, &str), &Row> =
        before.iter().flat_map(|before| &before.rows).map(|row| (row.key(), &**row)).collect();
    let elapsed = before.map_or(0.0, |before| sample.at.saturating_since(before.at).as_secs_f64());
    let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / elapsed;
    let conditions = conditions(sample.rows.iter().map(|row| &**row));
    let shown = sample.rows.iter().zip(conditions).map(|(row, condition)| {
        let rates = match known.get(&row.key()).filter(|_| elapsed > 0.0) {
            None => Rates { requests: row.rate, ..Rates::default() },
            Some(old) => Rates {
                requests: rate(row.requests, old.requests),
                errors: rate(row.errors, old.errors),
                received: rate(row.received, old.received),
                sent: rate(row.sent, old.sent),
            },
        };
        ViewRow { row: Arc::clone(row), rates, condition }
    });
    shown.collect()
}

/// Selects and sorts rows. A filter is searched for in names, states and reasons.
pub fn choose(rows: &[ViewRow], scope: Scope, order: SortOrder, filter: &str) -> Vec<ViewRow> {
    let wanted = filter.to_lowercase();
    let text = |one: &ViewRow| format!("{} {} {}", one.row.label(), one.row.status, one.condition.reason);
    let fits =
        |one: &&ViewRow| scope.has(one.row.kind) && (wanted.is_empty() || text(one).to_lowercase().contains(&wanted));
    let mut chosen: Vec<ViewRow> = rows.iter().filter(fits).cloned().collect();
    if order.key == SortKey::Name {
        if order.reversed {
            chosen.reverse();
        }
        return chosen;
    }
    chosen.sort_by(|a, b| {
        let found = order.key.compare(a, b);
        if order.reversed { found.reverse() } else { found }
    });
    chosen
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::{ANSWER, LATENCY};
    use super::*;
    use std::time::Duration;

    fn rows() -> Vec<ViewRow> {
        let sample = Sample::parse(&format!("{ANSWER}{LATENCY}")).expect("an answer");
        with_rates(&sample, None)
    }

    #[test]
    fn rates_are_differences() {
        let before = Sample::parse(ANSWER).expect("an answer");
        let mut after = before.clone();
        after.at = before.at + Duration::from_secs(2);
        let front = Arc::make_mut(&mut after.rows[0]);
        front.requests += 100;
        front.sent += 4096;
        // A restarted process counts from 0.
        Arc::make_mut(&mut after.rows[1]).requests = 0;
        let shown = with_rates(&after, Some(&before));
        assert_eq!((shown[0].rates.requests, shown[0].rates.sent, shown[1].rates.requests), (50.0, 2048.0, 0.0));
        assert_eq!(rows()[0].rates.requests, 40.0);
    }

    #[test]
    fn rows_are_chosen_and_sorted() {
        let names = |scope, key, reversed, filter| {
            let chosen = choose(&rows(), scope, SortOrder { key, reversed }, filter);
            chosen.iter().map(|one| one.row.label()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(Scope::All, SortKey::Name, false, ""), "www app/s1 app/s2 app");
        assert_eq!(names(Scope::Proxies, SortKey::Name, true, ""), "app www");
        // The server that is down, the backend that lacks it, the rest in the order of the configuration.
        assert_eq!(names(Scope::All, SortKey::Status, false, ""), "app/s2 app www app/s1");
        assert_eq!(names(Scope::All, SortKey::Status, true, ""), "www app/s1 app app/s2");
        assert_eq!(names(Scope::Servers, SortKey::Since, false, ""), "app/s2 app/s1");
        assert_eq!(names(Scope::Servers, SortKey::Sessions, false, ""), "app/s2 app/s1");
        assert_eq!(names(Scope::Servers, SortKey::Time, true, ""), "app/s1 app/s2");
        assert_eq!(names(Scope::All, SortKey::P99, false, ""), "app/s1 www app app/s2");
        assert_eq!(names(Scope::All, SortKey::Name, false, "dOWn"), "app/s2");
        assert_eq!(names(Scope::Servers, SortKey::Name, false, "l4con"), "app/s2");
        assert_eq!(names(Scope::All, SortKey::Name, false, "nothing"), "");
    }

    #[test]
    fn keys_step_through_scopes_and_columns() {
        for scope in [Scope::All, Scope::Proxies, Scope::Servers] {
            assert_eq!(scope.next().previous(), scope);
            assert_eq!(Scope::find(scope.option()), Some(scope));
        }
        for (name, key) in SortKey::ALL {
            assert_eq!((SortKey::find(name), key.name()), (Some(key), name));
            assert_eq!(key.step(1).previous(), key);
        }
    }
}
