//! The parameters in the target of a haterm request. Must never fail: parsing stops at the first invalid parameter, and
//! the ones before it apply.
//!
//! `/?s=10k&r=404`: the first question mark is followed by a letter, `=` and a number, and further ones after
//! delimiters. A number is in C's notation (decimal, `0x` hexadecimal, `0` octal), followed by any of `k`, `m`, `g`
//! (powers of 1024) and `r` (a random number below the value so far).

/// The longest supported wait, in milliseconds: a day.
const LONGEST_WAIT: u64 = 24 * 3600 * 1000;

/// The parameters of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// `s`: length of the body in bytes.
    pub size: u64,
    /// `r`: the status, 100 to 999.
    pub status: u16,
    /// `t`: milliseconds to wait before the answer.
    pub wait: u64,
    /// `c`: the response is cacheable.
    pub cacheable: bool,
    /// `C` and `K`; the last one applies.
    pub reuse: Reuse,
    /// `k`: whether and how the body is chunked.
    pub chunks: Chunks,
    /// `R`: the body consists of random bytes.
    pub random: bool,
    /// `A`: the request's body is read after the response is sent, not before.
    pub drain_after: bool,
    /// `g`: the response ends with gRPC trailers, over HTTP/2.
    pub grpc: bool,
    /// `v`: the response describes itself in X-req and X-rsp.
    pub verbose: bool,
}

/// Whether the connection is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// As the request specifies.
    AsAsked,
    /// Close the connection.
    Close,
    /// Keep the connection, unless the request contains `close`.
    Keep,
}

/// How a body is chunked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunks {
    /// Not chunked.
    None,
    /// In chunks of maximum size.
    Large,
    /// In chunks of one byte.
    Bytes,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            size: 0,
            status: 200,
            wait: 0,
            cacheable: true,
            reuse: Reuse::AsAsked,
            chunks: Chunks::None,
            random: false,
            drain_after: false,
            grpc: false,
            verbose: true,
        }
    }
}

/// Whether a target requests the help page: its question mark is the last byte.
#[must_use]
pub fn asks_for_help(target: &[u8]) -> bool {
    target.last() == Some(&b'?')
}

impl Parameters {
    /// Parses a target. `random` returns a new random number at each call.
    pub fn read(target: &[u8], random: impl FnMut() -> u64) -> Self {
        let mut parameters = Self::default();
        if let Some(mark) = memchr::memchr(b'?', target) {
            parameters.read_list(&target[mark + 1..], random);
        }
        parameters
    }

    fn read_list(&mut self, list: &[u8], mut random: impl FnMut() -> u64) {
        let mut rest = list;
        loop {
            match *rest {
                [delimiter, ref behind @ ..] if is_delimiter(delimiter) => rest = behind,
                [letter, b'=', ref value @ ..] => {
                    let (number, behind) = number(value, &mut random);
                    if let Some(number) = number {
                        self.set(letter, number);
                    }
                    match behind {
                        [delimiter, behind @ ..] if is_delimiter(*delimiter) => rest = behind,
                        _ => return,
                    }
                }
                _ => return,
            }
        }
    }

    fn set(&mut self, letter: u8, number: i64) {
        let amount = u64::try_from(number).unwrap_or(0);
        match letter {
            b's' => self.size = amount,
            // An invalid status is ignored.
            b'r' => self.status = if (100..1000).contains(&number) { number as u16 } else { self.status },
            b't' => self.wait = amount.min(LONGEST_WAIT),
            b'c' => self.cacheable = number > 0,
            b'A' => self.drain_after = number != 0,
            b'C' => self.reuse = if number != 0 { Reuse::Close } else { Reuse::AsAsked },
            b'K' => self.reuse = if number != 0 { Reuse::Keep } else { Reuse::Close },
            b'k' => {
                self.chunks = match number {
                    ..=0 => Chunks::None,
                    2 => Chunks::Bytes,
                    _ => Chunks::Large,
                }
            }
            b'R' => self.random = number > 0,
            b'g' => self.grpc = number > 0,
            b'v' => self.verbose = number != 0,
            _ => {}
        }
    }
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'&' | b'?' | b',' | b';' | b'/')
}

/// Parses the number at the start of `text`, saturating; returns it, if there is one, and the rest.
fn number<'a>(text: &'a [u8], random: &mut impl FnMut() -> u64) -> (Option<i64>, &'a [u8]) {
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let is_digit = |byte: Option<&u8>, radix: u32| byte.is_some_and(|byte| char::from(*byte).is_digit(radix));
    let (radix, mut rest) = match unsigned {
        [b'0', b'x' | b'X', digits @ ..] if is_digit(digits.first(), 16) => (16, digits),
        [b'0', ..] => (8, unsigned),
        _ => (10, unsigned),
    };
    if !is_digit(rest.first(), radix) {
        return (None, text);
    }
    let mut number = 0_i64;
    while let [digit, behind @ ..] = rest
        && let Some(digit) = char::from(*digit).to_digit(radix)
    {
        number = number.saturating_mul(i64::from(radix)).saturating_add(i64::from(digit));
        rest = behind;
    }
    if negative {
        number = -number;
    }
    while let [suffix, behind @ ..] = rest {
        number = match suffix.to_ascii_lowercase() {
            b'k' => number.saturating_mul(1 << 10),
            b'm' => number.saturating_mul(1 << 20),
            b'g' => number.saturating_mul(1 << 30),
            b'r' => ((i128::from(number) * i128::from(random())) >> 64) as i64,
            _ => break,
        };
        rest = behind;
    }
    (Some(number), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses with a random factor of one half.
    fn read(target: &str) -> Parameters {
        Parameters::read(target.as_bytes(), || 1 << 63)
    }

    #[test]
    fn every_parameter_is_read_in_any_order_behind_any_delimiter() {
        let all = Parameters {
            size: 20 << 10,
            status: 404,
            wait: 700,
            cacheable: false,
            reuse: Reuse::Close,
            chunks: Chunks::Large,
            random: true,
            drain_after: true,
            grpc: true,
            verbose: false,
        };
        for target in [
            "/?s=20k&r=404&t=700&c=0&C=1&k=1&R=1&A=1&g=1&v=0",
            "/?v=0,A=1;R=1/k=1?C=1&c=0,t=700;r=404/s=20k/g=2",
            "/any/path?K=1?s=20k?r=404?t=700?c=0?C=1?k=3?R=7?A=1?g=1?v=0",
            "http://a.example:80/?&s=20k&&r=404,,t=700&c=-1&C=-1&k=1&R=1&A=1&v=0&g=1&",
        ] {
            assert_eq!(read(target), all, "{target}");
        }
    }

    #[test]
    fn numbers_are_read_as_c_reads_them_and_scaled() {
        let rows = [
            ("10", 10),
            ("010", 8),
            ("08", 0),
            ("0x10", 16),
            ("0X1f", 31),
            ("0x", 0),
            ("+5", 5),
            ("-5", 0),
            ("1k", 1024),
            ("1K", 1024),
            ("2m", 2 << 20),
            ("3g", 3 << 30),
            ("1kk", 1 << 20),
            ("1024g", 1 << 40),
            ("30r", 15),
            ("1kr", 512),
            ("5rk", 2 << 10),
            ("1rr", 0),
            ("99999999999999999999", i64::MAX as u64),
            ("9999999999g", i64::MAX as u64),
        ];
        for (text, expected) in rows {
            assert_eq!(read(&format!("/?s={text}")).size, expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_ends_the_reading() {
        for (target, size, status) in [
            ("/?s=10x&r=404", 10, 200),
            ("/?s=1k5&r=404", 1024, 200),
            ("/?s=1.5k&r=404", 1, 200),
            ("/?x=4&s=10&r=404", 10, 404),
            ("/?name=4&s=10", 0, 200),
            ("/?s&r=404", 0, 200),
            ("/?s=&r=404", 0, 404),
            ("/?s=10&s=", 10, 200),
            ("/?s=10&s=20", 20, 200),
            ("/?=5&s=5", 0, 200),
            ("/?s=k&r=404", 0, 200),
            ("/?s=10#r=404", 10, 200),
            ("/?s=10%26r=404", 10, 200),
            ("/s=10", 0, 200),
            ("/", 0, 200),
            ("*", 0, 200),
            ("", 0, 200),
        ] {
            let read = read(target);
            assert_eq!((read.size, read.status), (size, status), "{target}");
        }
    }

    #[test]
    fn values_are_held_to_what_they_can_be() {
        for (value, status) in [("999", 999), ("1000", 200), ("100", 100), ("99", 200), ("-5", 200), ("204", 204)] {
            assert_eq!(read(&format!("/?r={value}")).status, status, "{value}");
        }
        assert_eq!(read("/?t=99999g").wait, LONGEST_WAIT);
        assert_eq!(read("/?t=-1").wait, 0);
        for (list, reuse) in [
            ("C=1&K=1", Reuse::Keep),
            ("K=1&C=1", Reuse::Close),
            ("K=0", Reuse::Close),
            ("C=0", Reuse::AsAsked),
            ("C=k", Reuse::AsAsked),
        ] {
            assert_eq!(read(&format!("/?{list}")).reuse, reuse, "{list}");
        }
        for (value, chunks) in [("0", Chunks::None), ("-1", Chunks::None), ("1", Chunks::Large), ("2", Chunks::Bytes)] {
            assert_eq!(read(&format!("/?k={value}")).chunks, chunks, "{value}");
        }
    }

    #[test]
    fn an_empty_list_asks_for_help() {
        for (target, asks) in
            [("/?", true), ("/x?", true), ("/?s=1&?", true), ("/", false), ("/?s", false), ("", false)]
        {
            assert_eq!(asks_for_help(target.as_bytes()), asks, "{target}");
        }
    }
}
