//! Readable quantities of a scenario: sizes, shares, rates, sets of processors. Must never depend on
//! their use.

use base::ProcessorSet;
use base::processors::MOST_PROCESSORS;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::time::Duration;

/// Maximum of a time, in seconds.
const LONGEST: f64 = 24.0 * 3600.0;

/// Maximum rate, in requests per second.
const FASTEST: f64 = 1e9;

/// Maximum size of an object: 1 TB.
const LARGEST: u64 = 1 << 40;

/// Bytes: a number, optionally followed by `k`, `m` or `g` (powers of 1,024).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

impl Size {
    fn parse(text: &str) -> Option<Self> {
        let (digits, unit) = match text.strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1 << 10),
            None => match text.strip_suffix(['m', 'M']) {
                Some(digits) => (digits, 1 << 20),
                None => text.strip_suffix(['g', 'G']).map_or((text, 1), |digits| (digits, 1 << 30)),
            },
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let bytes = digits.parse::<u64>().ok()?.checked_mul(unit)?;
        (bytes <= LARGEST).then_some(Self(bytes))
    }
}

/// Seconds: a number, optionally followed by `ms`, `s` or `m`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seconds(pub f64);

impl Seconds {
    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = match text.strip_suffix("ms") {
            Some(number) => (number, 1e-3),
            None => match text.strip_suffix('s') {
                Some(number) => (number, 1.0),
                None => text.strip_suffix('m').map_or((text, 1.0), |number| (number, 60.0)),
            },
        };
        decimal(number).map(|number| number * unit).filter(|seconds| *seconds <= LONGEST).map(Self)
    }

    /// Returns the duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::try_from_secs_f64(self.0).unwrap_or_default()
    }
}

/// Ramp-up time of the load: seconds, or a share of its duration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RampUp {
    Time(Seconds),
    /// Share of the duration, 0 to 1.
    Share(f64),
}

impl RampUp {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(share) => decimal(share).filter(|share| *share <= 100.0).map(|share| Self::Share(share / 100.0)),
            None => Seconds::parse(text).map(Self::Time),
        }
    }
}

impl Default for RampUp {
    fn default() -> Self {
        Self::Time(Seconds(0.0))
    }
}

/// Offered requests per second: a number, or a percentage of the first proxy's full speed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Requests per second.
    Absolute(f64),
    /// Share of the first proxy's full speed; 1 is all of it.
    Share(f64),
}

impl Rate {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(share) => {
                decimal(share).filter(|share| *share > 0.0 && *share <= 1000.0).map(|share| Self::Share(share / 100.0))
            }
            None => decimal(text).filter(|rate| *rate > 0.0 && *rate <= FASTEST).map(Self::Absolute),
        }
    }
}

/// Processors of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessorChoice {
    /// These numbers.
    List(ProcessorSet),
    /// The first available ones, as many as the proxy has workers.
    Workers,
    /// The ones after those; all if none is left.
    Rest,
    /// All available ones.
    All,
}

impl ProcessorChoice {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "workers" => Some(Self::Workers),
            "rest" => Some(Self::Rest),
            "all" => Some(Self::All),
            list => processors(list).map(Self::List),
        }
    }
}

impl fmt::Display for ProcessorChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(set) => write!(f, "{set}"),
            Self::Workers => f.write_str("workers"),
            Self::Rest => f.write_str("rest"),
            Self::All => f.write_str("all"),
        }
    }
}

/// Parses a list of processors in the kernel's form: `0-3,8`.
#[must_use]
pub fn processors(text: &str) -> Option<ProcessorSet> {
    let mut set = ProcessorSet::EMPTY;
    for piece in text.split(',') {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        if first > last || last >= MOST_PROCESSORS {
            return None;
        }
        (first..=last).for_each(|number| set.insert(number));
    }
    Some(set)
}

/// Parses a number that is not negative, without an exponent.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain && !text.is_empty() { text.parse().ok() } else { None }
}

/// Deserializer of a value that is written as a number or as text.
struct NumberOrText<T> {
    parse: fn(&str) -> Option<T>,
    expected: &'static str,
}

impl<T> Visitor<'_> for NumberOrText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        (self.parse)(&number.to_string()).ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        (self.parse)(&number.to_string()).ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }
}

macro_rules! written {
    ($($kind:ty: $expected:literal;)*) => {$(
        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(NumberOrText { parse: <$kind>::parse, expected: $expected })
            }
        }
    )*};
}

written! {
    Size: "bytes, such as 64, \"10k\" or \"100m\", at most 1024g";
    Seconds: "seconds, such as 3, 0.5 or \"250ms\", at most a day";
    RampUp: "seconds, such as 3 or \"250ms\", or a share of the duration such as \"25%\"";
    Rate: "requests a second above 0, such as 20000, or a share of the full speed such as \"80%\"";
    ProcessorChoice: "processors such as \"0-3,8\", or \"workers\", \"rest\" or \"all\"";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024_and_a_bound() {
        let rows = [
            ("64", Some(64)),
            ("0", Some(0)),
            ("1k", Some(1024)),
            ("10K", Some(10240)),
            ("100m", Some(100 << 20)),
            ("1024g", Some(1 << 40)),
            ("1025g", None),
            ("18446744073709551615g", None),
            ("", None),
            ("k", None),
            ("-1", None),
            ("+1", None),
            ("1.5k", None),
            ("1kb", None),
        ];
        for (text, bytes) in rows {
            assert_eq!(Size::parse(text).map(|size| size.0), bytes, "{text}");
        }
    }

    #[test]
    fn times_shares_and_rates() {
        assert_eq!(Seconds::parse("250ms"), Some(Seconds(0.25)));
        assert_eq!(Seconds::parse("2m"), Some(Seconds(120.0)));
        assert_eq!(Seconds::parse("0.5"), Some(Seconds(0.5)));
        for wrong in ["", "s", "-1", "1e3", "inf", "NaN", "100000"] {
            assert_eq!(Seconds::parse(wrong), None, "{wrong}");
        }
        assert_eq!(RampUp::parse("25%"), Some(RampUp::Share(0.25)));
        assert_eq!(RampUp::parse("3"), Some(RampUp::Time(Seconds(3.0))));
        assert_eq!(RampUp::parse("101%"), None);
        assert_eq!(Rate::parse("80%"), Some(Rate::Share(0.8)));
        assert_eq!(Rate::parse("20000"), Some(Rate::Absolute(20000.0)));
        assert_eq!(Rate::parse("0"), None);
    }

    #[test]
    fn processors_are_written_as_the_kernel_does() {
        for text in ["0", "0-3,8", "1,3,5-7"] {
            assert_eq!(processors(text).map(|set| set.to_string()).as_deref(), Some(text));
        }
        for wrong in ["", "a", "3-1", "0,", "0-", "1024", "0-4096"] {
            assert_eq!(processors(wrong), None, "{wrong}");
        }
        assert_eq!(ProcessorChoice::parse("rest"), Some(ProcessorChoice::Rest));
    }
}
