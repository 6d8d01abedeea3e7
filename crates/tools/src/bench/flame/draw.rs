//! Drawing of a flame graph: each function is as wide as its number of samples and is placed on its caller. Must never
//! depend on external files.

use super::fold::{KERNEL, Stacks};
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const HEAD: f64 = 50.0;
const ROW: f64 = 17.0;

/// Width of a letter at the font size of the text.
const LETTER: f64 = 6.6;

/// Minimum width of a function that is drawn.
const NARROWEST: f64 = 0.4;

/// A function within its callers.
#[derive(Default)]
struct Frame {
    count: u64,
    inner: BTreeMap<String, Frame>,
}

/// Returns the graph as SVG.
#[must_use]
pub fn draw(title: &str, stacks: &Stacks) -> String {
    let mut root = Frame::default();
    for (stack, count) in stacks {
        let mut frame = &mut root;
        frame.count += count;
        for name in stack {
            frame = frame.inner.entry(name.clone()).or_default();
            frame.count += count;
        }
    }
    let scale = (WIDTH - 2.0 * MARGIN) / root.count.max(1) as f64;
    let deepest = depth(&root, scale);
    let bottom = HEAD + deepest as f64 * ROW;
    let mut body = String::new();
    put(&root, root.count, MARGIN, bottom, scale, &mut body);
    let height = bottom + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"ui-monospace, monospace\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fffdf7\"/>\n\
         <text x=\"{MARGIN}\" y=\"20\" font-size=\"15\" font-weight=\"bold\">{}</text>\n\
         <text x=\"{MARGIN}\" y=\"38\" fill=\"#555\">{} samples; orange: the program, blue: the kernel; wide is much time, above stands who was called</text>\n\
         {body}</svg>\n",
        escape(title),
        root.count
    )
}

/// Returns the number of rows that are wide enough to be drawn.
fn depth(frame: &Frame, scale: f64) -> usize {
    let inner = frame.inner.values().filter(|inner| inner.count as f64 * scale >= NARROWEST);
    inner.map(|inner| 1 + depth(inner, scale)).max().unwrap_or(0)
}

fn put(frame: &Frame, all: u64, mut x: f64, bottom: f64, scale: f64, out: &mut String) {
    for (name, inner) in &frame.inner {
        let width = inner.count as f64 * scale;
        if width >= NARROWEST {
            let y = bottom - ROW;
            let (name, colour) = match name.strip_suffix(KERNEL) {
                Some(name) => (name, "#a9c7e8"),
                None => (name.as_str(), "#f5b971"),
            };
            let share = inner.count as f64 * 100.0 / all.max(1) as f64;
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "<g><title>{} ({} samples, {share:.2} %)</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" \
                 height=\"{:.1}\" rx=\"1\" fill=\"{colour}\"/>",
                escape(name),
                inner.count,
                (width - 0.3).max(0.1),
                ROW - 1.0
            );
            let letters = ((width - 6.0) / LETTER).max(0.0) as usize;
            if letters >= 3 {
                let _ = write!(
                    out,
                    "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                    x + 3.0,
                    y + 12.0,
                    escape(&shorten(name, letters))
                );
            }
            out.push_str("</g>\n");
            put(inner, all, x, y, scale, out);
        }
        x += width;
    }
}

/// Shortens a name to a number of letters.
fn shorten(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    name.chars().take(letters.saturating_sub(2)).chain("..".chars()).collect()
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_as_wide_as_their_samples() {
        let stack = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let stacks =
            [(stack(&["w", "main<T>"]), 1), (stack(&["w", "main<T>", "read_[k]"]), 3), (stack(&["w", "idle"]), 4)]
                .into();
        let svg = draw("a & b", &stacks);
        assert!(svg.contains("a &amp; b</text>") && svg.contains("8 samples"), "{svg}");
        assert!(svg.contains("<title>main&lt;T&gt; (4 samples, 50.00 %)</title>"), "{svg}");
        assert!(svg.contains("<title>read (3 samples, 37.50 %)</title>") && svg.contains("#a9c7e8"), "{svg}");
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
        assert_eq!(svg.matches("<g>").count(), 4);
        // Three rows, with half of the width for each of the two functions of the second one.
        assert_eq!(svg.matches("width=\"589.7\"").count(), 2, "{svg}");
    }
}
