//! `$1$`: a thousand rounds of MD5. Must never judge its result.

use super::{put_digits, salt};
use md5::{Digest, Md5};

/// Hashes a password with the salt of an existing hash.
pub(super) fn crypt(password: &[u8], like: &str) -> Option<String> {
    let salt = salt(like.strip_prefix("$1$")?, 8)?;
    let once = Md5::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut start = Md5::new().chain_update(password).chain_update("$1$").chain_update(salt);
    for at in (0..password.len()).step_by(16) {
        start.update(&once[..(password.len() - at).min(16)]);
    }
    let mut length = password.len();
    while length > 0 {
        let byte = if length & 1 == 1 { 0 } else { password[0] };
        start.update([byte]);
        length >>= 1;
    }
    let mut digest = start.finalize();
    for round in 0..1000 {
        let mut next = Md5::new();
        if round & 1 == 1 {
            next.update(password)
        } else {
            next.update(digest)
        }
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        if round & 1 == 1 {
            next.update(digest)
        } else {
            next.update(password)
        }
        digest = next.finalize();
    }
    let mut out = format!("$1${salt}$");
    for [high, middle, low] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        put_digits(&mut out, u32::from_be_bytes([0, digest[high], digest[middle], digest[low]]), 4);
    }
    put_digits(&mut out, u32::from(digest[11]), 2);
    Some(out)
}
