//! The Huffman code of strings in HPACK and QPACK (RFC 7541, appendix B). Owns its table, which is computed from the code lengths
//! alone: codes of equal length are consecutive in the order of their symbols.

/// Length in bits of the code of each byte, and of EOS.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The symbol EOS, which is not permitted in a string.
const END: usize = 256;

const LONGEST: usize = 30;

/// The decoding tables.
struct Code {
    /// The symbols in the order of their codes.
    symbols: [u16; 257],
    /// For each length: the index of its first symbol in that order.
    first_index: [u16; LONGEST + 1],
    /// For each length: the first 30-bit value that does not begin with a code of this length or a shorter one.
    limits: [u32; LONGEST + 1],
    /// The first code of each length, left-aligned in 30 bits.
    starts: [u32; LONGEST + 1],
    /// Indexed by the first eight bits: the symbol and the length of its code, if that is at most eight.
    short: [(u8, u8); 256],
}

static CODE: Code = build();

/// The code of each byte, and its length in bits.
static CODES: [(u32, u8); 256] = codes(&build());

const fn codes(code: &Code) -> [(u32, u8); 256] {
    let mut codes = [(0, 0); 256];
    let mut length = 1;
    while length <= LONGEST {
        let first = code.starts[length] >> (LONGEST - length);
        let (from, until) = (code.first_index[length] as usize, code.first_index_after(length));
        let mut index = from;
        while index < until {
            let symbol = code.symbols[index] as usize;
            if symbol < END {
                codes[symbol] = (first + (index - from) as u32, length as u8);
            }
            index += 1;
        }
        length += 1;
    }
    codes
}

impl Code {
    /// Returns the index of the first symbol whose code is longer.
    const fn first_index_after(&self, length: usize) -> usize {
        if length < LONGEST { self.first_index[length + 1] as usize } else { self.symbols.len() }
    }
}

const fn build() -> Code {
    let mut code = Code {
        symbols: [0; 257],
        first_index: [0; LONGEST + 1],
        limits: [0; LONGEST + 1],
        starts: [0; LONGEST + 1],
        short: [(0, 0); 256],
    };
    let (mut next, mut index, mut length) = (0_u32, 0, 1);
    while length <= LONGEST {
        next <<= 1;
        code.first_index[length] = index as u16;
        code.starts[length] = next << (LONGEST - length);
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                code.symbols[index] = symbol as u16;
                index += 1;
                if length <= 8 {
                    let (from, count) = ((next as usize) << (8 - length), 1 << (8 - length));
                    let mut at = from;
                    while at < from + count {
                        code.short[at] = (symbol as u8, length as u8);
                        at += 1;
                    }
                }
                next += 1;
            }
            symbol += 1;
        }
        code.limits[length] = next << (LONGEST - length);
        length += 1;
    }
    code
}

/// Decodes a string and appends it to `out`, which stays below `most` bytes. `None` if the string is malformed or too
/// long.
pub(crate) fn decode(input: &[u8], out: &mut Vec<u8>, most: usize) -> Option<()> {
    let (mut bits, mut count) = (0_u64, 0_usize);
    let mut rest = input.iter();
    loop {
        while count <= 48 {
            let Some(byte) = rest.next() else { break };
            bits = bits << 8 | u64::from(*byte);
            count += 8;
        }
        if count < 5 {
            break;
        }
        // The next thirty bits, filled with ones: the padding is a prefix of EOS.
        let window = if count >= LONGEST {
            (bits >> (count - LONGEST)) as u32 & 0x3fff_ffff
        } else {
            ((bits << (LONGEST - count)) as u32 | ((1 << (LONGEST - count)) - 1)) & 0x3fff_ffff
        };
        let (symbol, length) = match CODE.short[(window >> (LONGEST - 8)) as usize] {
            (_, 0) => long(window)?,
            (symbol, length) => (usize::from(symbol), usize::from(length)),
        };
        if length > count {
            break;
        }
        if symbol == END || out.len() >= most {
            return None;
        }
        out.push(symbol as u8);
        count -= length;
    }
    // At most seven bits of padding, all ones.
    let padding = bits & ((1 << count) - 1);
    (count < 8 && padding == (1 << count) - 1).then_some(())
}

/// Returns the length of an encoded string in bytes.
#[inline]
pub(crate) fn encoded_length(text: &[u8]) -> usize {
    text.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum::<usize>().div_ceil(8)
}

/// Encodes a string into exactly the space that it needs ([`encoded_length`]); `None` if that is too small.
pub(crate) fn encode(text: &[u8], room: &mut [u8]) -> Option<()> {
    let (mut bits, mut count) = (0_u64, 0_u32);
    let mut room = room.iter_mut();
    for byte in text {
        let (code, length) = CODES[usize::from(*byte)];
        bits = bits << length | u64::from(code);
        count += u32::from(length);
        while count >= 8 {
            count -= 8;
            *room.next()? = (bits >> count) as u8;
        }
    }
    if count > 0 {
        *room.next()? = (bits << (8 - count)) as u8 | ((1 << (8 - count)) - 1);
    }
    Some(())
}

/// Returns the symbol whose code begins a 30-bit window, and the length of the code, which is above eight.
fn long(window: u32) -> Option<(usize, usize)> {
    let length = (9..=LONGEST).find(|length| window < CODE.limits[*length])?;
    let offset = (window - CODE.starts[length]) >> (LONGEST - length);
    let symbol = *CODE.symbols.get(usize::from(CODE.first_index[length]) + offset as usize)?;
    Some((usize::from(symbol), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(text: &[u8]) -> Vec<u8> {
        let mut out = vec![0; encoded_length(text)];
        assert_eq!(super::encode(text, &mut out), Some(()));
        if !out.is_empty() {
            let short = out.len() - 1;
            assert_eq!(super::encode(text, &mut out[..short]), None);
        }
        out
    }

    /// RFC 7541, appendix C.4 and C.6.
    #[test]
    fn strings_of_the_rfc() {
        let rows: &[(&str, &[u8])] = &[
            ("www.example.com", &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]),
            ("no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            ("custom-value", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf]),
            ("302", &[0x64, 0x02]),
            ("", &[]),
        ];
        for (text, bytes) in rows {
            let mut out = Vec::new();
            assert_eq!(decode(bytes, &mut out, 100), Some(()), "{text}");
            assert_eq!(out, text.as_bytes());
            assert_eq!(encode(text.as_bytes()), *bytes);
        }
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
        let mut out = Vec::new();
        assert_eq!(decode(&encode(&all), &mut out, 512), Some(()));
        assert_eq!(out, all);
        assert_eq!(decode(&encode(&all), &mut Vec::new(), 511), None);
    }

    #[test]
    fn what_is_no_string_is_refused() {
        // Padding of zeros, of a whole byte, and EOS itself.
        for bytes in [&[0x00][..], &[0x64, 0x02, 0xff], &[0xff, 0xff, 0xff, 0xff], &[0xff]] {
            assert_eq!(decode(bytes, &mut Vec::new(), 100), None, "{bytes:x?}");
        }
    }
}
