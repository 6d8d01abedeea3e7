//! Number formats of columns. Must never take more than eight characters.

/// Formats a number with three digits and a unit.
pub fn short(value: f64) -> String {
    if !value.is_finite() || value <= 0.0 {
        return "0".to_owned();
    }
    let (mut value, mut unit) = (value, 0);
    const UNITS: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let whole = unit == 0 && (value.fract() < 0.05 || value >= 100.0) || value >= 99.95;
    if whole { format!("{value:.0}{}", UNITS[unit]) } else { format!("{value:.1}{}", UNITS[unit]) }
}

/// Formats milliseconds.
pub fn millis(value: u64) -> String {
    if value >= 10_000 { format!("{:.0}s", value as f64 / 1000.0) } else { format!("{value}ms") }
}

/// Formats a latency in milliseconds with three digits.
pub fn latency(millis: f64) -> String {
    match millis {
        _ if !millis.is_finite() || millis < 0.0 => "0".to_owned(),
        _ if millis < 0.9995 => format!("{:.0}us", millis * 1000.0),
        _ if millis < 9.995 => format!("{millis:.2}ms"),
        _ if millis < 99.95 => format!("{millis:.1}ms"),
        _ if millis < 9_999.5 => format!("{millis:.0}ms"),
        _ => format!("{:.0}s", millis / 1000.0),
    }
}

/// Formats seconds in the two largest units.
pub fn duration(seconds: u64) -> String {
    let (days, hours, minutes, rest) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest}s"),
        (0, 0, _) => format!("{minutes}m{rest:02}s"),
        (0, ..) => format!("{hours}h{minutes:02}m"),
        _ => format!("{days}d{hours}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (7.0, "7"),
            (123.4, "123"),
            (1_000.0, "1.0k"),
            (99_940.0, "99.9k"),
            (1_234_567.0, "1.2M"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(short(value), text);
        }
        for (millis, text) in [
            (0.0, "0us"),
            (0.031, "31us"),
            (1.5, "1.50ms"),
            (12.34, "12.3ms"),
            (999.6, "1000ms"),
            (65_000.0, "65s"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(latency(millis), text);
        }
        assert_eq!((millis(95).as_str(), millis(12_345).as_str()), ("95ms", "12s"));
        assert_eq!([5, 65, 3_700, 90_000].map(duration), ["5s", "1m05s", "1h01m", "1d1h"].map(str::to_owned));
    }
}
