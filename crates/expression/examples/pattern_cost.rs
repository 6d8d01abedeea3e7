//! Measures regular expressions on texts that are expensive for them: the patterns of `tests/data/firewall.patterns`,
//! one by one and as one list, on texts of 1 to 15 kB.
//!
//! ```text
//! cargo run --release -p weir-expression --example pattern_cost [milliseconds to report]
//! ```
//!
//! Each pattern is compiled again for each text, so that the first search finds no state cached by an earlier one.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

#[path = "../tests/hostile/mod.rs"]
mod hostile;

use std::time::Duration;
use weir_expression::pattern::{Key, Method, PatternIndex, PatternSet, Regex, Texts};
use weir_expression::sample::Value;

struct List(Vec<&'static str>);

impl Texts for List {
    fn key(&self, at: PatternIndex) -> &[u8] {
        self.0[at as usize].as_bytes()
    }
}

/// Processor time of this thread.
fn spent() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0))
}

/// Runs `work` and measures its processor time.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    // The kernel updates the count when the thread yields.
    std::thread::yield_now();
    let begun = spent();
    let done = work();
    std::thread::yield_now();
    (done, spent() - begun)
}

fn main() {
    let tell = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let patterns: Vec<_> = hostile::patterns().collect();
    let (mut looks, mut exhausted, mut over) = (0, 0, 0);
    let (mut compiled, mut first, mut later) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for (line, pattern) in &patterns {
        let mut worst = (Duration::ZERO, 0, 0, Ok(false), Duration::ZERO);
        for length in hostile::LENGTHS {
            for (number, text) in hostile::texts(pattern, length).iter().enumerate() {
                let (regex, time) = timed(|| Regex::new(pattern, false).expect("a pattern"));
                compiled = compiled.max(time);
                let (result, cold) = timed(|| regex.is_match(text));
                let warm = (0..3).map(|_| timed(|| regex.is_match(text)).1).min().unwrap_or_default();
                looks += 1;
                exhausted += usize::from(result.is_err());
                over += usize::from(cold.as_secs_f64() * 1e3 > tell);
                (first, later) = (first.max(cold), later.max(warm));
                if cold > worst.0 {
                    worst = (cold, length, number, result, warm);
                }
            }
        }
        if worst.0.as_secs_f64() * 1e3 > tell {
            println!(
                "line {line}: first {:?}, later {:?}, length {} text {} {:?}: {pattern}",
                worst.0, worst.4, worst.1, worst.2, worst.3
            );
        }
    }
    println!("{} patterns, {looks} looks, {exhausted} exhausted, {over} over {tell} ms", patterns.len());
    println!("at most: compiled {compiled:?}, first look {first:?}, later looks {later:?}");
    as_a_list(&patterns, tell);
}

fn as_a_list(patterns: &[(usize, &'static str)], tell: f64) {
    let list = List(patterns.iter().map(|(_, pattern)| *pattern).collect());
    let ((), built) = timed(|| drop(set(&list)));
    let set = set(&list);
    let (mut first, mut later, mut exhausted, mut looks) = (Duration::ZERO, Duration::ZERO, 0, 0);
    for pattern in &list.0 {
        for length in hostile::LENGTHS {
            for text in hostile::texts(pattern, length) {
                let (found, cold) = timed(|| set.find(Value::Str(&text), &list, &|_| true));
                let warm = timed(|| set.find(Value::Str(&text), &list, &|_| true).is_ok()).1;
                (first, later, looks) = (first.max(cold), later.max(warm), looks + 1);
                exhausted += usize::from(found.is_err());
                if cold.as_secs_f64() * 1e3 > 2.0 * tell {
                    println!(
                        "list: first {cold:?}, later {warm:?}, {length} {:?}: {pattern}",
                        found.map(|hit| hit.map(|hit| hit.at))
                    );
                }
            }
        }
    }
    println!(
        "as one list, built in {built:?}: {looks} looks, {exhausted} exhausted, at most: first {first:?}, later {later:?}"
    );
}

fn set(list: &List) -> PatternSet {
    let mut set = PatternSet::new(Method::Reg, false, Key::default());
    set.load(false);
    for at in 0..list.0.len() {
        set.insert(at as PatternIndex, list).expect("a pattern");
    }
    set.finish(list);
    set
}
