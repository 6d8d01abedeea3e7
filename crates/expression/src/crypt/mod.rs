//! Password hashes of crypt(3) (configuration manual, section 12.2): parsing, and verification of a password. Most
//! formats are slow on purpose. Must never be called on a worker, and never reveal a password or how much of a wrong
//! one matched.

mod bcrypt;
mod des;
mod md5;
mod sha;

use std::fmt;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// A password hash.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash {
    text: Box<str>,
    form: Form,
}

/// The format of a password hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Traditional: 25 rounds of DES.
    Des,
    /// `_`: BSDi's DES with a configurable number of rounds.
    Bsdi,
    /// `$1$`.
    Md5,
    /// `$5$`.
    Sha256,
    /// `$6$`.
    Sha512,
    /// `$2a$`, `$2b$`, `$2y$`.
    Bcrypt,
    /// `$y$`.
    Yescrypt,
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hidden({:?})", self.form)
    }
}

/// Why no password matches a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    /// A format that Debian's crypt(3) supports and Weir does not.
    Unsupported(&'static str),
    /// Not the output of any format: HAProxy always rejects such a user.
    Never,
}

/// Maximum memory of one verification in bytes: many times the default of Debian's `passwd`.
const MOST_MEMORY: u64 = 1 << 30;

/// Unsupported formats, by prefix.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("$gy$", "gost-yescrypt"),
    ("$7$", "scrypt"),
    ("$sm3$", "sm3crypt"),
    ("$sha1$", "sha1crypt"),
    ("$md5", "SunMD5"),
    ("$3$", "NT"),
    ("$2x$", "bcrypt with the old mistake"),
];

impl PasswordHash {
    /// Parses a password hash.
    ///
    /// # Errors
    /// No password can match it.
    pub fn parse(text: &str) -> Result<Self, Unusable> {
        let form = match text.as_bytes() {
            [b'$', b'1', b'$', ..] => Form::Md5,
            [b'$', b'5', b'$', ..] => Form::Sha256,
            [b'$', b'6', b'$', ..] => Form::Sha512,
            [b'$', b'2', b'a' | b'b' | b'y', b'$', ..] => Form::Bcrypt,
            [b'$', b'y', b'$', ..] => Form::Yescrypt,
            [b'$', ..] => {
                let known = UNSUPPORTED.iter().find(|(start, _)| text.starts_with(start));
                return Err(known.map_or(Unusable::Never, |(_, name)| Unusable::Unsupported(name)));
            }
            [b'_', digits @ ..] if is_digits(digits, 19) => Form::Bsdi,
            digits if is_digits(digits, 13) => Form::Des,
            _ => return Err(Unusable::Never),
        };
        if form == Form::Yescrypt && memory(text).is_none_or(|memory| memory > MOST_MEMORY) {
            return Err(Unusable::Never);
        }
        Ok(Self { text: text.into(), form })
    }

    /// The hash as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// About how long crypt(3) takes for a password hidden in this way, on a processor of 3 GHz. It is not measured, so that
    /// one configuration is judged alike wherever and whenever it is read.
    pub fn estimated_time(&self) -> Duration {
        let rounds = |nanos: u64, count: u64| Duration::from_nanos(nanos.saturating_mul(count));
        match self.form {
            Form::Des | Form::Md5 => Duration::ZERO,
            Form::Bsdi => rounds(340, des::count(&self.text).unwrap_or(0)),
            Form::Sha256 => rounds(400, u64::from(sha::rounds(&self.text))),
            Form::Sha512 => rounds(470, u64::from(sha::rounds(&self.text))),
            Form::Bcrypt => rounds(110_000, 1_u64.checked_shl(bcrypt::cost(&self.text).unwrap_or(0)).unwrap_or(0)),
            // It walks through its memory.
            Form::Yescrypt => rounds(2_700, memory(&self.text).unwrap_or(0) / 1_024),
        }
    }

    /// Whether that is the password. Takes its time.
    pub fn is(&self, password: &[u8]) -> bool {
        // crypt(3) reads a password up to the first zero byte.
        let end = password.iter().position(|byte| *byte == 0).unwrap_or(password.len());
        let password = &password[..end];
        let found = match self.form {
            Form::Des => des::traditional(password, &self.text),
            Form::Bsdi => des::extended(password, &self.text),
            Form::Md5 => md5::crypt(password, &self.text),
            Form::Sha256 => sha::crypt::<sha2::Sha256>(password, &self.text),
            Form::Sha512 => sha::crypt::<sha2::Sha512>(password, &self.text),
            Form::Bcrypt => bcrypt::crypt(password, &self.text),
            Form::Yescrypt => {
                use yescrypt::PasswordVerifier;
                return yescrypt::Yescrypt::default().verify_password(password, &*self.text).is_ok();
            }
        };
        found.is_some_and(|found| found.as_bytes().ct_eq(self.text.as_bytes()).into())
    }
}

/// Memory in bytes that yescrypt needs with the parameters of that hash.
fn memory(text: &str) -> Option<u64> {
    let parameters: yescrypt::Params = text.split('$').nth(2)?.parse().ok()?;
    parameters.n().checked_mul(u64::from(parameters.r()).checked_mul(128)?)
}

/// The base64 alphabet of most formats.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Whether the text is exactly `count` digits.
fn is_digits(text: &[u8], count: usize) -> bool {
    text.len() == count && text.iter().all(|byte| DIGITS.contains(byte))
}

fn digit(byte: u8) -> Option<u32> {
    DIGITS.iter().position(|digit| *digit == byte).map(|at| at as u32)
}

/// Appends `count` digits of a number, the lowest first.
fn put_digits(out: &mut String, mut number: u32, count: usize) {
    for _ in 0..count {
        out.push(char::from(DIGITS[(number & 63) as usize]));
        number >>= 6;
    }
}

/// The salt at the start of the text: up to the next `$`, at most `most` bytes.
fn salt(text: &str, most: usize) -> Option<&str> {
    let end = text.bytes().position(|byte| byte == b'$').unwrap_or(text.len());
    text.get(..end.min(most))
}

#[cfg(test)]
mod tests;
