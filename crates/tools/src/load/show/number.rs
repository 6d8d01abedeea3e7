//! Numbers in four characters, times in six, and C's `%g`: the formats of h1load. Must never round up: a value that was
//! not reached is not printed.

/// Formats a number in four characters: `0.00`, `4.00`, `10.0`, `712.`, `8k51`, `67k9`, `494M`, `999m`.
#[must_use]
pub fn short(number: f64) -> String {
    const UNITS: &[(f64, char)] = &[
        (1e18, 'E'),
        (1e15, 'P'),
        (1e12, 'T'),
        (1e9, 'G'),
        (1e6, 'M'),
        (1e3, 'k'),
        (1.0, '.'),
        (1e-3, 'm'),
        (1e-6, 'u'),
    ];
    let Some((unit, letter)) = UNITS.iter().find(|(unit, _)| number >= *unit) else {
        return "0.00".to_owned();
    };
    let scaled = number / unit;
    // Three digits, with the letter in place of the point.
    let decimals = if scaled < 10.0 { 2 } else { usize::from(scaled < 100.0) };
    let text = cut(scaled, decimals);
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{whole}{letter}{fraction}"),
        None => format!("{text}{letter}"),
    }
}

/// Formats a number with three significant digits, a space and a unit: `3.41 MB`, `58.2 kbit/s`, `712 B`; without a
/// unit `3.41 M`, `712`. Further digits are truncated.
#[must_use]
pub fn human(number: f64, unit: &str) -> String {
    const PREFIXES: &[(f64, &str)] = &[(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (size, prefix) = PREFIXES.iter().find(|(size, _)| number >= *size).unwrap_or(&(1.0, ""));
    format!("{} {prefix}{unit}", three_digits(number / size)).trim_end().to_owned()
}

/// Formats a time in seconds: `68.6 µs`, `5.58 ms`, `1.5 s`; `-` for `None`.
#[must_use]
pub fn human_time(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else { return "-".to_owned() };
    const UNITS: &[(f64, &str)] = &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
    let (size, unit) = UNITS.iter().find(|(size, _)| seconds >= *size).unwrap_or(&(1e-9, "ns"));
    format!("{} {unit}", three_digits(seconds / size))
}

/// Formats three significant digits, truncated, without trailing zeros.
fn three_digits(number: f64) -> String {
    let decimals = match number {
        _ if number < 10.0 => 2,
        _ if number < 100.0 => 1,
        _ => 0,
    };
    let text = cut(number, decimals);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats a time in seconds in six characters: `68.66u`, `207.4u`, `5.583m`, `1.500s`; `None` is `   -  `.
#[must_use]
pub fn time(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else { return "   -  ".to_owned() };
    const UNITS: &[(f64, char)] = &[(1.0, 's'), (1e-3, 'm'), (1e-6, 'u')];
    let (unit, letter) = UNITS.iter().find(|(unit, _)| seconds >= *unit).unwrap_or(&(1e-9, 'n'));
    let scaled = seconds / unit;
    let decimals = match scaled {
        _ if scaled < 10.0 => 3,
        _ if scaled < 100.0 => 2,
        _ if scaled < 1000.0 => 1,
        _ => 0,
    };
    let point = if decimals == 0 { "." } else { "" };
    format!("{}{point}{letter}", cut(scaled, decimals))
}

/// Formats a number with that number of decimals, truncated.
fn cut(number: f64, decimals: usize) -> String {
    let scale = [1.0, 10.0, 100.0, 1000.0][decimals.min(3)];
    // Compensates binary fractions that are slightly below a decimal digit.
    let whole = (number * scale * (1.0 + 1e-12)).floor();
    format!("{:.decimals$}", whole / scale)
}

/// Formats like C's `%g`: six significant digits, without trailing zeros.
#[must_use]
pub fn general(number: f64) -> String {
    let written = format!("{number:.5e}");
    let Some((mantissa, exponent)) = written.split_once('e') else { return written };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| text.contains('.').then(|| text.trim_end_matches('0').trim_end_matches('.').to_owned());
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        let plain = format!("{number:.decimals$}");
        return trimmed(&plain).unwrap_or(plain);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let mantissa = trimmed(mantissa).unwrap_or_else(|| mantissa.to_owned());
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Formats an integer with thousands separators: `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_units() {
        let rows = [
            (0.0, "", "0"),
            (712.0, "", "712"),
            (712.0, "B", "712 B"),
            (3_419_999.0, "", "3.41 M"),
            (3_414_000.0, "B", "3.41 MB"),
            (58_202.0, "bit/s", "58.2 kbit/s"),
            (500_000.0, "", "500 k"),
            (999_999.0, "", "999 k"),
            (0.5, "", "0.5"),
        ];
        for (number, unit, text) in rows {
            assert_eq!(human(number, unit), text, "{number}");
        }
        let rows = [(0.000_068_66, "68.6 µs"), (0.005_583, "5.58 ms"), (1.5, "1.5 s"), (61.0, "61 s"), (4e-8, "40 ns")];
        for (seconds, text) in rows {
            assert_eq!(human_time(Some(seconds)), text, "{seconds}");
        }
        assert_eq!(human_time(None), "-");
    }

    #[test]
    fn numbers_take_four_characters() {
        // Recorded from h1load, with numbers derived from its counters.
        const RECORDED: &[(f64, &str)] = &[
            (0.0, "0.00"),
            (4.0, "4.00"),
            (10.0, "10.0"),
            (712.0, "712."),
            (20.0, "20.0"),
            (1164.0, "1k16"),
            (9312.0, "9k31"),
            (58202.0, "58k2"),
            (61_810_524.0 * 8.0, "494M"),
            (1493.0, "1k49"),
            (2.0 / 1.0005, "1.99"),
            (2.0 / 2.002, "999m"),
            (42_836_832.0 * 8.0, "342M"),
            (68_551_038.0 * 8.0, "548M"),
            (64549.0, "64k5"),
            (432.0, "432."),
        ];
        for (number, text) in RECORDED {
            assert_eq!(short(*number), *text, "{number}");
        }
        const OTHERS: &[(f64, &str)] = &[
            (f64::NAN, "0.00"),
            (-1.0, "0.00"),
            (1e-9, "0.00"),
            (0.05, "50m0"),
            (9.999, "9.99"),
            (99.99, "99.9"),
            (999.99, "999."),
            (999_999.0, "999k"),
            (1e6, "1M00"),
            (1.271e9, "1G27"),
            (2e13, "20T0"),
            (4.1e18, "4E10"),
        ];
        for (number, text) in OTHERS {
            assert_eq!(short(*number), *text, "{number}");
        }
    }

    #[test]
    fn times_take_six_characters() {
        const FORMS: &[(f64, &str)] = &[
            (68.66e-6, "68.66u"),
            (207.4e-6, "207.4u"),
            (784.2e-6, "784.2u"),
            (5.583e-3, "5.583m"),
            (50.08e-3, "50.08m"),
            (0.5007, "500.7m"),
            (1.5, "1.500s"),
            (9.5e-6, "9.500u"),
            (61e-6, "61.00u"),
            (12.34, "12.34s"),
            (123.4, "123.4s"),
            (3600.0, "3600.s"),
            (0.5e-6, "500.0n"),
            (0.0, "0.000n"),
        ];
        for (seconds, text) in FORMS {
            assert_eq!(time(Some(*seconds)), *text, "{seconds}");
            assert_eq!(text.len(), 6);
        }
        assert_eq!(time(None), "   -  ");
    }

    #[test]
    fn general_numbers_are_those_of_c() {
        const FORMS: &[(f64, &str)] = &[
            (0.0, "0"),
            (0.022, "0.022"),
            (0.04, "0.04"),
            (8.02, "8.02"),
            (12.0, "12"),
            (16.96, "16.96"),
            (1501.18, "1501.18"),
            (1501.184, "1501.18"),
            (123_456.7, "123457"),
            (999_999.7, "1e+06"),
            (3_600_000.0, "3.6e+06"),
            (0.0001, "0.0001"),
            (100.0 - 99.9965, "0.0035"),
            (0.00001, "1e-05"),
            (100.0, "100"),
            (90.0, "90"),
        ];
        for (number, text) in FORMS {
            assert_eq!(general(*number), *text, "{number}");
        }
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
