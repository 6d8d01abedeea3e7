//! Patterns in the style of web application firewalls, and texts that are expensive for them. Must never depend on a
//! clock or on chance.

/// Lengths of the texts: a header, a long one, a buffer of the default size.
pub const LENGTHS: [usize; 3] = [1_000, 4_000, 15_000];

/// The patterns, with their line numbers.
pub fn patterns() -> impl Iterator<Item = (usize, &'static str)> {
    let lines = include_str!("../data/firewall.patterns").lines().zip(1..);
    lines.filter(|(line, _)| !line.starts_with("# ") && !line.is_empty()).map(|(line, number)| (number, line))
}

/// Texts of about that length that are expensive for a pattern.
pub fn texts(pattern: &str, length: usize) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = UNITS.iter().map(|unit| repeated(unit, length)).collect();
    let words = words(pattern);
    let near: Vec<u8> = words.concat().into_bytes();
    if let Some(cut) = near.len().checked_sub(1).filter(|cut| *cut > 0) {
        // The pattern's text without its last character, repeated; then with the complete text.
        all.push(repeated(&near[..cut], length));
        all.push([&repeated(&near[..cut], length)[..], &near].concat());
        all.push([&near[..cut], &repeated(b"a", length), &near[cut..]].concat());
        all.push(repeated(words.join(" ").as_bytes(), length));
        all.push(repeated(words.join("a ").as_bytes(), length));
    }
    for unit in ["a", "x", " ", "1", "'"] {
        // A long run between the first and the last word of the pattern.
        let (first, last) = (words.first().cloned().unwrap_or_default(), words.last().cloned().unwrap_or_default());
        all.push([first.as_bytes(), &repeated(unit.as_bytes(), length), last.as_bytes()].concat());
        all.push([&repeated(unit.as_bytes(), length), last.as_bytes(), b"!"].concat());
    }
    all
}

const UNITS: [&[u8]; 30] = [
    b"a",
    b"A",
    b"1",
    b" ",
    b"\t ",
    b"ab",
    b"ba ",
    b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
    b"x",
    b"%00",
    b"%25",
    b"../",
    b"/",
    b"'",
    b"\"'",
    b"\\",
    b"((",
    b"()",
    b"{{",
    b"${",
    b"<a ",
    b"a=1&",
    b"a[b]=",
    b"1,",
    b"a.",
    b"select from where union ",
    b"'a' or 'a'='a",
    b"\x80\xff",
    b"abacadaeafagahaiaj",
    b"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0, text/html;q=0.9,*/*;q=0.8 ",
];

fn repeated(unit: &[u8], length: usize) -> Vec<u8> {
    unit.iter().copied().cycle().take(length).collect()
}

/// The literal words of a pattern.
fn words(pattern: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut bytes = pattern.trim_start_matches("(?i)").chars();
    while let Some(byte) = bytes.next() {
        let last = words.last_mut().expect("there is one");
        match byte {
            '\\' => match bytes.next() {
                Some('s') => last.push(' '),
                Some('d') => last.push('1'),
                Some('w') => last.push('a'),
                Some('b' | 'B') | None => {}
                Some(other) => last.push(other),
            },
            '|' | '(' | ')' | '[' | ']' | '*' | '+' | '?' | '{' | '}' | '.' | '^' | '$' if !last.is_empty() => {
                words.push(String::new());
            }
            '|' | '(' | ')' | '[' | ']' | '*' | '+' | '?' | '{' | '}' | '^' | '$' | '.' => {}
            other => last.push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
