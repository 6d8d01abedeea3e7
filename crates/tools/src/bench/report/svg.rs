//! Text escaped for HTML and SVG, and the few elements of charts. Must never write a text of the
//! results unescaped, nor a coordinate that is not finite.

use std::fmt::Write;

/// Escapes text for element content and quoted attributes: markup, control characters and those that change the
/// direction of writing lose their meaning. Longer texts are truncated.
pub fn escape(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len().min(most) + 8);
    for (count, letter) in text.chars().enumerate() {
        if count == most {
            out.push('…');
            break;
        }
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            '\r' => {}
            _ if odd(letter) => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}

/// Whether a character is not allowed in XML, or changes the direction of writing.
fn odd(letter: char) -> bool {
    let turns = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let none = matches!(letter, '\u{fffe}' | '\u{ffff}');
    letter.is_control() || turns || none
}

/// Returns the estimated width of a text in a common sans serif font, in units of the font size; rather too wide than
/// too narrow.
pub fn width(text: &str) -> f64 {
    let of = |letter: char| match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '/' | '-' | 'I' => 0.44,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.98,
        'A'..='Z' | '→' => 0.74,
        letter if letter.is_ascii() => 0.63,
        'µ' | '–' | '·' | '×' | '…' => 0.7,
        _ => 1.05,
    };
    text.chars().map(of).sum()
}

/// Factor of the width of bold letters.
pub const HEAVY: f64 = 1.12;

/// Truncates a text to a width, in units of the font size.
pub fn fitting(text: &str, most: f64) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        kept.push(letter);
        if width(&kept) + 0.7 > most {
            kept.pop();
            break;
        }
    }
    kept.push('…');
    kept
}

/// Alignment of a text at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing in progress.
#[derive(Debug, Default)]
pub struct Svg {
    out: String,
}

impl Svg {
    /// Opens the drawing, with a margin around its size. `id` is unique in its page; title and description are for
    /// screen readers.
    pub fn open(class: &str, width: f64, height: f64, margin: f64, id: &str, title: &str, description: &str) -> Self {
        let mut svg = Self::default();
        let (begin, w, h) = (number(-margin), number(width + 2.0 * margin), number(height + 2.0 * margin));
        let (title, description) = (escape(title, 300), escape(description, 2000));
        svg.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart {class}\" viewBox=\"{begin} {begin} {w} {h}\" width=\"{w}\" \
             height=\"{h}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\n<title id=\"{id}-t\">{title}</title>\n\
             <desc id=\"{id}-d\">{description}</desc>\n"
        ));
        svg
    }

    /// Closes the drawing and returns it.
    pub fn close(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }

    /// Appends trusted markup.
    pub fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = self.out.write_fmt(text);
    }

    /// Opens a group; its title is shown as a tooltip.
    pub fn group(&mut self, class: &str, title: Option<&str>) {
        self.put(format_args!("<g class=\"{class}\">"));
        if let Some(title) = title {
            let title = escape(title, 300);
            self.put(format_args!("<title>{title}</title>"));
        }
    }

    /// Closes the innermost group.
    pub fn end(&mut self) {
        self.out.push_str("</g>\n");
    }

    /// Draws a straight line.
    pub fn line(&mut self, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(number);
        self.put(format_args!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>\n"));
    }

    /// Draws a line through points.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut d = String::with_capacity(points.len() * 12);
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if index == 0 { "M" } else { "L" }, number(*x), number(*y));
        }
        if !d.is_empty() {
            self.put(format_args!("<path class=\"{class}\" d=\"{d}\"/>\n"));
        }
    }

    /// Draws a filled rectangle.
    pub fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let [x, y, w, h] = [x, y, width.max(0.0), height.max(0.0)].map(number);
        self.put(format_args!("<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/>\n"));
    }

    /// Draws a line of text.
    pub fn text(&mut self, class: &str, x: f64, y: f64, anchor: Anchor, text: &str) {
        let [x, y] = [x, y].map(number);
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text, 200);
        self.put(format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>\n"));
    }

    /// Draws a mark at a point; the shape distinguishes series without colours.
    pub fn mark(&mut self, class: &str, shape: usize, x: f64, y: f64, radius: f64) {
        let r = radius;
        let corners: Vec<(f64, f64)> = match shape % 4 {
            0 => {
                let [x, y, r] = [x, y, r].map(number);
                self.put(format_args!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{r}\"/>\n"));
                return;
            }
            1 => return self.rect(class, x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8),
            2 => vec![(x, y - r * 1.2), (x + r * 1.15, y + r * 0.9), (x - r * 1.15, y + r * 0.9)],
            _ => vec![(x, y - r * 1.3), (x + r * 1.3, y), (x, y + r * 1.3), (x - r * 1.3, y)],
        };
        let points: Vec<String> = corners.into_iter().map(|(x, y)| format!("{},{}", number(x), number(y))).collect();
        self.put(format_args!("<polygon class=\"{class}\" points=\"{}\"/>\n", points.join(" ")));
    }
}

/// Formats a coordinate with a tenth of a unit, which is less than a pixel.
fn number(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1e5, 1e5) } else { 0.0 };
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_odd_characters_lose_their_meaning() {
        let rows = [
            ("<script>alert('x')</script>", "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"),
            ("a\"b&c", "a&quot;b&amp;c"),
            ("a\0b\u{1b}[31m", "a\u{fffd}b\u{fffd}[31m"),
            ("abc\u{202e}fed", "abc\u{fffd}fed"),
            ("line\r\nnext", "line\nnext"),
            ("\u{ffff}", "\u{fffd}"),
        ];
        for (text, expected) in rows {
            assert_eq!(escape(text, 100), expected);
        }
        assert_eq!(escape("abcdef", 3), "abc…");
        assert_eq!(escape("<<<<", 2), "&lt;&lt;…");
    }

    #[test]
    fn coordinates_are_always_numbers() {
        let rows = [(1.0, "1"), (1.26, "1.3"), (-0.01, "0"), (f64::NAN, "0"), (f64::INFINITY, "0"), (1e300, "100000")];
        for (value, expected) in rows {
            assert_eq!(number(value), expected, "{value}");
        }
    }

    #[test]
    fn a_text_is_cut_to_its_room() {
        assert_eq!(fitting("haproxy", 10.0), "haproxy");
        let cut = fitting("a-name-without-any-end-at-all", 6.0);
        assert!(cut.ends_with('…') && width(&cut) <= 6.0, "{cut}");
        assert_eq!(fitting("abc", 0.0), "…");
    }
}
