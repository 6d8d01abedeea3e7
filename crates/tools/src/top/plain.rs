//! One table as plain text (`--once`). Must never contain a control character.

use super::columns::{COLUMNS, Column, GAP, NO_VALUE, Shape, width_of};
use super::options::Options;
use super::sample::Sample;
use super::view::{Scope, SortOrder, ViewRow, choose, with_rates};

/// Returns the table, titles first. Columns are as wide as their content.
pub fn table(sample: &Sample, options: &Options) -> String {
    let scope = options.scope.unwrap_or(Scope::All);
    let order = SortOrder { key: options.sort, reversed: false };
    let rows = choose(&with_rates(sample, None), scope, order, &options.filter);
    let mut columns: Vec<&Column> = COLUMNS.iter().collect();
    columns.sort_by_key(|column| column.place);
    let titles = columns.iter().map(|column| column.title.to_owned()).collect();
    // Programs split the table into words of ASCII.
    let plain = |column: &Column, one: &ViewRow| match (column.title, (column.cell)(one)) {
        ("KIND", _) => one.row.kind.name().to_owned(),
        (_, cell) if cell == NO_VALUE => "-".to_owned(),
        (_, cell) => cell,
    };
    let cells = rows.iter().map(|one| columns.iter().map(|column| plain(column, one)).collect());
    let lines: Vec<Vec<String>> = std::iter::once(titles).chain(cells).collect();
    let width = |at: usize| lines.iter().map(|line| width_of(&line[at])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let padded = line.iter().zip(&widths).zip(&columns).map(|((cell, width), column)| {
            let blanks = " ".repeat(width.saturating_sub(width_of(cell)));
            if column.shape == Shape::Number { blanks + cell } else { cell.clone() + &blanks }
        });
        text.push_str(padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::options::{TopTask, parse};
    use super::super::sample::tests::ANSWER;
    use super::*;
    use crate::stats_socket::Socket;

    #[test]
    fn columns_are_aligned() {
        let Ok(TopTask::Run(options)) = parse(&["--once".into(), "/x".into()]) else { panic!("a run") };
        assert_eq!(options.socket, Socket::Unix("/x".into()));
        let text = table(&Sample::parse(ANSWER).expect("an answer"), &options);
        assert_eq!(text, include_str!("screens/once.txt"), "{text}");
    }
}
