//! h1load's table of percentiles. Must never print a time that is longer than the longest.

use super::number::general;
use crate::load::counters::{Counters, Times};
use crate::load::record::{PERCENTILES, percentile};
use std::fmt::Write;

const HEADING: &str = "\
#======= Percentiles for time-to-first-byte and time-to-last-byte =======
# use $3:$5 $3:$7 with logscale X
# $1     $2      $3         $4       $5         $6       $7
#pctl   tail   invtail   ttfbcnt ttfb(ms)   ttlbcnt ttlb(ms)
";

/// Returns the table, with a line for each percentile: the number of shorter times, and its time, to the first byte
/// and to the last.
#[must_use]
pub fn table(total: &Counters) -> String {
    let mut text = String::from(HEADING);
    for rank in PERCENTILES {
        let [first, last] = [&total.first_byte, &total.last_byte].map(|times| cell(times, *rank));
        let _ = writeln!(text, "{}{first} {last}", rank_cells(*rank));
    }
    text
}

/// Returns the table of the reference client. Its lines are comments for programs that read h1load's table.
#[must_use]
pub fn reference_table(times: &Times) -> String {
    let mut text = String::from(
        "#======= Percentiles for the reference client's time-to-last-byte =======\n\
         # pctl   tail   invtail   ttlbcnt ttlb(ms)\n",
    );
    for rank in PERCENTILES {
        let _ = writeln!(text, "# {}{}", rank_cells(*rank), cell(times, *rank));
    }
    text
}

/// Formats the percentile, its tail, and the tail as one in n.
fn rank_cells(rank: f64) -> String {
    let tail = 100.0 - rank;
    format!("{:<7} {:<6} {:<7} ", general(rank), general(tail), (100.0 / tail).round())
}

fn cell(times: &Times, rank: f64) -> String {
    let micros = percentile(times, rank);
    let histogram = &times.histogram;
    let lowest = histogram.lowest_equivalent((micros * 1e3) as u64);
    let shorter = if lowest == 0 || times.is_empty() { 0 } else { histogram.count_between(0, lowest - 1) };
    // To the microsecond, as h1load.
    format!("{shorter:>9} {:>8}", general(micros.round() / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 times: two of 34 microseconds, 80 of 34.5, 117 of 100, one of 3030.
    fn sample() -> Counters {
        let mut total = Counters::new();
        for (nanos, count) in [(33_600, 2), (35_000, 80), (100_000, 117), (3_030_000, 1)] {
            total.first_byte.record_many(nanos, count);
            total.last_byte.record_many(2 * nanos, count);
        }
        total
    }

    #[test]
    fn the_table_has_the_rows_and_columns_of_h1load() {
        const RECORDED: &str = include_str!("recorded/percentiles.txt");
        let table = table(&sample());
        assert_eq!(table.lines().count(), RECORDED.lines().count());
        for (ours, recorded) in table.lines().zip(RECORDED.lines()) {
            if recorded.starts_with('#') {
                assert_eq!(ours, recorded);
                continue;
            }
            // The percentile and its tail exactly, the numbers in their columns.
            assert_eq!(ours[..22], recorded[..22]);
            let ends = |line: &str| {
                let ends =
                    line.char_indices().filter(|(at, letter)| *letter != ' ' && line[at + 1..].starts_with([' ']));
                ends.map(|(at, _)| at).chain([line.len()]).skip(3).collect::<Vec<_>>()
            };
            assert_eq!(ends(ours), ends(recorded), "{ours}\n{recorded}");
        }
    }

    #[test]
    fn the_table_counts_the_times_that_are_shorter() {
        let table = table(&sample());
        let line = |rank: &str| table.lines().find(|line| line.split(' ').next() == Some(rank)).expect("a line");
        assert_eq!(line("10"), "10      90     1               2    0.035         2     0.07");
        assert_eq!(line("50"), "50      50     2              82      0.1        82      0.2");
        assert_eq!(line("99.9999"), "99.9999 0.0001 1000000       199    3.031       199    6.062");
    }

    #[test]
    fn without_times_the_table_is_zeros() {
        let table = table(&Counters::new());
        assert!(table.ends_with("\n99.9999 0.0001 1000000         0        0         0        0\n"), "{table}");
    }

    #[test]
    fn the_reference_client_speaks_in_comments() {
        let table = reference_table(&sample().last_byte);
        assert!(table.lines().all(|line| line.starts_with('#')));
        assert!(table.contains("\n# 50      50     2              82      0.2\n"), "{table}");
    }
}
