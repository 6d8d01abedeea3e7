//! Structure of keyword tables: a row contains the name, the usage, a description and the status in Weir. Must
//! never depend on a particular keyword.

/// Status in Weir of a keyword of HAProxy. `P` is the function that parses it.
#[derive(Debug, Clone, Copy)]
pub enum Status<P> {
    /// Supported.
    Supported(P),
    /// Supported; its first argument has a table of its own, where statuses differ.
    Group(P),
    /// Rejected with an error. To support it, write the function and turn the row's `not_yet` into `supported`.
    NotYet,
    /// Removed from HAProxy, with its own sentence about that. `%1` is the first argument.
    Removed(&'static str),
    /// Rejected by design, with a sentence that gives the reason. `%1` is the first argument.
    Refused(&'static str),
    /// Accepted without effect: it tunes a part that Weir does not have.
    Tuning,
}

/// [`Status`] without the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SupportLevel {
    /// Supported.
    Supported,
    /// Its first argument decides.
    Group,
    /// Not supported yet.
    NotYet,
    /// Removed from HAProxy.
    Removed,
    /// Rejected by design.
    Refused,
    /// Accepted without effect.
    Tuning,
}

impl SupportLevel {
    /// Returns the name in the reference manual.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Group => "see its own table",
            Self::NotYet => "not yet",
            Self::Removed => "removed",
            Self::Refused => "refused",
            Self::Tuning => "accepted, no effect",
        }
    }
}

/// One row. `X` is additional data of a kind of keyword: its scope, its number of arguments.
#[derive(Debug, Clone, Copy)]
pub struct Keyword<P: 'static, X: 'static = ()> {
    /// The name; two words where the first one is a group, such as `timeout client`.
    pub name: &'static str,
    /// The arguments as in the manual. If they start with a parenthesis, they follow the name without a
    /// space.
    pub usage: &'static str,
    /// Description, in a sentence.
    pub doc: &'static str,
    pub status: Status<P>,
    /// Additional data of the kind.
    pub extra: X,
}

impl<P: Copy, X: Copy> Keyword<P, X> {
    /// Builds a row.
    pub const fn new(extra: X, name: &'static str, usage: &'static str, doc: &'static str, status: Status<P>) -> Self {
        Self { name, usage, doc, status, extra }
    }

    /// Whether a word is this keyword, with or without its arguments in parentheses.
    pub fn is(&self, word: &str) -> bool {
        self.name == word
            || (self.takes_parentheses() && word.split_once('(').is_some_and(|(name, _)| name == self.name))
    }

    fn takes_parentheses(&self) -> bool {
        self.usage.starts_with('(') || self.usage.starts_with("[(")
    }

    /// Returns the status without the function.
    pub const fn standing(&self) -> SupportLevel {
        match self.status {
            Status::Supported(_) => SupportLevel::Supported,
            Status::Group(_) => SupportLevel::Group,
            Status::NotYet => SupportLevel::NotYet,
            Status::Removed(_) => SupportLevel::Removed,
            Status::Refused(_) => SupportLevel::Refused,
            Status::Tuning => SupportLevel::Tuning,
        }
    }
}

/// Rows of one file.
#[derive(Debug)]
pub struct Family<K: 'static> {
    /// Heading in the reference manual.
    pub title: &'static str,
    pub rows: &'static [K],
}

/// Returns all rows of several families.
pub fn rows<K>(families: &'static [Family<K>]) -> impl Iterator<Item = &'static K> {
    families.iter().flat_map(|family| family.rows)
}

/// Result of a lookup by one or two words.
pub enum RowLookup<'a, K> {
    /// A row, and the number of words of its name.
    Row(&'a K, usize),
    /// The first word opens a group that does not contain the second one.
    Group,
    /// No match.
    Unknown,
}

/// Looks up the first words of a line.
pub fn find<P: Copy, X: Copy>(
    families: &'static [Family<Keyword<P, X>>],
    first: &str,
    second: &str,
    third: &str,
) -> RowLookup<'static, Keyword<P, X>> {
    let mut group = false;
    for row in rows(families) {
        if !row.name.starts_with(first) {
            continue;
        }
        let mut parts = row.name.split(' ');
        if parts.next() != Some(first) {
            continue;
        }
        match (parts.next(), parts.next()) {
            (None, _) => return RowLookup::Row(row, 1),
            (Some(_), None) if is_second(row, second) => return RowLookup::Row(row, 2),
            (Some(middle), Some(last)) if middle == second && last == third => return RowLookup::Row(row, 3),
            _ => group = true,
        }
    }
    if group { RowLookup::Group } else { RowLookup::Unknown }
}

fn is_second<P: Copy, X: Copy>(row: &Keyword<P, X>, second: &str) -> bool {
    let Some((_, name)) = row.name.split_once(' ') else { return false };
    Keyword { name, ..*row }.is(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Keyword<()> = Keyword::new((), "", "", "", Status::NotYet);
    static FAMILIES: &[Family<Keyword<()>>] = &[Family {
        title: "test",
        rows: &[
            Keyword { name: "mode", ..ROW },
            Keyword { name: "timeout client", ..ROW },
            Keyword { name: "http-check set-var", usage: "(<variable>) <expression>", ..ROW },
            Keyword { name: "capture cookie", ..ROW },
            Keyword { name: "capture request header", ..ROW },
        ],
    }];

    fn look(line: &str) -> String {
        let mut words = line.split(' ');
        let mut next = || words.next().unwrap_or_default();
        match find(FAMILIES, next(), next(), next()) {
            RowLookup::Row(row, words) => format!("{} {words}", row.name),
            RowLookup::Group => "group".into(),
            RowLookup::Unknown => "unknown".into(),
        }
    }

    #[test]
    fn names_of_one_two_and_three_words_are_found() {
        let rows = [
            ("mode http", "mode 1"),
            ("timeout client 3s", "timeout client 2"),
            ("timeout clien 3s", "group"),
            ("timeout", "group"),
            ("http-check set-var(txn.a) int(1)", "http-check set-var 2"),
            ("timeout client(x)", "group"),
            ("capture cookie x", "capture cookie 2"),
            ("capture request header x", "capture request header 3"),
            ("capture request body x", "group"),
            ("nothing", "unknown"),
        ];
        for (line, expected) in rows {
            assert_eq!(look(line), expected, "{line}");
        }
    }
}
