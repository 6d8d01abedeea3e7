//! Selection and order of rows, and their columns; rates are differences of two samples. Must never draw.

use super::format::{millis, short};
use super::sample::{Kind, Row, Sample};
use std::collections::HashMap;

/// Kinds of rows that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    All,
    Proxies,
    Servers,
}

impl Scope {
    pub fn find(name: &str) -> Option<Self> {
        [("all", Self::All), ("proxies", Self::Proxies), ("servers", Self::Servers)]
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, scope)| scope)
    }

    fn has(self, kind: Kind) -> bool {
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
            Self::All | Self::Servers => Self::Proxies,
        }
    }
}

/// Sort key of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortKey {
    Name,
    Status,
    Sessions,
    Queue,
    Requests,
    Errors,
    In,
    Out,
    Time,
}

impl SortKey {
    pub const ALL: [(&'static str, Self); 9] = [
        ("name", Self::Name),
        ("status", Self::Status),
        ("sessions", Self::Sessions),
        ("queue", Self::Queue),
        ("requests", Self::Requests),
        ("errors", Self::Errors),
        ("in", Self::In),
        ("out", Self::Out),
        ("time", Self::Time),
    ];

    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, key)| key)
    }

    /// Returns the next sort key, for a key.
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|(_, key)| *key == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()].1
    }
}

/// Rates of a row, per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    pub requests: f64,
    pub errors: f64,
    pub received: f64,
    pub sent: f64,
}

/// A row with its rates.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewRow {
    pub row: Row,
    pub rates: Rates,
}

/// Returns the rows of a sample with their rates since the previous one; without one, with the process's own request
/// rate.
pub fn with_rates(sample: &Sample, before: Option<&Sample>) -> Vec<ViewRow> {
    let known: HashMap<(Kind, &str, &str), &Row> =
        before.iter().flat_map(|before| &before.rows).map(|row| (row.key(), row)).collect();
    let elapsed = before.map_or(0.0, |before| sample.at.saturating_since(before.at).as_secs_f64());
    let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / elapsed;
    let shown = sample.rows.iter().map(|row| {
        let rates = match known.get(&row.key()).filter(|_| elapsed > 0.0) {
            None => Rates { requests: row.rate, ..Rates::default() },
            Some(old) => Rates {
                requests: rate(row.requests, old.requests),
                errors: rate(row.errors, old.errors),
                received: rate(row.received, old.received),
                sent: rate(row.sent, old.sent),
            },
        };
        ViewRow { row: row.clone(), rates }
    });
    shown.collect()
}

/// Selects and sorts rows.
pub fn choose(rows: &[ViewRow], scope: Scope, sort: SortKey, reversed: bool, filter: &str) -> Vec<ViewRow> {
    let wanted = filter.to_lowercase();
    let fits = |one: &&ViewRow| {
        scope.has(one.row.kind) && format!("{} {}", one.row.label(), one.row.status).to_lowercase().contains(&wanted)
    };
    let mut chosen: Vec<ViewRow> = rows.iter().filter(fits).cloned().collect();
    // Descending; names and states in alphabetical order.
    let largest = |a: f64, b: f64| b.total_cmp(&a);
    chosen.sort_by(|a, b| {
        let (one, two) = (&a.row, &b.row);
        let order = match sort {
            // The order of the process, which is that of the configuration.
            SortKey::Name => std::cmp::Ordering::Equal,
            SortKey::Status => one.status.cmp(&two.status),
            SortKey::Sessions => two.sessions.cmp(&one.sessions),
            SortKey::Queue => two.queue.cmp(&one.queue),
            SortKey::Requests => largest(a.rates.requests, b.rates.requests),
            SortKey::Errors => largest(a.rates.errors, b.rates.errors).then(two.errors.cmp(&one.errors)),
            SortKey::In => largest(a.rates.received, b.rates.received),
            SortKey::Out => largest(a.rates.sent, b.rates.sent),
            SortKey::Time => two.time.cmp(&one.time),
        };
        if reversed { order.reverse() } else { order }
    });
    if reversed && sort == SortKey::Name {
        chosen.reverse();
    }
    chosen
}

/// Titles of the columns, each with its sort key.
pub const COLUMNS: [(&str, Option<SortKey>); 12] = [
    ("NAME", Some(SortKey::Name)),
    ("KIND", None),
    ("STATUS", Some(SortKey::Status)),
    ("WEIGHT", None),
    ("SESSIONS", Some(SortKey::Sessions)),
    ("QUEUE", Some(SortKey::Queue)),
    ("REQ/S", Some(SortKey::Requests)),
    ("ERR/S", Some(SortKey::Errors)),
    ("ERRORS", None),
    ("IN/S", Some(SortKey::In)),
    ("OUT/S", Some(SortKey::Out)),
    ("TIME", Some(SortKey::Time)),
];

/// Number of leading columns that are text; the others are numbers.
pub const TEXTS: usize = 3;

/// Returns the cells of a row, one for each column.
pub fn cells(shown: &ViewRow) -> [String; COLUMNS.len()] {
    let ViewRow { row, rates } = shown;
    let number = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
    let weight = match row.kind {
        Kind::Backend => row.usable.map_or("-".to_owned(), |usable| format!("{usable} up")),
        _ => number(row.weight),
    };
    let has_queue = matches!(row.kind, Kind::Backend | Kind::Server);
    [
        row.label(),
        row.kind.name().to_owned(),
        row.status.clone(),
        weight,
        row.sessions.to_string(),
        if has_queue { row.queue.to_string() } else { "-".to_owned() },
        short(rates.requests),
        short(rates.errors),
        row.errors.to_string(),
        short(rates.received),
        short(rates.sent),
        row.time.map_or("-".to_owned(), millis),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::ANSWER;
    use super::*;
    use std::time::Duration;

    fn rows() -> Vec<ViewRow> {
        let sample = Sample::parse(ANSWER).expect("an answer");
        with_rates(&sample, None)
    }

    #[test]
    fn rates_are_differences() {
        let before = Sample::parse(ANSWER).expect("an answer");
        let mut after = before.clone();
        after.at = before.at + Duration::from_secs(2);
        after.rows[0].requests += 100;
        after.rows[0].sent += 4096;
        // A restarted process counts from 0.
        after.rows[1].requests = 0;
        let shown = with_rates(&after, Some(&before));
        assert_eq!((shown[0].rates.requests, shown[0].rates.sent, shown[1].rates.requests), (50.0, 2048.0, 0.0));
        assert_eq!(rows()[0].rates.requests, 40.0);
    }

    #[test]
    fn rows_are_chosen_and_sorted() {
        let names = |scope, sort, reversed, filter| {
            let chosen = choose(&rows(), scope, sort, reversed, filter);
            chosen.iter().map(|one| one.row.label()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(Scope::All, SortKey::Name, false, ""), "www app/s1 app/s2 app");
        assert_eq!(names(Scope::Proxies, SortKey::Name, true, ""), "app www");
        assert_eq!(names(Scope::Servers, SortKey::Sessions, false, ""), "app/s2 app/s1");
        assert_eq!(names(Scope::Servers, SortKey::Time, true, ""), "app/s1 app/s2");
        assert_eq!(names(Scope::All, SortKey::Name, false, "dOWn"), "app/s2");
        assert_eq!(names(Scope::All, SortKey::Name, false, "nothing"), "");
    }

    #[test]
    fn every_column_has_a_cell() {
        let cells = cells(&rows()[2]);
        assert_eq!(cells[..6], ["app/s2", "server", "DOWN 1/2", "10", "5", "2"]);
        assert_eq!(cells[11], "95ms");
        assert!(SortKey::ALL.iter().all(|(_, key)| COLUMNS.iter().any(|(_, sorts)| *sorts == Some(*key))));
    }
}
