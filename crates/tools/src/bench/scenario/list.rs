//! Long lists that proxies read, such as maps of a million entries: one line, repeated with different numbers in
//! it. Must never depend on the purpose of a list.

use super::template::{Values, fill};
use serde::Deserialize;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use toml::Spanned;

/// Maximum number of lines of a list.
pub const MOST_ENTRIES: u32 = 10_000_000;

/// Placeholders of a line.
const NAMES: [&str; 6] = ["n", "mixed", "address", "network", "depth", "text"];

/// Common words of English, the most common ones first.
const WORDS: &str = "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they \
    which one you were all her she there would their we him been has when who will no more if out so up said what \
    its about than into them can only other time new some could these two may first then do any like my now over \
    such our man me even most made after also well did many before must through years where much your way down \
    should because long each just state those people too how little good world make very year still see own work \
    men day get here between both life being under three never know same last another while us off might great go \
    come since against right came take used himself few house American use place during high without again home \
    around small however found Mrs thought went say part once general war upon school every does got united left \
    number course until always away something fact water less public put thing almost hand enough far took head \
    yet government system better set told nothing night end why called eyes find going look asked later knew point \
    next program city business give group toward young days let room president side social given present several \
    order national second possible rather per face among form often things looked early white case big four within \
    power";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Number of lines.
    pub entries: Spanned<u32>,
    /// Template of a line. `{n}` is its number, from 0.
    pub line: Spanned<String>,
}

impl List {
    /// Checks the list.
    ///
    /// # Errors
    /// The message, and whether it is about the line.
    pub fn verify(&self) -> Result<(), (bool, String)> {
        if !(1..=MOST_ENTRIES).contains(self.entries.get_ref()) {
            return Err((false, format!("a list has 1 to {MOST_ENTRIES} entries")));
        }
        let line = self.line.get_ref();
        if line.contains('\n') || line.len() > 1000 {
            return Err((true, "a line is one line of at most 1000 bytes".to_owned()));
        }
        fill(line, &values(0)).map(drop).map_err(|what| (true, what))
    }

    /// Writes the list.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for number in 0..*self.entries.get_ref() {
            let line = fill(self.line.get_ref(), &values(number)).map_err(io::Error::other)?;
            out.write_all(line.as_bytes())?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// Returns the placeholders' values in the nth line.
fn values(number: u32) -> Values {
    let mixed = mixed(number);
    let bits = 20 + number % 13;
    let network = Ipv4Addr::from(mixed & (u32::MAX << (32 - bits)));
    let texts = [
        number.to_string(),
        format!("{mixed:08x}"),
        Ipv4Addr::from(mixed).to_string(),
        format!("{network}/{bits}"),
        depth(number, mixed),
        text(number),
    ];
    NAMES.map(str::to_owned).into_iter().zip(texts).collect()
}

/// Returns a path of one to eight parts.
fn depth(number: u32, mixed: u32) -> String {
    (0..=number % 8).fold(String::new(), |mut path, part| {
        let _ = write!(path, "/{:x}", mixed.rotate_left(4 * part));
        path
    })
}

/// Returns a sentence of 8 to 23 words, with common ones more frequent.
fn text(number: u32) -> String {
    let words: Vec<&str> = WORDS.split(' ').collect();
    let mut sentence = String::new();
    for place in 0..8 + mixed(number) % 16 {
        let drawn = mixed(number.wrapping_mul(32) + place + 1);
        // The product of two uniformly distributed parts: its density decreases with its value.
        let (one, other) = (u64::from(drawn >> 16), u64::from(drawn & 0xffff));
        let rank = usize::try_from((one * other * words.len() as u64) >> 32).unwrap_or(0);
        let word = words.get(rank).copied().unwrap_or("the");
        let between = ["", " "][usize::from(place > 0)];
        let _ = write!(sentence, "{between}{word}");
    }
    sentence.push('.');
    sentence
}

/// Permutes numbers, so that the order of the lines is not that of their content.
fn mixed(number: u32) -> u32 {
    let number = (number ^ (number >> 16)).wrapping_mul(0x85eb_ca6b);
    let number = (number ^ (number >> 13)).wrapping_mul(0xc2b2_ae35);
    number ^ (number >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: u32, line: &str) -> List {
        List { entries: Spanned::new(0..0, entries), line: Spanned::new(0..0, line.to_owned()) }
    }

    #[test]
    fn a_line_is_written_with_other_numbers() {
        let mut out = Vec::new();
        list(3, "{n} {mixed} {address} {network} {depth}").write(&mut out).unwrap();
        let lines: Vec<&str> = std::str::from_utf8(&out).unwrap().lines().collect();
        assert_eq!(lines[0], "0 00000000 0.0.0.0 0.0.0.0/20 /0");
        assert_eq!(lines[1], "1 514e28b7 81.78.40.183 81.78.40.0/21 /514e28b7/14e28b75");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn texts_have_words_and_differ() {
        let texts: Vec<String> = (0..1000).map(text).collect();
        assert!(texts.iter().all(|text| (8..24).contains(&text.split(' ').count()) && text.ends_with('.')));
        let words: Vec<&str> = texts.iter().flat_map(|text| text.trim_end_matches('.').split(' ')).collect();
        let of = |word| words.iter().filter(|&&other| other == word).count();
        assert!(of("the") > 10 * of("power") && of("power") > 0);
        let mut texts = texts.clone();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 1000);
    }

    #[test]
    fn numbers_are_mixed_without_meeting() {
        let mut all: Vec<u32> = (0..100_000).map(mixed).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 100_000);
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert!(list(0, "a").verify().is_err() && list(1, "a\nb").verify().is_err());
        assert!(list(1, "{m}").verify().is_err_and(|(of_line, what)| of_line && what.contains("{mixed}")));
        assert_eq!(list(1, "{n}").verify(), Ok(()));
    }
}
