//! The arithmetic of the report: medians, spreads, the rule of the best seconds, thinning. Must never depend on the
//! meaning of its numbers, and must never return one that is not finite.

/// Several rounds of one measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// Number of rounds.
    pub count: usize,
}

impl Spread {
    /// Computes the spread of the finite numbers among these; `None` if there is none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (&low, &high) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            // Halved first, to avoid overflow of the sum.
            sorted[middle - 1] / 2.0 + sorted[middle] / 2.0
        };
        Some(Self { median, low, high, count: sorted.len() })
    }

    /// Whether the ranges overlap.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Returns the index of the value closest to the median, the first of equals; `None` without a finite one.
pub fn nearest_to_median(values: &[f64]) -> Option<usize> {
    let median = Spread::of(values.iter().copied())?.median;
    let finite = values.iter().enumerate().filter(|(_, value)| value.is_finite());
    finite.min_by(|(_, a), (_, b)| (*a - median).abs().total_cmp(&(*b - median).abs())).map(|(index, _)| index)
}

/// Number of the best seconds that are dropped, if there are enough.
pub const DROPPED: usize = 5;
/// Number of the following seconds that are averaged, if there are enough.
pub const AVERAGED: usize = 20;

/// The mean of the best seconds of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestSeconds {
    pub mean: f64,
    /// Number of the very best seconds that were dropped, because a burst is not capacity.
    pub dropped: usize,
    /// Number of averaged seconds.
    pub averaged: usize,
}

/// Returns the mean of the [`AVERAGED`] best seconds after the [`DROPPED`] best were dropped. With fewer than 25
/// seconds a fifth of them, rounded down, is dropped and all the others are averaged. `None` without a second.
pub fn best_seconds(seconds: impl IntoIterator<Item = f64>) -> Option<BestSeconds> {
    let mut sorted: Vec<f64> = seconds.into_iter().filter(|second| second.is_finite()).collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let dropped = if sorted.len() >= DROPPED + AVERAGED { DROPPED } else { sorted.len() / 5 };
    let averaged = (sorted.len() - dropped).min(AVERAGED);
    let chosen = &sorted[dropped..dropped + averaged];
    (averaged > 0).then(|| BestSeconds { mean: mean(chosen), dropped, averaged })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().map(|value| value / values.len() as f64).sum()
}

/// Returns the ratio; `None` if it is not defined.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    let ratio = part / whole;
    (whole > 0.0 && ratio.is_finite()).then_some(ratio)
}

/// Reduces points to at most `most`: neighbours become their mean. The order is kept.
pub fn thin(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let group = points.len().div_ceil(most.max(1)).max(1);
    let middle = |chunk: &[(f64, f64)]| {
        let (x, y): (Vec<f64>, Vec<f64>) = chunk.iter().copied().unzip();
        (mean(&x), mean(&y))
    };
    points.chunks(group).map(middle).collect()
}

/// Reduces a list to at most `most` items: the first, the last, and others evenly between.
pub fn evenly<T: Clone>(items: &[T], most: usize) -> Vec<T> {
    if items.len() <= most {
        return items.to_vec();
    }
    let last = items.len() - 1;
    (0..most).map(|index| items[index * last / most.saturating_sub(1).max(1)].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Expected = Option<(f64, f64, f64)>;

    #[test]
    fn a_median_is_the_middle_one_or_between_the_two_in_the_middle() {
        let rows: [(&[f64], Expected); 6] = [
            (&[], None),
            (&[f64::NAN, f64::INFINITY], None),
            (&[7.0], Some((7.0, 7.0, 7.0))),
            (&[3.0, 1.0, 2.0], Some((2.0, 1.0, 3.0))),
            (&[4.0, 1.0, 2.0, 3.0], Some((2.5, 1.0, 4.0))),
            (&[1.0, f64::NAN, 9.0], Some((5.0, 1.0, 9.0))),
        ];
        for (values, expected) in rows {
            let spread = Spread::of(values.iter().copied());
            assert_eq!(spread.map(|spread| (spread.median, spread.low, spread.high)), expected, "{values:?}");
        }
        let huge = Spread::of([f64::MAX, f64::MAX]).expect("two");
        assert!(huge.median.is_finite());
    }

    #[test]
    fn rounds_overlap_when_their_ranges_touch() {
        let spread = |low, high| Spread { median: low, low, high, count: 2 };
        assert!(spread(1.0, 3.0).overlaps(&spread(3.0, 4.0)));
        assert!(spread(1.0, 9.0).overlaps(&spread(2.0, 3.0)));
        assert!(!spread(1.0, 2.0).overlaps(&spread(2.1, 3.0)));
    }

    #[test]
    fn the_round_of_the_median_is_found() {
        assert_eq!(nearest_to_median(&[10.0, 30.0, 21.0]), Some(2));
        assert_eq!(nearest_to_median(&[f64::NAN, 5.0]), Some(1));
        assert_eq!(nearest_to_median(&[]), None);
    }

    #[test]
    fn the_five_best_seconds_are_dropped_and_twenty_averaged() {
        let best = best_seconds((1..=40).map(f64::from)).expect("seconds");
        // 40..36 dropped, 35..16 averaged.
        assert_eq!((best.dropped, best.averaged), (5, 20));
        assert!((best.mean - 25.5).abs() < 1e-9);
    }

    #[test]
    fn with_fewer_seconds_a_fifth_is_dropped() {
        let rows: [(u32, Expected); 6] = [
            (0, None),
            (1, Some((1.0, 0.0, 1.0))),
            (4, Some((2.5, 0.0, 4.0))),
            (10, Some((4.5, 2.0, 8.0))),
            (24, Some((10.5, 4.0, 20.0))),
            (25, Some((10.5, 5.0, 20.0))),
        ];
        for (seconds, expected) in rows {
            let best = best_seconds((1..=seconds).map(f64::from));
            let rounded = best.map(|best| ((best.mean * 1e6).round() / 1e6, best.dropped as f64, best.averaged as f64));
            assert_eq!(rounded, expected, "{seconds} seconds");
        }
    }

    #[test]
    fn a_ratio_to_nothing_says_nothing() {
        assert_eq!(ratio(1.0, 4.0), Some(0.25));
        for whole in [0.0, -1.0, f64::NAN] {
            assert_eq!(ratio(1.0, whole), None);
        }
        assert_eq!(ratio(f64::INFINITY, 1.0), None);
    }

    #[test]
    fn thinning_keeps_the_mean_and_the_order() {
        let points: Vec<_> = (0..10_000).map(|at| (f64::from(at), f64::from(at % 2))).collect();
        let thinned = thin(&points, 300);
        assert!(thinned.len() <= 300 && thinned.len() > 250, "{}", thinned.len());
        assert!(thinned.is_sorted_by(|a, b| a.0 < b.0));
        assert!(thinned.iter().all(|(_, y)| (y - 0.5).abs() < 0.02));
        assert_eq!(thin(&points[..3], 300), &points[..3]);
        assert!(thin(&[], 0).is_empty());
    }

    #[test]
    fn an_even_choice_has_both_ends() {
        assert_eq!(evenly(&[1, 2], 3), [1, 2]);
        assert_eq!(evenly(&[1, 2, 3, 4, 5, 6, 7], 3), [1, 4, 7]);
        assert_eq!(evenly(&[1, 2, 3], 1), [1]);
    }
}
