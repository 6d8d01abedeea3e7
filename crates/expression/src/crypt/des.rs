//! The DES formats (FIPS 46-3), in which a salt modifies the expansion: the traditional one and BSDi's. Must never
//! judge its result, nor encrypt anything else.

use super::{DIGITS, digit};

/// The S-boxes, each in the order of its six input bits.
#[rustfmt::skip]
const BOXES: [[u8; 64]; 8] = [
    [14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7, 0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12, 11, 9, 5, 3, 8,
     4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0, 15, 12, 8, 2, 4, 9, 1, 7, 5, 11, 3, 14, 10, 0, 6, 13],
    [15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10, 3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1, 10, 6, 9, 11, 5,
     0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15, 13, 8, 10, 1, 3, 15, 4, 2, 11, 6, 7, 12, 0, 5, 14, 9],
    [10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8, 13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5, 14, 12, 11, 15, 1,
     13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7, 1, 10, 13, 0, 6, 9, 8, 7, 4, 15, 14, 3, 11, 5, 2, 12],
    [7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15, 13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2, 12, 1, 10, 14, 9,
     10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4, 3, 15, 0, 6, 10, 1, 13, 8, 9, 4, 5, 11, 12, 7, 2, 14],
    [2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9, 14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15, 10, 3, 9, 8, 6,
     4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14, 11, 8, 12, 7, 1, 14, 2, 13, 6, 15, 0, 9, 10, 4, 5, 3],
    [12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11, 10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13, 14, 0, 11, 3, 8,
     9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6, 4, 3, 2, 12, 9, 5, 15, 10, 11, 14, 1, 7, 6, 0, 8, 13],
    [4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1, 13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5, 12, 2, 15, 8, 6,
     1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2, 6, 11, 13, 8, 1, 4, 10, 7, 9, 5, 0, 15, 14, 2, 3, 12],
    [13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7, 1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6, 11, 0, 14, 9, 2,
     7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8, 2, 1, 14, 7, 4, 10, 8, 13, 15, 12, 9, 0, 3, 5, 6, 11],
];

#[rustfmt::skip]
const INITIAL: [u8; 64] = [
    58, 50, 42, 34, 26, 18, 10, 2, 60, 52, 44, 36, 28, 20, 12, 4, 62, 54, 46, 38, 30, 22, 14, 6, 64, 56, 48, 40, 32, 24, 16, 8,
    57, 49, 41, 33, 25, 17, 9, 1, 59, 51, 43, 35, 27, 19, 11, 3, 61, 53, 45, 37, 29, 21, 13, 5, 63, 55, 47, 39, 31, 23, 15, 7,
];

#[rustfmt::skip]
const FINAL: [u8; 64] = [
    40, 8, 48, 16, 56, 24, 64, 32, 39, 7, 47, 15, 55, 23, 63, 31, 38, 6, 46, 14, 54, 22, 62, 30, 37, 5, 45, 13, 53, 21, 61, 29,
    36, 4, 44, 12, 52, 20, 60, 28, 35, 3, 43, 11, 51, 19, 59, 27, 34, 2, 42, 10, 50, 18, 58, 26, 33, 1, 41, 9, 49, 17, 57, 25,
];

#[rustfmt::skip]
const CHOICE_1: [u8; 56] = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36,
    63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4,
];

#[rustfmt::skip]
const CHOICE_2: [u8; 48] = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2,
    41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
];

#[rustfmt::skip]
const SPREAD: [u8; 32] =
    [16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9, 19, 13, 30, 6, 22, 11, 4, 25];

const SHIFTS: [u32; 16] = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1];

/// The outputs of each S-box for its six input bits, permuted into the word.
static SPREAD_BOXES: [[u32; 64]; 8] = spread_boxes();

const fn spread_boxes() -> [[u32; 64]; 8] {
    let mut spread = [[0; 64]; 8];
    let mut at = 0;
    while at < 8 {
        let mut six = 0;
        while six < 64 {
            // The first and the last bit select the row, those between them the column.
            let place = (six >> 5 & 1) << 5 | (six & 1) << 4 | (six >> 1 & 15);
            let word = (BOXES[at][place] as u32) << (28 - 4 * at);
            let mut bit = 0;
            while bit < 32 {
                spread[at][six] |= (word >> (32 - SPREAD[bit]) & 1) << (31 - bit);
                bit += 1;
            }
            six += 1;
        }
        at += 1;
    }
    spread
}

/// Permutes the bits of a number of `width` bits; 1 is the highest.
fn permute(number: u64, width: u32, order: &[u8]) -> u64 {
    order.iter().fold(0, |out, bit| out << 1 | (number >> (width - u32::from(*bit)) & 1))
}

/// The keys of the sixteen rounds, in two halves of 24 bits.
type Schedule = [(u32, u32); 16];

fn schedule(key: u64) -> Schedule {
    let chosen = permute(key, 64, &CHOICE_1);
    let (mut left, mut right) = ((chosen >> 28) as u32, (chosen & 0xfff_ffff) as u32);
    SHIFTS.map(|shift| {
        let turn = |half: u32| (half << shift | half >> (28 - shift)) & 0xfff_ffff;
        (left, right) = (turn(left), turn(right));
        let round = permute(u64::from(left) << 28 | u64::from(right), 56, &CHOICE_2);
        ((round >> 24) as u32, (round & 0xff_ffff) as u32)
    })
}

/// Encrypts a block `count` times, without the initial and the final permutation.
fn encrypt(schedule: &Schedule, salt: u32, count: u32, block: u64) -> u64 {
    let (mut left, mut right) = ((block >> 32) as u32, block as u32);
    for _ in 0..count {
        for (first, second) in schedule {
            let wide = u64::from(right & 1) << 33 | u64::from(right) << 1 | u64::from(right >> 31);
            let six = |at: u32| (wide >> (28 - 4 * at) & 63) as u32;
            let high = six(0) << 18 | six(1) << 12 | six(2) << 6 | six(3);
            let low = six(4) << 18 | six(5) << 12 | six(6) << 6 | six(7);
            let swapped = (high ^ low) & salt;
            let (high, low) = (high ^ swapped ^ first, low ^ swapped ^ second);
            let mut mixed = 0;
            for at in 0..4 {
                mixed |= SPREAD_BOXES[at][(high >> (18 - 6 * at) & 63) as usize];
                mixed |= SPREAD_BOXES[at + 4][(low >> (18 - 6 * at) & 63) as usize];
            }
            (left, right) = (right, left ^ mixed);
        }
        (left, right) = (right, left);
    }
    u64::from(left) << 32 | u64::from(right)
}

/// A key from up to eight bytes of a password, seven bits each.
fn key(password: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(password).for_each(|(byte, of)| *byte = of << 1);
    u64::from_be_bytes(bytes)
}

/// A salt as a mask for the expansion: its lowest bit becomes the first.
fn salt_bits(salt: u32) -> u32 {
    salt.reverse_bits() >> 8
}

/// Decodes digits, the lowest first.
fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().rev().try_fold(0, |number, byte| Some(number << 6 | digit(*byte)?))
}

fn finish(mut out: String, block: u64) -> String {
    let bits = u128::from(permute(block, 64, &FINAL)) << 2;
    for at in (0..11).rev() {
        out.push(char::from(DIGITS[(bits >> (6 * at) & 63) as usize]));
    }
    out
}

/// Hashes a password with the salt of an existing hash: its first two digits.
pub(super) fn traditional(password: &[u8], like: &str) -> Option<String> {
    let salt = like.get(..2)?;
    let bits = salt_bits(number(salt.as_bytes())?);
    Some(finish(salt.to_owned(), encrypt(&schedule(key(password)), bits, 25, 0)))
}

/// The rounds that a hidden password says, of the form that begins with `_`.
pub(super) fn count(text: &str) -> Option<u64> {
    number(text.get(1..5)?.as_bytes()).map(u64::from)
}

/// Hashes a password with the rounds and the salt of a hash of the form `_` + four digits of rounds + four digits of
/// salt.
pub(super) fn extended(password: &[u8], like: &str) -> Option<String> {
    let (start, count, salt) = (like.get(..9)?, like.get(1..5)?, like.get(5..9)?);
    let count = number(count.as_bytes())?.max(1);
    let bits = salt_bits(number(salt.as_bytes())?);
    let (first, rest) = password.split_at(password.len().min(8));
    let mut folded = key(first);
    for part in rest.chunks(8) {
        let block = permute(folded, 64, &INITIAL);
        folded = permute(encrypt(&schedule(folded), 0, 1, block), 64, &FINAL) ^ key(part);
    }
    Some(finish(start.to_owned(), encrypt(&schedule(folded), bits, count, 0)))
}
