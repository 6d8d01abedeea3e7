//! Readable numbers: three significant digits, and a unit. Must never hide the unit.

/// Unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A count: 45.3k.
    Count,
    /// Microseconds, shown as µs, ms or s.
    Micros,
    /// Microseconds without conversion, without the unit: for an axis that names it.
    PlainMicros,
    /// Bytes of memory, shown in powers of 1000.
    Memory,
    /// Bytes of an object, shown in the unit that leaves no fraction.
    Size,
    /// A count with all digits: 45,300.
    Grouped,
    /// A number whose unit is shown elsewhere.
    Plain,
    /// Percent of responses: 99.99 %.
    Percentile,
}

impl Unit {
    /// Formats the number in that unit; a dash if it is not finite.
    pub fn show(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".to_owned();
        }
        match self {
            Self::Count => scaled(value, 1000.0, &["", "k", "M", "G", "T"], ""),
            Self::Grouped => grouped(value),
            Self::Micros => micros(value),
            Self::PlainMicros | Self::Plain => significant(value),
            Self::Memory => scaled(value, 1000.0, &["B", "kB", "MB", "GB", "TB"], " "),
            Self::Size => size(value),
            Self::Percentile => format!("{value}%"),
        }
    }
}

/// Formats three significant digits, without trailing zeros: `0.0123`, `1.5`, `45.3`, `1230`.
pub fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { "–".to_owned() };
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (2 - magnitude).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    let trimmed = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if trimmed == "-0" { "0".to_owned() } else { trimmed.to_owned() }
}

/// Formats a whole number with commas: `45,300`; small ones keep significant digits of their fraction.
pub fn grouped(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value.abs() < 100.0 {
        return significant(value);
    }
    let digits = format!("{:.0}", value.abs());
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    if value < 0.0 {
        out.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn scaled(value: f64, step: f64, units: &[&str], between: &str) -> String {
    let mut shown = value;
    let mut index = 0;
    // 999.6 would be rounded to 1000.
    while shown.abs() >= step - 0.5 && index + 1 < units.len() {
        shown /= step;
        index += 1;
    }
    format!("{}{between}{}", significant(shown), units[index])
}

fn micros(value: f64) -> String {
    let (shown, unit) = match value.abs() {
        large if large >= 999_500.0 => (value / 1e6, "s"),
        large if large >= 999.5 => (value / 1e3, "ms"),
        _ => (value, "µs"),
    };
    format!("{} {unit}", significant(shown))
}

fn size(value: f64) -> String {
    const UNITS: &[(f64, &str)] =
        &[(1_073_741_824.0, "GiB"), (1e9, "GB"), (1_048_576.0, "MiB"), (1e6, "MB"), (1024.0, "KiB"), (1e3, "kB")];
    for &(unit, name) in UNITS {
        let shown = value / unit;
        if shown >= 1.0 && (shown * 10.0).fract() == 0.0 {
            return format!("{} {name}", significant(shown));
        }
    }
    let decimal = UNITS.iter().skip(1).step_by(2);
    match decimal.into_iter().find(|(unit, _)| value >= *unit * 10.0) {
        Some(&(unit, name)) => format!("{} {name}", significant(value / unit)),
        None => format!("{} B", significant(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        let rows = [
            (0.0, "0"),
            (-0.0, "0"),
            (0.012_34, "0.0123"),
            (1.5, "1.5"),
            (45.26, "45.3"),
            (99.97, "100"),
            (1234.4, "1234"),
            (f64::NAN, "–"),
        ];
        for (value, expected) in rows {
            assert_eq!(significant(value), expected, "{value}");
        }
    }

    #[test]
    fn units_grow_with_the_number() {
        let rows = [
            (Unit::Count, 45_312.0, "45.3k"),
            (Unit::Count, 999.7, "1k"),
            (Unit::Count, 1_500_000.0, "1.5M"),
            (Unit::Micros, 850.0, "850 µs"),
            (Unit::Micros, 999.9, "1 ms"),
            (Unit::Micros, 2_500_000.0, "2.5 s"),
            (Unit::Memory, 3_145_728.0, "3.15 MB"),
            (Unit::Size, 64.0, "64 B"),
            (Unit::Size, 1024.0, "1 KiB"),
            (Unit::Size, 1000.0, "1 kB"),
            (Unit::Size, 100_000_000.0, "100 MB"),
            (Unit::Size, 12_345.0, "12.3 kB"),
            (Unit::Percentile, 99.9999, "99.9999%"),
            (Unit::Count, f64::INFINITY, "–"),
        ];
        for (unit, value, expected) in rows {
            assert_eq!(unit.show(value), expected, "{unit:?} {value}");
        }
    }

    #[test]
    fn thousands_are_parted() {
        let rows = [(0.0, "0"), (99.44, "99.4"), (999.0, "999"), (1000.0, "1,000"), (1_234_567.2, "1,234,567")];
        for (value, expected) in rows {
            assert_eq!(grouped(value), expected);
        }
        assert_eq!(grouped(-45_300.0), "-45,300");
    }
}
