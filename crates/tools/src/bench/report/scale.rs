//! Position of a number on an axis, and the ticks of an axis. Must never place a number that is not finite.

/// Scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Linear from zero.
    Linear,
    Logarithmic,
    /// Percent of responses, by the rarity of the others: each nine has the same width.
    Tail,
}

/// Maximum number of nines of a tail; no run has enough responses for more.
const RAREST: f64 = 7.0;

/// An axis between two numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    form: Form,
    low: f64,
    high: f64,
}

impl Scale {
    /// Returns an axis that contains these values. `tight`: it ends at the greatest; else at the next round number.
    pub fn over(form: Form, values: impl IntoIterator<Item = f64>, tight: bool) -> Self {
        let known = values.into_iter().filter_map(|value| warp(form, value));
        let (low, high) = known.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let (low, high) = match form {
            Form::Linear => (0.0, if high > 0.0 { high } else { 1.0 }),
            Form::Tail => (if low < 0.3 { 0.0 } else { 50_f64.tail() }, if high > 1.0 { high } else { 1.0 }),
            Form::Logarithmic if low > high => (0.0, 1.0),
            Form::Logarithmic => (low, high),
        };
        let scale = Self { form, low, high };
        if tight { scale.wide_enough() } else { scale.rounded() }
    }

    fn wide_enough(mut self) -> Self {
        if self.high - self.low < 1e-9 {
            self.low = if self.form == Form::Logarithmic { self.low - 0.5 } else { self.low };
            self.high += 0.5;
        }
        self
    }

    fn rounded(mut self) -> Self {
        match self.form {
            Form::Linear => {
                let step = step(self.high, 6);
                self.high = (self.high / step - 1e-9).ceil() * step;
            }
            Form::Logarithmic => {
                self.low = round_factor(self.low, false);
                self.high = round_factor(self.high, true);
                if self.high - self.low < 0.5 {
                    self.high = round_factor(self.low + 0.75, true);
                }
            }
            Form::Tail => {}
        }
        self
    }

    /// Returns the position of a value, from 0 to 1; `None` if it is outside.
    pub fn place(&self, value: f64) -> Option<f64> {
        let place = (warp(self.form, value)? - self.low) / (self.high - self.low);
        (-1e-9..=1.0 + 1e-9).contains(&place).then(|| place.clamp(0.0, 1.0))
    }

    /// Returns about `most` ascending round numbers on the axis.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let all = match self.form {
            Form::Linear => {
                let step = step(self.high, most);
                let count = (self.high / step + 1e-9).floor().min(100.0) as u32;
                (0..=count).map(|index| f64::from(index) * step).collect()
            }
            Form::Logarithmic => self.factors(most),
            Form::Tail => TAIL.to_vec(),
        };
        all.into_iter().filter(|&tick| self.place(tick).is_some()).collect()
    }

    fn factors(&self, most: usize) -> Vec<f64> {
        let first = self.low.floor() as i32;
        let last = self.high.ceil() as i32;
        let decades = |factors: &'static [f64], every: usize| {
            let powers = (first..=last).filter(move |power| power.rem_euclid(every as i32) == 0);
            powers.flat_map(move |power| factors.iter().map(move |factor| factor * 10_f64.powi(power)))
        };
        let within = |all: &mut dyn Iterator<Item = f64>| {
            all.filter(|&tick| self.place(tick).is_some()).take(100).collect::<Vec<_>>()
        };
        let fine = within(&mut decades(&[1.0, 2.0, 5.0], 1));
        if fine.len() <= most {
            return fine;
        }
        let every = (1..50).map(|every| within(&mut decades(&[1.0], every))).find(|ticks| ticks.len() <= most);
        match every {
            Some(ticks) if ticks.len() > 1 => ticks,
            _ => super::statistics::evenly(&fine, most.max(2)),
        }
    }
}

/// Ticks of a tail, as percentiles.
const TAIL: &[f64] = &[50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999];

trait Tail {
    fn tail(self) -> f64;
}

impl Tail for f64 {
    /// Returns the rarity of responses above that percentile, as a power of ten.
    fn tail(self) -> f64 {
        -(1.0 - self / 100.0).log10()
    }
}

/// Transforms a value by the scale.
fn warp(form: Form, value: f64) -> Option<f64> {
    let warped = match form {
        Form::Linear => value,
        Form::Logarithmic if value > 0.0 => value.log10(),
        Form::Tail if (0.0..100.0).contains(&value) => value.tail().max(0.0),
        _ => return None,
    };
    // Rounding of 99.99999 may slightly exceed seven nines.
    let known = warped.is_finite() && (form != Form::Tail || warped <= RAREST + 1e-6);
    known.then_some(warped)
}

/// Returns the smallest of 1, 2, 2.5 and 5 times a power of ten that makes at most `most` steps up to `high`.
fn step(high: f64, most: usize) -> f64 {
    let least = high / most.max(1) as f64;
    let power = 10_f64.powf(least.log10().floor());
    let found = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= least * 0.999);
    found.filter(|step| step.is_normal()).unwrap_or(high)
}

/// Returns the logarithm of the next number of the form 1, 2 or 5 times a power of ten.
fn round_factor(logarithm: f64, up: bool) -> f64 {
    let power = logarithm.floor();
    let marks = [0.0, 2_f64.log10(), 5_f64.log10(), 1.0].map(|mark| power + mark);
    let close = 1e-6;
    if up {
        marks.into_iter().find(|mark| *mark >= logarithm - close).unwrap_or(power + 1.0)
    } else {
        marks.into_iter().rev().find(|mark| *mark <= logarithm + close).unwrap_or(power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: [f64; 5] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE];

    #[test]
    fn linear_axes_begin_at_zero_and_end_at_a_round_number() {
        let scale = Scale::over(Form::Linear, [3.0, 47_200.0], false);
        assert_eq!(scale.ticks(6), [0.0, 10_000.0, 20_000.0, 30_000.0, 40_000.0, 50_000.0]);
        assert_eq!(scale.place(25_000.0), Some(0.5));
        assert_eq!(scale.place(-1.0), None);
        assert_eq!(scale.place(f64::NAN), None);
        let tight = Scale::over(Form::Linear, [30.0], true);
        assert_eq!(tight.place(30.0), Some(1.0));
    }

    #[test]
    fn logarithmic_axes_give_each_factor_its_room() {
        let scale = Scale::over(Form::Logarithmic, [12.0, 900.0], false);
        assert_eq!(scale.ticks(8), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
        assert_eq!(scale.ticks(4), [10.0, 100.0, 1000.0]);
        assert_eq!(scale.place(100.0), Some(0.5));
        assert_eq!(scale.place(0.0), None);
    }

    #[test]
    fn a_tail_gives_each_nine_its_room() {
        let scale = Scale::over(Form::Tail, [0.0, 50.0, 99.9999, 100.0], true);
        let near = |value: f64, expected: f64| {
            let place = scale.place(value).expect("on it");
            assert!((place - expected).abs() < 1e-6, "{value}: {place}");
        };
        near(90.0, 1.0 / 6.0);
        near(99.0, 2.0 / 6.0);
        near(99.9999, 1.0);
        assert_eq!(scale.place(100.0), None);
        assert_eq!(scale.ticks(9), [50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999]);
    }

    #[test]
    fn nothing_one_value_and_odd_ones_make_an_axis_all_the_same() {
        for form in [Form::Linear, Form::Logarithmic, Form::Tail] {
            for values in [&[][..], &[0.0], &[5.0], &ODD, &[1e-300, 1e300]] {
                for tight in [false, true] {
                    let scale = Scale::over(form, values.iter().copied(), tight);
                    assert!(scale.high > scale.low, "{form:?} {values:?} {scale:?}");
                    let ticks = scale.ticks(8);
                    assert!(ticks.len() <= 101 && ticks.iter().all(|tick| tick.is_finite()), "{form:?} {values:?}");
                    assert!(ticks.is_sorted_by(|a, b| a < b), "{form:?} {values:?} {ticks:?}");
                    for value in ODD {
                        assert!(scale.place(value).is_none_or(|place| (0.0..=1.0).contains(&place)));
                    }
                }
            }
        }
    }
}
