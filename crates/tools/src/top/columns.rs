//! Columns of the table: their titles, their cells, and which of them fit into a width. Must never draw.

use super::format::{duration, latency, millis, short};
use super::sample::Kind;
use super::view::{SortKey, ViewRow};

/// Alignment of a column, and whether its cells may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Text,
    Number,
    /// Text that takes the rest of the line, and is cut there.
    Rest,
}

/// A column of the table.
pub struct Column {
    pub title: &'static str,
    pub sort: Option<SortKey>,
    pub shape: Shape,
    /// Columns with lower numbers are shown first if not all fit.
    rank: u8,
    /// Place in the table of `--once`, which programs read.
    pub place: u8,
    pub cell: fn(&ViewRow) -> String,
}

/// Text of a cell without a value.
pub const NO_VALUE: &str = "–";

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NO_VALUE.to_owned())
}

fn percentile(shown: &ViewRow, at: usize) -> String {
    or_none(shown.row.percentiles.map(|times| latency(times[at])))
}

const fn column(
    title: &'static str,
    sort: Option<SortKey>,
    shape: Shape,
    [rank, place]: [u8; 2],
    cell: fn(&ViewRow) -> String,
) -> Column {
    Column { title, sort, shape, rank, place, cell }
}

/// The columns in their order on the screen.
pub static COLUMNS: [Column; 18] = [
    column("NAME", Some(SortKey::Name), Shape::Text, [0, 0], |one| one.row.label()),
    column("KIND", None, Shape::Text, [4, 1], |one| one.row.kind.short().to_owned()),
    column("STATUS", Some(SortKey::Status), Shape::Text, [1, 2], |one| one.row.status.clone()),
    column("SINCE", Some(SortKey::Since), Shape::Number, [2, 15], |one| or_none(one.row.since.map(duration))),
    column("UP", None, Shape::Number, [3, 16], |one| {
        or_none(one.condition.servers.map(|(up, count)| format!("{up}/{count}")))
    }),
    column("WEIGHT", None, Shape::Number, [15, 3], |one| or_none(one.row.weight.map(|weight| weight.to_string()))),
    column("SESSIONS", Some(SortKey::Sessions), Shape::Number, [10, 4], |one| one.row.sessions.to_string()),
    column("QUEUE", Some(SortKey::Queue), Shape::Number, [9, 5], |one| {
        let has_queue = matches!(one.row.kind, Kind::Backend | Kind::Server);
        or_none(has_queue.then(|| one.row.queue.to_string()))
    }),
    column("REQ/S", Some(SortKey::Requests), Shape::Number, [6, 6], |one| short(one.rates.requests)),
    column("ERR/S", Some(SortKey::Errors), Shape::Number, [7, 7], |one| short(one.rates.errors)),
    column("ERRORS", None, Shape::Number, [16, 8], |one| one.row.errors.to_string()),
    column("IN/S", Some(SortKey::In), Shape::Number, [14, 9], |one| short(one.rates.received)),
    column("OUT/S", Some(SortKey::Out), Shape::Number, [13, 10], |one| short(one.rates.sent)),
    column("TIME", Some(SortKey::Time), Shape::Number, [17, 11], |one| or_none(one.row.time.map(millis))),
    column("P50", Some(SortKey::P50), Shape::Number, [12, 12], |one| percentile(one, 0)),
    column("P95", Some(SortKey::P95), Shape::Number, [11, 13], |one| percentile(one, 1)),
    column("P99", Some(SortKey::P99), Shape::Number, [8, 14], |one| percentile(one, 2)),
    column("REASON", None, Shape::Rest, [5, 17], |one| one.condition.reason.clone()),
];

/// A column that is shown, and its width.
#[derive(Clone, Copy)]
pub struct ColumnWidth {
    pub column: &'static Column,
    pub width: usize,
}

/// Width between two columns.
pub const GAP: usize = 2;
/// Minimum width that the reason of a row is worth.
const LEAST_REASON: usize = 26;
/// Minimum width of names: shorter ones are shown whole if their column takes more than a third of the line.
const LEAST_NAME: usize = 20;

/// Returns the number of characters of a text.
pub fn width_of(text: &str) -> usize {
    ratatui::text::Span::raw(text).width()
}

/// Natural widths of all columns for some rows.
#[derive(Debug, Clone, Default)]
pub struct NaturalWidths(Vec<usize>);

impl NaturalWidths {
    /// Measures the cells, and the title of the sorted column with its mark. Columns without any content are omitted,
    /// and kinds if all rows are of one.
    pub fn of(rows: &[ViewRow], sorted: SortKey) -> Self {
        let is_uniform = rows.windows(2).all(|pair| pair[0].row.kind == pair[1].row.kind);
        let has_backend = rows.iter().any(|one| one.row.kind == Kind::Backend);
        let measure = |column: &Column| {
            let cells = rows.iter().map(|one| width_of(&(column.cell)(one))).max().unwrap_or(0);
            let is_empty = match column.title {
                "KIND" => is_uniform,
                "UP" => !has_backend,
                "REASON" => cells == 0,
                _ => false,
            };
            let title = width_of(column.title) + usize::from(column.sort == Some(sorted));
            if is_empty { 0 } else { cells.max(title) }
        };
        Self(COLUMNS.iter().map(measure).collect())
    }

    /// Selects the columns that fit into a line, the most important first, and returns them in their order.
    pub fn fit(&self, line: usize) -> Vec<ColumnWidth> {
        let mut ranked: Vec<usize> = (0..self.0.len()).filter(|at| self.0[*at] > 0).collect();
        ranked.sort_by_key(|at| COLUMNS[*at].rank);
        let least = |at: usize| match (COLUMNS[at].rank, COLUMNS[at].shape) {
            (0, _) => self.0[at].min((line / 3).max(LEAST_NAME)),
            (_, Shape::Rest) => self.0[at].min(LEAST_REASON),
            _ => self.0[at],
        };
        let (mut used, mut chosen) = (0, Vec::new());
        for at in ranked {
            let gap = if chosen.is_empty() { 0 } else { GAP };
            // The columns of names and states are always shown.
            if used + gap + least(at) <= line || chosen.len() < 2 {
                used += gap + least(at);
                chosen.push((at, least(at)));
            }
        }
        let mut free = line.saturating_sub(used);
        // Names first, then reasons.
        for (at, width) in &mut chosen {
            let more = (self.0[*at] - *width).min(free);
            *width += more;
            free -= more;
        }
        chosen.sort_unstable();
        chosen.into_iter().map(|(at, width)| ColumnWidth { column: &COLUMNS[at], width }).collect()
    }
}

/// Cuts a name in its middle: its end distinguishes servers of one backend.
pub fn cut_name(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if width_of(text) <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let (head, tail) = (kept - kept / 2, kept / 2);
    let end: String = text.chars().skip(length.saturating_sub(tail)).collect();
    text.chars().take(head).chain(['…']).chain(end.chars()).collect()
}

/// Cuts a text at its end.
pub fn cut_end(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for letter in text.chars() {
        if width_of(&cut) + width_of(letter.encode_utf8(&mut [0; 4])) + 1 > width {
            break;
        }
        cut.push(letter);
    }
    cut.push('…');
    cut
}

/// Pads a cell to its width; a longer one is cut.
pub fn pad(column: &Column, text: &str, width: usize) -> String {
    let text = if column.title == "NAME" { cut_name(text, width) } else { cut_end(text, width) };
    let blanks = " ".repeat(width.saturating_sub(width_of(&text)));
    if column.shape == Shape::Number { blanks + &text } else { text + &blanks }
}

/// Whether a cell shows a value that needs attention.
pub fn is_alarming(column: &Column, shown: &ViewRow) -> bool {
    match column.sort {
        Some(SortKey::Errors) => shown.rates.errors > 0.0,
        Some(SortKey::Queue) => shown.row.queue > 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::super::sample::tests::ANSWER;
    use super::super::view::with_rates;
    use super::*;

    fn rows(kind: Kind) -> Vec<ViewRow> {
        let all = with_rates(&Sample::parse(ANSWER).expect("an answer"), None);
        all.into_iter().filter(|one| one.row.kind == kind).collect()
    }

    #[test]
    fn every_column_has_a_cell() {
        let row = &rows(Kind::Server)[1];
        let cells: Vec<String> = COLUMNS.iter().map(|column| (column.cell)(row)).collect();
        assert_eq!(cells[..6], ["app/s2", "SRV", "DOWN 1/2", "3m26s", "–", "10"]);
        assert_eq!(cells[13..], ["95ms", "–", "–", "–", "L4CON: Connection refused"]);
        let (_, keys): (Vec<_>, Vec<_>) = SortKey::ALL.into_iter().unzip();
        assert!(keys.iter().all(|key| COLUMNS.iter().any(|column| column.sort == Some(*key))));
        let mut places: Vec<u8> = COLUMNS.iter().map(|column| column.place).collect();
        places.sort_unstable();
        assert!(places.iter().enumerate().all(|(at, place)| at == usize::from(*place)), "{places:?}");
        assert_eq!(
            (rows(Kind::Backend)[0].condition.servers, rows(Kind::Frontend)[0].condition.servers),
            (Some((1, 2)), None)
        );
    }

    #[test]
    fn the_most_important_columns_are_shown_and_fill_no_more_than_the_line() {
        let widths = NaturalWidths::of(&rows(Kind::Server), SortKey::Status);
        let titles = |line| widths.fit(line).iter().map(|one| one.column.title).collect::<Vec<_>>().join(" ");
        assert_eq!(titles(1), "NAME STATUS");
        assert_eq!(titles(30), "NAME STATUS SINCE REQ/S");
        assert_eq!(titles(60), "NAME STATUS SINCE REQ/S REASON");
        assert_eq!(
            titles(200),
            "NAME STATUS SINCE WEIGHT SESSIONS QUEUE REQ/S ERR/S ERRORS IN/S OUT/S TIME P50 P95 P99 REASON"
        );
        for line in 20..250 {
            let found = widths.fit(line);
            let used = found.iter().map(|one| one.width + GAP).sum::<usize>() - GAP;
            assert!(used <= line, "{line}: {used}");
        }
        // The names take what they need.
        assert_eq!(widths.fit(200)[0].width, "app/s2".len());
        assert_eq!(
            NaturalWidths::of(&rows(Kind::Frontend), SortKey::Name).fit(200).last().map(|one| one.column.title),
            Some("P99")
        );
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!(cut_name("backend-of-the-shop/server12", 15), "backend…erver12");
        assert_eq!(cut_name("short", 5), "short");
        assert_eq!((cut_end("a long reason", 7).as_str(), cut_end("short", 5).as_str()), ("a long…", "short"));
        assert_eq!((cut_name("abc", 0).as_str(), cut_end("abc", 1).as_str()), ("…", "…"));
    }
}
