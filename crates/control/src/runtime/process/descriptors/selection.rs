//! The selection of descriptors for `show fd`. Must never inspect one.

/// Types of descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `p`.
    Pipe,
    /// `l`.
    Listener,
    /// `f`: an accepted connection.
    Front,
    /// `b`, `s`: an outgoing connection.
    Back,
    /// Not selected by any letter.
    Other,
}

impl Kind {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

const ALL: u8 = 0xff;

/// The arguments of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Selection {
    kinds: u8,
    /// Only this descriptor.
    pub(super) number: Option<i32>,
}

/// HAProxy's answer to an invalid letter.
const INVALID: &str = "Invalid FD type";

impl Selection {
    /// Parses the arguments: letters of types, then a number, optionally after the number of a thread group. Words
    /// after a number are ignored, and a number selects any type.
    ///
    /// # Errors
    /// HAProxy's message.
    pub(super) fn read(words: &[String]) -> Result<Self, &'static str> {
        let mut kinds = 0;
        for word in words {
            if word.starts_with(|first: char| first.is_ascii_digit() || first == '/') {
                let wanted = word.split_once('/').map_or(&**word, |(_, number)| number);
                let end = wanted.find(|one: char| !one.is_ascii_digit()).unwrap_or(wanted.len());
                let number = match &wanted[..end] {
                    "" => None,
                    digits => Some(digits.parse().unwrap_or(i32::MAX)),
                };
                return Ok(Self { kinds: if kinds == 0 { ALL } else { kinds }, number });
            }
            let mut inverted = false;
            for letter in word.chars() {
                let chosen = match letter {
                    '-' | '!' => {
                        inverted = !inverted;
                        continue;
                    }
                    'p' => Kind::Pipe.bit(),
                    'l' => Kind::Listener.bit(),
                    'c' => Kind::Front.bit() | Kind::Back.bit(),
                    'f' => Kind::Front.bit(),
                    'b' | 's' => Kind::Back.bit(),
                    _ => return Err(INVALID),
                };
                kinds = match (inverted, kinds) {
                    (false, _) => kinds | chosen,
                    (true, 0) => ALL & !chosen,
                    (true, _) => kinds & !chosen,
                };
            }
        }
        Ok(Self { kinds: if kinds == 0 { ALL } else { kinds }, number: None })
    }

    pub(super) fn admits(self, kind: Kind) -> bool {
        self.kinds & kind.bit() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Selection, &'static str> {
        Selection::read(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn letters_select_kinds() {
        let of = |text: &str| {
            let kinds = [Kind::Pipe, Kind::Listener, Kind::Front, Kind::Back, Kind::Other];
            let selection = read(text).expect("valid");
            kinds
                .into_iter()
                .zip("plfbo".chars())
                .filter(|(kind, _)| selection.admits(*kind))
                .map(|(_, one)| one)
                .collect()
        };
        let rows = [
            ("", "plfbo"),
            ("p", "p"),
            ("c", "fb"),
            ("s", "b"),
            ("lf", "lf"),
            ("l f", "lf"),
            ("!l", "pfbo"),
            ("-plc", "o"),
            ("!c", "plo"),
            // "any connections except frontend connections" (management manual).
            ("c!f", "b"),
            ("-l f", "pfbo"),
            ("l !f", "l"),
            ("-", "plfbo"),
            ("!!p", "p"),
        ];
        for (words, expected) in rows {
            let selected: String = of(words);
            assert_eq!(selected, expected, "{words}");
        }
    }

    #[test]
    fn a_number_is_alone() {
        let rows = [
            ("5", Some(5)),
            ("/5", Some(5)),
            ("1/5", Some(5)),
            ("1/", None),
            ("/", None),
            ("5x", Some(5)),
            ("5 6", Some(5)),
            ("99999999999", Some(i32::MAX)),
        ];
        for (words, number) in rows {
            assert_eq!(read(words).map(|one| (one.number, one.kinds)), Ok((number, ALL)), "{words}");
        }
        for words in ["abc", "d", "-x", "-1"] {
            assert_eq!(read(words), Err(INVALID), "{words}");
        }
    }
}
