//! The cost of searches: steps and reports, counted.

use super::*;

fn automaton(patterns: &[&str], way: ScanDirection) -> Automaton {
    let shapes: Vec<_> = patterns.iter().map(|one| Shape::new(one, false).expect("a pattern").whether).collect();
    Automaton::new(shapes.iter(), way, 100_000, 1 << 20).expect("a small one")
}

/// A text may reach the same state at every byte.
#[test]
fn a_state_is_reported_once_a_look() {
    let automaton = automaton(&["a", "b", "[ab]", "a|b|c", "ba"], ScanDirection::Forward);
    for text in [&b"ab"[..], b"abababa", &b"ab".repeat(5_000)] {
        for _ in 0..2 {
            let mut reported = Vec::new();
            automaton.each(text, &Steps::for_text(text.len()), |pattern| reported.push(pattern)).expect("a few steps");
            assert!(reported.len() <= 12, "{} reports", reported.len());
            reported.sort_unstable();
            reported.dedup();
            assert_eq!(reported.len(), if text.len() > 2 { 5 } else { 4 });
        }
    }
}

/// If a counted repetition starts again before it has ended, only the later start matters.
#[test]
fn counted_repetitions_that_overlap_take_few_steps() {
    for (pattern, unit) in [
        ("<a[^>]{0,500}x", "<a"),
        ("a(bc?|[cd]){0,400}x", "abc"),
        ("ab.{0,300}cd.{0,300}x", "ab cd "),
        ("a.{0,60}b.{0,60}x", "ab"),
    ] {
        for way in [ScanDirection::Forward, ScanDirection::Backward] {
            let (automaton, text) = (automaton(&[pattern], way), unit.repeat(2_000));
            let steps = Steps::for_text(text.len());
            let before = steps.left();
            assert_eq!(automaton.is_match(text.as_bytes(), &steps), Ok(false), "{pattern}");
            let taken = before - steps.left();
            assert!(taken < 10 * text.len() as u64, "{pattern} {way:?}: {taken}");
        }
    }
}
