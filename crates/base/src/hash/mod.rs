//! The hash functions of HAProxy's `hash-type` and of its converters, with its final avalanche.
//!
//! They spread load and must return exactly HAProxy's numbers; none of them may be relied on against an attacker.

mod avalanche;
mod crc32;
mod crc32c;
mod djb2;
mod sdbm;
mod wt6;
mod xxh32;

pub use avalanche::avalanche;
pub use crc32::crc32;
pub use crc32c::{crc32c, extend_crc32c};
pub use djb2::djb2;
pub use sdbm::sdbm;
pub use wt6::wt6;
pub use xxh32::xxh32;

#[cfg(test)]
mod tests {
    use super::*;

    type Function = fn(&[u8]) -> u32;

    /// Results of HAProxy 2.6 for `%[url,<name>]` and `%[url,<name>(1)]`.
    const ROWS: &[(&str, Function, &str, u32, u32)] = &[
        ("crc32", crc32, "/a", 1_768_979_292, 2_112_193_429),
        ("crc32", crc32, "/abc", 326_170_788, 2_375_596_333),
        ("crc32", crc32, "/the/quick/brown/fox/jumps/over/0123456789", 2_654_045_391, 639_963_715),
        ("djb2", djb2, "/a", 5_861_557, 3_623_408_593),
        ("djb2", djb2, "/abc", 2_088_271_610, 1_563_166_642),
        ("djb2", djb2, "/the/quick/brown/fox/jumps/over/0123456789", 602_385_273, 825_510_152),
        ("sdbm", sdbm, "/a", 3_083_250, 1_743_195_586),
        ("sdbm", sdbm, "/abc", 3_135_654_771, 2_611_440_265),
        ("sdbm", sdbm, "/the/quick/brown/fox/jumps/over/0123456789", 1_114_901_582, 1_705_818_164),
        ("wt6", wt6, "/a", 1_404_582_375, 652_714_202),
        ("wt6", wt6, "/abc", 4_175_322_074, 2_702_208_831),
        ("wt6", wt6, "/the/quick/brown/fox/jumps/over/0123456789", 2_531_774_125, 737_432_714),
    ];

    #[test]
    fn every_function_gives_the_numbers_of_haproxy() {
        for (name, function, text, plain, mixed) in ROWS {
            let hash = function(text.as_bytes());
            assert_eq!(hash, *plain, "{name} of {text}");
            assert_eq!(avalanche(hash), *mixed, "{name} of {text}, with avalanche");
        }
    }
}
