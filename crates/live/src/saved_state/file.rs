//! The lines of a state file, version 1: fields separated by blanks, comments after a `#`. Must never retain more of a
//! file than requested, whatever its size.

/// Maximum length of a line including its end, as in HAProxy.
const LONGEST: usize = 1_999;
/// Number of required fields, up to the SRV record.
const FEWEST: usize = 20;
/// Number of known fields.
const MOST: usize = 25;

/// An error in a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileError {
    /// The file is empty.
    Empty,
    /// The first line does not contain version 1.
    Version,
    /// The line of that number, counted after the version, is invalid.
    Corrupted(usize),
}

/// Indexes of the fields in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Backend = 1,
    Server = 3,
    Address = 4,
    Operation = 5,
    Admin = 6,
    Weight = 7,
    InitialWeight = 8,
    Since = 9,
    Status = 10,
    Result = 11,
    Level = 12,
    Check = 13,
    Agent = 14,
    BackendIdWritten = 15,
    ServerIdWritten = 16,
    Name = 17,
    Port = 18,
    Service = 19,
    CheckPort = 21,
    CheckAddress = 22,
    AgentAddress = 23,
    AgentPort = 24,
}

/// The line of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry(Box<[Box<str>]>);

impl Entry {
    pub fn backend(&self) -> &str {
        self.field(Field::Backend)
    }

    pub fn server(&self) -> &str {
        self.field(Field::Server)
    }

    /// Returns a field; those of later versions may be missing, and are empty then.
    pub(super) fn field(&self, field: Field) -> &str {
        self.0.get(field as usize).map_or("", |text| text)
    }
}

/// Returns the lines of the servers that `wanted` (backend, server) selects, in order.
///
/// # Errors
/// The error in the file; nothing of it may be used then.
pub fn entries(text: &[u8], mut wanted: impl FnMut(&str, &str) -> bool) -> Result<Vec<Entry>, FileError> {
    if text.is_empty() {
        return Err(FileError::Empty);
    }
    let (version, mut rest) = line(text).ok_or(FileError::Version)?;
    // Leading blanks and zeros are allowed.
    let version = version.trim_ascii_start();
    if version.is_empty()
        || version[version.len() - 1] != b'1'
        || version[..version.len() - 1].iter().any(|b| *b != b'0')
    {
        return Err(FileError::Version);
    }
    let mut found = Vec::new();
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let (this, behind) = line(rest).ok_or(FileError::Corrupted(number))?;
        rest = behind;
        let this = this.trim_ascii();
        if this.is_empty() || this[0] == b'#' {
            continue;
        }
        let text = std::str::from_utf8(this).ok().filter(|text| !text.contains('\0'));
        let text = text.ok_or(FileError::Corrupted(number))?;
        let fields: Vec<&str> = text.split_ascii_whitespace().take(MOST).collect();
        if fields.len() < FEWEST {
            return Err(FileError::Corrupted(number));
        }
        if wanted(fields[Field::Backend as usize], fields[Field::Server as usize]) {
            found.push(Entry(fields.into_iter().map(Into::into).collect()));
        }
    }
    Ok(found)
}

/// Returns the first line and the rest; `None`: it is too long, or has no end.
fn line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().take(LONGEST).position(|byte| *byte == b'\n')?;
    Some((&text[..end], &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "2 bk 1 s1 127.0.0.1 2 0 11 11 4 1 0 0 6 0 0 0 - 2222 - 0 0 - - 0";

    fn read(text: &[u8]) -> Result<Vec<String>, FileError> {
        let entries = entries(text, |_, server| server != "other")?;
        Ok(entries.iter().map(|entry| format!("{}/{}", entry.backend(), entry.server())).collect())
    }

    #[test]
    fn lines_are_told_from_comments_and_from_what_is_none() {
        let one = || Ok(vec!["bk/s1".to_owned()]);
        let long = |length: usize| format!("1\n#{}\n{LINE}\n", "x".repeat(length - 2));
        let rows: Vec<(String, Result<Vec<String>, FileError>)> = vec![
            (String::new(), Err(FileError::Empty)),
            ("2\n".into(), Err(FileError::Version)),
            ("1".into(), Err(FileError::Version)),
            ("1 \n".into(), Err(FileError::Version)),
            ("1\r\n".into(), Err(FileError::Version)),
            ("11\n".into(), Err(FileError::Version)),
            ("\n1\n".into(), Err(FileError::Version)),
            ("# x\n1\n".into(), Err(FileError::Version)),
            (" 01\n".into(), Ok(Vec::new())),
            ("1\n".into(), Ok(Vec::new())),
            (format!("1\n{LINE}\n"), one()),
            (format!("1\n  {LINE}  \n"), one()),
            (format!("1\n{}\n", LINE.replace(' ', "\t")), one()),
            (format!("1\n{LINE} more and more\n"), one()),
            (format!("1\n# c\n\n \n{LINE}\n"), one()),
            (format!("1\n{LINE}\n{}\n", LINE.replace("s1", "other")), one()),
            (format!("1\n{LINE}"), Err(FileError::Corrupted(1))),
            (format!("1\n# c\n\n{LINE}\na b\n"), Err(FileError::Corrupted(4))),
            (format!("1\n{LINE}\n1\n"), Err(FileError::Corrupted(2))),
            (format!("1\n{}\n", LINE.replace("s1", "s\u{0}1")), Err(FileError::Corrupted(1))),
            (long(LONGEST), one()),
            (long(LONGEST + 1), Err(FileError::Corrupted(1))),
        ];
        for (text, expected) in rows {
            assert_eq!(read(text.as_bytes()), expected, "{:?}", &text[..text.len().min(120)]);
        }
        assert_eq!(read(b"1\n\xff\xfe\n"), Err(FileError::Corrupted(1)));
        assert_eq!(read(&[b'1'; 1 << 20]), Err(FileError::Version));
    }

    #[test]
    fn nineteen_fields_are_too_few() {
        let of = |count: usize| format!("1\n{}\n", LINE.split(' ').take(count).collect::<Vec<_>>().join(" "));
        assert_eq!(read(of(19).as_bytes()), Err(FileError::Corrupted(1)));
        assert_eq!(read(of(20).as_bytes()), Ok(vec!["bk/s1".to_owned()]));
    }
}
