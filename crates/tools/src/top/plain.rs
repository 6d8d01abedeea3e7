//! One table as plain text (`--once`). Must never contain a control character.

use super::options::Options;
use super::sample::Sample;
use super::view::{COLUMNS, Scope, TEXTS, cells, choose, with_rates};

/// Returns the table, titles first. Columns are as wide as their content.
pub fn table(sample: &Sample, options: &Options) -> String {
    let scope = options.scope.unwrap_or(Scope::All);
    let rows = choose(&with_rates(sample, None), scope, options.sort, false, &options.filter);
    let titles = COLUMNS.map(|(title, _)| title.to_owned());
    let lines: Vec<[String; COLUMNS.len()]> = std::iter::once(titles).chain(rows.iter().map(cells)).collect();
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let padded =
            line.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
                if at < TEXTS { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
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
    fn columns_stand_below_each_other() {
        let Ok(TopTask::Run(options)) = parse(&["--once".into(), "/x".into()]) else { panic!("a run") };
        assert_eq!(options.socket, Socket::Unix("/x".into()));
        let text = table(&Sample::parse(ANSWER).expect("an answer"), &options);
        let wanted = "\
NAME    KIND      STATUS    WEIGHT  SESSIONS  QUEUE  REQ/S  ERR/S  ERRORS  IN/S  OUT/S  TIME
www     frontend  OPEN           -        12      -     40      0       3     0      0     -
app/s1  server    UP            10         3      0     20      0       1     0      0   7ms
app/s2  server    DOWN 1/2      10         5      2      0      0       5     0      0  95ms
app     backend   UP          1 up         8      1     20      0       6     0      0  12ms
";
        assert_eq!(text, wanted);
    }
}
