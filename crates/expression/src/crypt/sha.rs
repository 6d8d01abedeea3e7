//! `$5$` and `$6$`: thousands of rounds of SHA-2 (Drepper's specification of 2008). Must never judge its result.

use super::{put_digits, salt};
use sha2::Digest;

/// Default number of rounds.
const USUAL: u32 = 5000;

/// The rounds that a hidden password says; what is wrong with them counts as none.
pub(super) fn rounds(text: &str) -> u32 {
    let Some(written) = text.get(3..).and_then(|rest| rest.strip_prefix("rounds=")) else { return USUAL };
    let number = written.split_once('$').and_then(|(number, _)| number.parse().ok());
    number.filter(|rounds| (1000..=999_999_999).contains(rounds)).unwrap_or(0)
}

/// Hides a password with the salt and the rounds of a hidden one.
pub(super) fn crypt<D: Digest + Clone>(password: &[u8], like: &str) -> Option<String> {
    let (start, mut rest) = like.split_at_checked(3)?;
    let (mut rounds, mut written) = (USUAL, "");
    if let Some(behind) = rest.strip_prefix("rounds=") {
        let (number, behind) = behind.split_once('$')?;
        rounds = number.parse().ok().filter(|rounds| (1000..=999_999_999).contains(rounds))?;
        if number != rounds.to_string() {
            return None;
        }
        (written, rest) = (number, behind);
    }
    let salt = salt(rest, 16)?;
    let digest = rounds_of::<D>(password, salt.as_bytes(), rounds);
    let mut out = match written {
        "" => format!("{start}{salt}$"),
        number => format!("{start}rounds={number}${salt}$"),
    };
    put(&mut out, &digest);
    Some(out)
}

/// A digest repeated to that length.
fn repeated(digest: &[u8], length: usize) -> Vec<u8> {
    digest.iter().copied().cycle().take(length).collect()
}

fn rounds_of<D: Digest + Clone>(password: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
    let once = D::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut start = D::new().chain_update(password).chain_update(salt);
    start.update(repeated(&once, password.len()));
    let mut length = password.len();
    while length > 0 {
        if length & 1 == 1 {
            start.update(&once)
        } else {
            start.update(password)
        }
        length >>= 1;
    }
    let mut digest = start.finalize();
    let mut of_password = D::new();
    (0..password.len()).for_each(|_| of_password.update(password));
    let password = repeated(&of_password.finalize(), password.len());
    let mut of_salt = D::new();
    (0..16 + usize::from(digest[0])).for_each(|_| of_salt.update(salt));
    let salt = repeated(&of_salt.finalize(), salt.len());
    for round in 0..rounds {
        let mut next = D::new();
        if round & 1 == 1 {
            next.update(&password)
        } else {
            next.update(&digest)
        }
        if round % 3 != 0 {
            next.update(&salt);
        }
        if round % 7 != 0 {
            next.update(&password);
        }
        if round & 1 == 1 {
            next.update(&digest)
        } else {
            next.update(&password)
        }
        digest = next.finalize();
    }
    digest.to_vec()
}

/// Appends the digest in the specified order: three bytes, each a third of the digest apart, in rotating order.
fn put(out: &mut String, digest: &[u8]) {
    let third = digest.len() / 3;
    let byte = |at: usize| u32::from(digest[at]);
    for group in 0..third {
        let places = [group, group + third, group + 2 * third];
        // The order rotates to the right with 32 bytes, to the left with 64.
        let turn = if digest.len() == 32 { (3 - group % 3) % 3 } else { group % 3 };
        let [high, middle, low] = [0, 1, 2].map(|at| places[(at + turn) % 3]);
        put_digits(out, byte(high) << 16 | byte(middle) << 8 | byte(low), 4);
    }
    match digest.len() {
        32 => put_digits(out, byte(31) << 8 | byte(30), 3),
        _ => put_digits(out, byte(63), 2),
    }
}
