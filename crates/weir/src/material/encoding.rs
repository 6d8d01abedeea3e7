//! Encoding of a record for the transfer between processes, over a pair of UNIX streams. Must never use more memory
//! than [`LARGEST`] for received data.
//!
//! Each part is a tag, a length of four bytes and the contents. `R` begins the record and contains the version of the
//! program; `Q` is a query, followed by its answer: a `W` for each word, then `.`, or `E` with the system's error
//! number and its text. `X` ends the record. `N` instead of any part contains the reason why there is no record.

use super::{Answer, Record};
use std::io::{self, Read, Write};
use zeroize::Zeroizing;

/// Maximum size of a record in bytes: the configuration, certificates, maps and all other input of compiling.
pub const LARGEST: u64 = 512 << 20;

/// Reasons why no record was received.
#[derive(Debug)]
pub enum Unsent {
    /// Reported by the reader.
    Refused(String),
    /// The data is invalid or truncated.
    Broken,
}

impl From<io::Error> for Unsent {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// Writes a part.
pub fn send(to: &mut impl Write, mark: u8, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    to.write_all(&[mark])?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(bytes)
}

/// Reads a part; `left` is the number of bytes that may still be received.
pub fn next(from: &mut impl Read, left: &mut u64) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let [mark, length @ ..] = head;
    let length = u64::from(u32::from_be_bytes(length));
    *left = left.checked_sub(length + 5).ok_or(io::ErrorKind::InvalidData)?;
    let mut bytes = Zeroizing::new(vec![0; usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?]);
    from.read_exact(&mut bytes)?;
    Ok((mark, std::mem::take(&mut *bytes)))
}

impl Record {
    /// Returns the encoded size in bytes.
    pub fn length(&self) -> u64 {
        let part = |bytes: &[u8]| bytes.len() as u64 + 5;
        let of = |answer: &Answer| match answer {
            Answer::Found(words) => words.iter().map(|word| part(word)).sum::<u64>() + 5,
            Answer::Failed(_, why) => part(why.as_bytes()) + 4,
        };
        self.0.iter().map(|(question, answer)| part(question) + of(answer)).sum()
    }

    /// Sends the entire record.
    pub fn send(&self, to: &mut impl Write, version: &str) -> io::Result<()> {
        send(to, b'R', version.as_bytes())?;
        for (question, answer) in &self.0 {
            send(to, b'Q', question)?;
            match answer {
                Answer::Found(words) => {
                    words.iter().try_for_each(|word| send(to, b'W', word))?;
                    send(to, b'.', b"")?;
                }
                Answer::Failed(number, why) => {
                    let text = [&number.to_be_bytes(), why.as_bytes()].concat();
                    send(to, b'E', &text)?;
                }
            }
        }
        send(to, b'X', b"")
    }
}

/// Receives a record.
///
/// # Errors
/// See [`Unsent`]; also if the sender has another version of the program.
pub fn receive(from: &mut impl Read, version: &str) -> Result<Record, Unsent> {
    let mut left = LARGEST;
    match next(from, &mut left)? {
        (b'R', theirs) if theirs == version.as_bytes() => {}
        (b'R', _) => return Err(Unsent::Refused("the program is another one".to_owned())),
        (b'N', why) => return Err(Unsent::Refused(String::from_utf8_lossy(&why).into_owned())),
        _ => return Err(Unsent::Broken),
    }
    let mut record = Record::default();
    loop {
        let question = match next(from, &mut left)? {
            (b'Q', question) => question,
            (b'X', _) => return Ok(record),
            _ => return Err(Unsent::Broken),
        };
        let mut words = Vec::new();
        let answer = loop {
            match next(from, &mut left)? {
                (b'W', word) => words.push(word),
                (b'.', _) => break Answer::Found(words),
                (b'E', text) => {
                    let (number, why) = text.split_first_chunk().ok_or(Unsent::Broken)?;
                    break Answer::Failed(i32::from_be_bytes(*number), String::from_utf8_lossy(why).into_owned());
                }
                _ => return Err(Unsent::Broken),
            }
        };
        record.0.insert(question, answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let mut record = Record::default();
        record.0.insert(b"Fa\0".to_vec(), Answer::Found(vec![b"content".to_vec(), Vec::new()]));
        record.0.insert(b"Fb\0".to_vec(), Answer::Failed(2, "No such file or directory".to_owned()));
        record.0.insert(b"U\0".to_vec(), Answer::Found(Vec::new()));
        record
    }

    #[test]
    fn a_record_arrives_as_it_was_sent() {
        let mut bytes = Vec::new();
        record().send(&mut bytes, "1").expect("room");
        assert_eq!(bytes.len() as u64, record().length() + 5 + 1 + 5);
        assert_eq!(receive(&mut &bytes[..], "1").expect("whole"), record());
        assert!(
            matches!(receive(&mut &bytes[..], "2"), Err(Unsent::Refused(why)) if why == "the program is another one")
        );
        for length in 0..bytes.len() {
            assert!(matches!(receive(&mut &bytes[..length], "1"), Err(Unsent::Broken)), "{length}");
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let mut huge = vec![b'R'];
        huge.extend(u32::MAX.to_be_bytes());
        assert!(matches!(receive(&mut &huge[..], "1"), Err(Unsent::Broken)));
        let mut refusal = Vec::new();
        send(&mut refusal, b'N', b"too large").expect("room");
        assert!(matches!(receive(&mut &refusal[..], "1"), Err(Unsent::Refused(why)) if why == "too large"));
        assert!(matches!(receive(&mut &b"Z\0\0\0\0"[..], "1"), Err(Unsent::Broken)));
    }
}
