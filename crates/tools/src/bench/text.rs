//! Number formats of the page. Must never show more digits than are significant.

/// Formats a whole number with thousands separators.
#[must_use]
pub fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats three significant digits, followed by zeros.
#[must_use]
pub fn rounded(value: f64) -> String {
    if value < 100.0 {
        return if value < 10.0 { format!("{value:.2}") } else { format!("{value:.1}") };
    }
    let scale = 10f64.powf(value.log10().floor() - 2.0);
    thousands((value / scale).round() * scale)
}

/// Formats bytes in the largest suitable unit.
#[must_use]
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];
    let mut value = value;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if (value - value.round()).abs() < 0.05 || value >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A row of a table.
#[must_use]
pub fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// The head of a table.
#[must_use]
pub fn head(cells: &[String]) -> String {
    format!("{}|{}\n", row(cells), "---|".repeat(cells.len()))
}

/// Returns program and version from the line that a program prints; the proxy's own name if it prints none.
#[must_use]
pub fn program(line: &str, name: &str) -> String {
    let version = line
        .split([' ', '/', ',', '\t'])
        .find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()) && word.contains('.'));
    let Some(version) = version else { return name.to_owned() };
    // Of suffixes of packages, only that of a development version is kept.
    let mut pieces = version.split(['-', '+', '~']);
    let number = pieces.next().unwrap_or(version);
    let development = pieces.next().filter(|piece| piece.starts_with("dev"));
    let version = development.map_or_else(|| number.to_owned(), |piece| format!("{number}-{piece}"));
    let lower = line.to_ascii_lowercase();
    let known = ["HAProxy", "nginx", "Weir", "Envoy"].into_iter();
    let first = known.filter_map(|known| Some((lower.find(&known.to_ascii_lowercase())?, known))).min();
    let program = first.map_or(name, |(_, known)| known);
    format!("{program} {version}")
}
