//! Texts in HTML: escaping, numbers, durations, tooltips. Must never write text of others without escaping it.

use std::fmt::{self, Write as _};

/// Displays text with HTML's special characters escaped.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '<' => out.write_str("&lt;"),
                '>' => out.write_str("&gt;"),
                '&' => out.write_str("&amp;"),
                '"' => out.write_str("&quot;"),
                '\'' => out.write_str("&#39;"),
                other => out.write_char(other),
            }?;
        }
        Ok(())
    }
}

/// Displays a number whose thousands are set apart by the style sheet: copied, it has only digits.
pub(super) struct Grouped(pub(super) u64);

impl fmt::Display for Grouped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            let left = digits.len() - at - 1;
            if left > 0 && left.is_multiple_of(3) {
                write!(out, "<span class=\"rls\">{digit}</span>")?;
            } else {
                out.write_char(digit)?;
            }
        }
        Ok(())
    }
}

/// Displays bytes with three digits and a unit.
pub(super) struct Bytes(pub(super) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(self.0, ["", " kB", " MB", " GB", " TB", " PB"], out)
    }
}

/// Displays bits per second with three digits and a unit.
pub(super) struct BitRate(pub(super) u64);

impl fmt::Display for BitRate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(self.0, [" bps", " kbps", " Mbps", " Gbps", " Tbps", " Pbps"], out)
    }
}

fn scaled(value: u64, units: [&str; 6], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (mut value, mut unit) = (value as f64, 0);
    while value >= 1_000.0 && unit + 1 < units.len() {
        value /= 1_000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 100.0 { 0 } else { 1 };
    write!(out, "{value:.digits$}{}", units[unit])
}

/// Displays seconds in the two largest units.
pub(super) struct Duration(pub(super) u64);

impl fmt::Display for Duration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, hours, minutes, seconds) = (self.0 / 86_400, self.0 / 3_600 % 24, self.0 / 60 % 60, self.0 % 60);
        match (days, hours, minutes) {
            (0, 0, 0) => write!(out, "{seconds}s"),
            (0, 0, _) => write!(out, "{minutes}m{seconds}s"),
            (0, ..) => write!(out, "{hours}h{minutes}m"),
            _ => write!(out, "{days}d{hours}h"),
        }
    }
}

/// A tooltip: a table of names and values.
#[derive(Debug, Default)]
pub(super) struct Tooltip(String);

impl Tooltip {
    /// Adds a line of text.
    pub(super) fn text(mut self, text: &dyn fmt::Display) -> Self {
        let _ = write!(self.0, "<tr><th colspan=\"3\">{}</th></tr>", Escaped(&text.to_string()));
        self
    }

    /// Adds a name, a value and a remark, which may be empty.
    pub(super) fn row(mut self, name: &str, value: &dyn fmt::Display, remark: &str) -> Self {
        let value = Escaped(&value.to_string()).to_string();
        let _ = write!(self.0, "<tr><th>{}:</th><td>{value}</td><td>{}</td></tr>", Escaped(name), Escaped(remark));
        self
    }

    /// Adds a number and its share of a total.
    pub(super) fn share(self, name: &str, number: u64, total: u64) -> Self {
        let remark = (number * 100).checked_div(total).map_or(String::new(), |percent| format!("({percent}%)"));
        self.row(name, &number, &remark)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Tooltip {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "<div class=\"tips\"><table class=\"det\">{}</table></div>", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (bytes, text) in [(0, "0"), (999, "999"), (1_000, "1.0 kB"), (123_456, "123 kB"), (5_600_000, "5.6 MB")] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!((BitRate(7).to_string(), BitRate(28_006).to_string()), ("7 bps".into(), "28.0 kbps".into()));
        for (seconds, text) in [(0, "0s"), (61, "1m1s"), (206, "3m26s"), (3_700, "1h1m"), (90_000, "1d1h")] {
            assert_eq!(Duration(seconds).to_string(), text);
        }
    }

    #[test]
    fn thousands_are_set_apart_without_a_character() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (9_977, "<span class=\"rls\">9</span>977"),
            (1_234_567, "<span class=\"rls\">1</span>23<span class=\"rls\">4</span>567"),
        ] {
            assert_eq!(Grouped(number).to_string(), text);
        }
    }

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(Escaped("<a href='x'>\"&").to_string(), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
        let tip = Tooltip::default().text(&"<b>").row("<i>", &"<u>", "<s>").to_string();
        assert!(!["<b>", "<i>", "<u>", "<s>"].iter().any(|tag| tip.contains(tag)), "{tip}");
    }

    #[test]
    fn a_tooltip_has_shares() {
        assert!(Tooltip::default().is_empty());
        let tip = Tooltip::default().share("Hits", 1, 4).share("Misses", 0, 0).to_string();
        assert!(tip.contains("<tr><th>Hits:</th><td>1</td><td>(25%)</td></tr>"), "{tip}");
        assert!(tip.contains("<tr><th>Misses:</th><td>0</td><td></td></tr>"), "{tip}");
    }
}
