//! Recorded lines of h1load: their figures are fed in and the output is compared exactly.

use super::*;
use crate::load::show::tests::plan;

/// Output of h1load, its options, and the length of each of its seconds: h1load measures that, but prints
/// only the rates.
const RECORDED: &[(&str, &[&str], &[f64])] = &[
    (include_str!("../recorded/short.txt"), &[], &[1.0, 1.0, 1.0005, 1.0005, 1.0]),
    (include_str!("../recorded/statuses.txt"), &["-S"], &[1.0, 1.001, 1.0005, 1.0]),
    (include_str!("../recorded/long-statuses.txt"), &["-S", "-l"], &[1.0, 1.001, 1.001, 1.0]),
    (include_str!("../recorded/raw-statuses.txt"), &["-S", "-ll"], &[1.0, 1.001, 1.001, 1.0]),
    (include_str!("../recorded/raw-soft-start.txt"), &["-ll", "-c10", "-s3"], &[1.0, 1.001, 1.001, 1.001, 1.0, 1.0]),
    (include_str!("../recorded/long-slow.txt"), &["-l"], &[1.0, 1.001, 1.001, 1.004, 0.998, 1.0]),
    (include_str!("../recorded/long-large.txt"), &["-l"], &[1.0, 1.0005, 0.9925]),
    (include_str!("../recorded/long-overhead.txt"), &["-l", "-O", "66/1448"], &[1.0, 1.0015, 1.0]),
    (include_str!("../recorded/refused.txt"), &[], &[1.0, 1.0, 1.0]),
    (include_str!("../recorded/half-answers.txt"), &["-S"], &[1.0, 0.994, 1.002]),
];

/// Numbers of a line, and its times: in nanoseconds, first byte and last.
struct Line {
    /// Time, connections, their total, requests, bytes, errors.
    counts: [u64; 6],
    times: [Option<f64>; 2],
    statuses: [u64; 5],
}

impl Line {
    fn read(line: &str, options: &[&str]) -> Self {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &str| word.parse().expect("a number");
        let (first, count) = match options.iter().find(|option| option.starts_with("-l")) {
            None => (9, 1),
            Some(&"-l") => (10, 2),
            Some(_) => (11, 2),
        };
        let mut times = [None; 2];
        for (time, word) in times.iter_mut().zip(&words[first..first + count]) {
            let scale = [("n", 1.0), ("u", 1e3), ("m", 1e6), ("s", 1e9)];
            let unit = scale.iter().find(|(unit, _)| word.ends_with(unit));
            let digits = word.trim_end_matches(['n', 'u', 'm', 's']);
            *time = digits.parse::<f64>().ok().map(|digits| digits * unit.map_or(1e3, |(_, scale)| *scale));
        }
        let mut statuses = [0; 5];
        for (status, word) in statuses.iter_mut().zip(&words[first + count..]) {
            *status = number(word);
        }
        Self { counts: std::array::from_fn(|index| number(words[index])), times, statuses }
    }

    /// Returns the difference from the previous line.
    fn counters(&self, before: &Self) -> Counters {
        let mut counters = Counters::new();
        let [_, _, connections, answers, received, errors] =
            std::array::from_fn(|index| self.counts[index] - before.counts[index].min(self.counts[index]));
        (counters.connections, counters.answers, counters.received, counters.errors.connect) =
            (connections, answers, received, errors);
        for (times, mean) in [&mut counters.first_byte, &mut counters.last_byte].into_iter().zip(self.times) {
            if let Some(mean) = mean {
                // The mean is that of the sum; the distribution of the times is not known.
                times.record_many(mean as u64, answers);
                times.sum = (mean * answers as f64).round() as u64;
            }
        }
        for (class, count) in self.statuses.iter().enumerate() {
            counters.statuses[class * 100] = *count;
        }
        counters
    }
}

#[test]
fn lines_are_those_of_h1load() {
    for (recorded, options, lengths) in RECORDED {
        let words: Vec<&str> = options.iter().copied().chain(["a"]).collect();
        let mut columns = Columns::new(&plan(&words), Sink::Stdout);
        let mut lines = recorded.lines();
        assert_eq!(columns.heading(), format!("{}\n", lines.next().expect("a heading")));
        let (mut total, mut at) = (Counters::new(), 0.0);
        let mut before = Line { counts: [0; 6], times: [None; 2], statuses: [0; 5] };
        for (line, length) in lines.zip(*lengths) {
            let told = Line::read(line, options);
            let counters = told.counters(&before);
            total.add(&counters);
            at += length;
            let second = Second {
                at: Duration::from_secs_f64(at),
                wall: told.counts[0].cast_signed(),
                length: Duration::from_secs_f64(*length),
                open: told.counts[1],
                counters,
            };
            assert_eq!(columns.line(&second, &total), format!("{line}\n"), "{options:?}");
            before = told;
        }
    }
}

#[test]
fn lines_are_numbered_by_the_second_that_ends() {
    let numbers = |options: &[&str], ends: [f64; 5]| {
        let mut columns = Columns::new(&plan(options), Sink::Stdout);
        ends.map(|at| {
            let (counters, length) = (Counters::new(), Duration::from_secs(1));
            let second = Second { at: Duration::from_secs_f64(at), wall: at as i64 + 100, length, open: 0, counters };
            let line = columns.line(&second, &Counters::new());
            line.split_whitespace().next().expect("a number").to_owned()
        })
    };
    // Late, early, two at once after a wait, and the rest of a second.
    let ends = [1.001, 2.003, 2.999, 5.0, 5.2];
    assert_eq!(numbers(&["a"], ends), ["1", "2", "3", "5", "6"]);
    assert_eq!(numbers(&["-l", "a"], ends), ["101", "102", "103", "105", "106"]);
}

#[test]
fn a_moment_without_length_divides_nothing_by_zero() {
    let mut columns = Columns::new(&plan(&["-ll", "a"]), Sink::Stdout);
    let second = Second { at: Duration::ZERO, wall: 0, length: Duration::ZERO, open: 0, counters: Counters::new() };
    assert!(columns.line(&second, &Counters::new()).ends_with(" 100 0.0 0.0 0.0 0.0 - - \n"));
}
