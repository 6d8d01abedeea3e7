//! Stick tables: which are defined, which are filled by tracking, and the counters that samples and actions read. Must
//! never judge whether a counter is stored.

use super::{Model, Statement, StatementKind};
use config::span::Span;
use config::spec::{DataKind, TableSpec};
use expression::Call;

/// A table and the name that rules use.
pub struct Table<'a> {
    pub name: String,
    pub spec: &'a TableSpec,
}

/// A `track-sc` rule.
pub struct Track {
    /// The number of the stick counter.
    pub number: u32,
    /// The name of the table.
    pub table: String,
    /// The place of the rule.
    pub span: Span,
    /// The rule is in the `defaults` section.
    pub inherited: bool,
}

/// A data type of an entry, and an element of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datum {
    pub kind: DataKind,
    /// 0 for a type that is no array.
    pub element: u32,
}

/// The entry that a sample or an action uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CounterAccess {
    /// The entry that a stick counter tracks; in another table than the tracked one if it names one.
    Tracked { number: u32, table: Option<String> },
    /// An entry of a table, by a key; `None`: the table of the proxy.
    Keyed { table: Option<String> },
}

/// A sample or an action that uses an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterRead {
    /// Its name as written.
    pub name: String,
    pub access: CounterAccess,
    /// The data; `None`: something that every entry has.
    pub datum: Option<Datum>,
    /// It increments a counter, which counts for the counter's rate as well.
    pub increments: bool,
}

impl<'a> Model<'a> {
    /// Returns the table of that name.
    pub fn table(&self, name: &str) -> Option<Table<'a>> {
        if let Some((section, table)) = name.split_once('/') {
            let section = self.spec.sections.peers.iter().find(|peers| peers.name.value == section)?;
            let found = section.tables.iter().find(|own| own.name.value == table)?;
            return Some(Table { name: name.to_owned(), spec: &found.table });
        }
        self.tables.get(name).map(|spec| Table { name: name.to_owned(), spec })
    }
}

/// Returns the `track-sc` rules among the statements of a proxy, which is the default of their table.
pub fn tracks(statements: &[Statement<'_>], proxy: &str) -> Vec<Track> {
    let rules = statements.iter().filter(|statement| matches!(statement.kind, StatementKind::Rule(_)));
    rules
        .filter_map(|statement| {
            let digits = statement.action().strip_prefix("track-sc")?;
            let number = if digits.is_empty() { 0 } else { digits.parse().ok()? };
            let named = statement.words.iter().position(|word| word.text == "table");
            let table = named.and_then(|at| statement.words.get(at + 1));
            let table = table.map_or(proxy, |word| &word.text).to_owned();
            Some(Track { number, table, span: statement.line.span, inherited: statement.line.inherited })
        })
        .collect()
}

/// Prefixes of names that say what is done with the data.
const VERBS: [&str; 3] = ["get_", "inc_", "clr_"];

/// Returns the data type of the rest of a name.
fn kind_of(rest: &str) -> Option<DataKind> {
    let rest = VERBS.iter().find_map(|verb| rest.strip_prefix(verb)).unwrap_or(rest);
    match rest {
        "kbytes_in" => Some(DataKind::BytesInCnt),
        "kbytes_out" => Some(DataKind::BytesOutCnt),
        "updt_conn_cnt" => Some(DataKind::ConnCnt),
        other => DataKind::find(other),
    }
}

/// Returns the entry that a fetch or a converter uses; `None` for one that uses none.
pub fn counter_of_call(call: &Call) -> Option<CounterRead> {
    let name = call.name.as_str();
    let arguments = call.arguments.as_deref().unwrap_or_default();
    let text = |index: usize| arguments.get(index).filter(|text| !text.is_empty());
    let number = |index: usize| text(index).and_then(|text| text.parse::<u32>().ok());
    let (rest, form) = prefix(name)?;
    let data = kind_of(rest);
    let indexed = data.is_some_and(DataKind::is_array);
    let shift = usize::from(indexed);
    let element = if indexed { number(0)? } else { 0 };
    let access = match form {
        Form::Numbered => CounterAccess::Tracked { number: number(shift)?, table: text(shift + 1).cloned() },
        Form::Named(number) => CounterAccess::Tracked { number, table: text(shift).cloned() },
        Form::Keyed => CounterAccess::Keyed { table: text(shift).cloned() },
    };
    let datum = data.map(|kind| Datum { kind, element });
    Some(CounterRead { name: name.to_owned(), access, datum, increments: rest.starts_with("inc_") })
}

/// How a name says which entry it uses.
enum Form {
    /// `sc_`: the first argument is the number.
    Numbered,
    /// `sc0_` to `sc2_`.
    Named(u32),
    /// `src_` and `table_`.
    Keyed,
}

fn prefix(name: &str) -> Option<(&str, Form)> {
    let forms = [
        ("sc_", Form::Numbered),
        ("sc0_", Form::Named(0)),
        ("sc1_", Form::Named(1)),
        ("sc2_", Form::Named(2)),
        ("src_", Form::Keyed),
        ("table_", Form::Keyed),
    ];
    let (rest, form) = forms.into_iter().find_map(|(prefix, form)| Some((name.strip_prefix(prefix)?, form)))?;
    let of_entry = matches!(rest, "tracked" | "trackers" | "key" | "idle" | "expire");
    (of_entry || kind_of(rest).is_some()).then_some((rest, form))
}

/// Returns the entry that an action changes: `sc-inc-gpc0(1)` or `sc-set-gpt(0,1)`.
pub fn counter_of_action(word: &str) -> Option<CounterRead> {
    let (name, inside) = word.split_once('(').unwrap_or((word, ""));
    let numbers: Vec<u32> = inside.trim_end_matches(')').split(',').filter_map(|text| text.parse().ok()).collect();
    let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
    let (kind, element, number) = match name {
        "sc-inc-gpc0" => (DataKind::Gpc0, 0, at(0)),
        "sc-inc-gpc1" => (DataKind::Gpc1, 0, at(0)),
        "sc-set-gpt0" => (DataKind::Gpt0, 0, at(0)),
        "sc-inc-gpc" | "sc-add-gpc" => (DataKind::Gpc, at(0), at(1)),
        "sc-set-gpt" => (DataKind::Gpt, at(0), at(1)),
        _ => return None,
    };
    let access = CounterAccess::Tracked { number, table: None };
    let increments = !name.starts_with("sc-set");
    Some(CounterRead { name: name.to_owned(), access, datum: Some(Datum { kind, element }), increments })
}

impl Table<'_> {
    /// Whether its entries have what a sample or an action uses.
    pub fn serves(&self, read: &CounterRead) -> bool {
        let Some(datum) = read.datum else { return true };
        let rate = match datum.kind {
            DataKind::Gpc0 => Some(DataKind::Gpc0Rate),
            DataKind::Gpc1 => Some(DataKind::Gpc1Rate),
            DataKind::Gpc => Some(DataKind::GpcRate),
            _ => None,
        };
        let counts = |rate| read.increments && self.stores(Datum { kind: rate, ..datum });
        self.stores(datum) || rate.is_some_and(counts)
    }

    /// Whether its entries have that data.
    fn stores(&self, datum: Datum) -> bool {
        let has = |kind: DataKind, element: u32| {
            self.spec.store.iter().any(|stored| stored.kind == kind && (!kind.is_array() || stored.elements > element))
        };
        // The first elements of the arrays replace the older types.
        let array = match datum.kind {
            DataKind::Gpc0 => Some((DataKind::Gpc, 0)),
            DataKind::Gpc1 => Some((DataKind::Gpc, 1)),
            DataKind::Gpt0 => Some((DataKind::Gpt, 0)),
            DataKind::Gpc0Rate => Some((DataKind::GpcRate, 0)),
            DataKind::Gpc1Rate => Some((DataKind::GpcRate, 1)),
            _ => None,
        };
        has(datum.kind, datum.element) || array.is_some_and(|(kind, element)| has(kind, element))
    }
}
