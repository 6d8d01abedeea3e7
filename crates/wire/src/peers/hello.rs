//! The handshake: the hello of the connecting peer and the status that answers it. Must never accept a line without an
//! end.

use std::fmt::Write as _;

/// Maximum length of the three lines in bytes.
const LONGEST: usize = 1_024;

/// The hello of the connecting peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Minor version of the protocol: 0 or 1; with 1, definitions contain the lifetime of entries.
    pub minor: u32,
    /// Name of the peer that is connected to.
    pub remote: String,
    /// Name of the connecting peer.
    pub local: String,
    /// Process ID of the connecting peer.
    pub pid: u32,
}

/// The status that answers a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    Succeeded = 200,
    TryAgain = 300,
    Protocol = 501,
    Version = 502,
    LocalName = 503,
    RemoteName = 504,
}

impl Status {
    /// Returns the status line.
    pub fn line(self) -> [u8; 4] {
        let number = self as u16;
        [b'0' + (number / 100) as u8, b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8, b'\n']
    }

    /// Parses a status line without its line end.
    pub fn of_line(line: &[u8]) -> Option<Self> {
        Some(match line {
            b"200" => Self::Succeeded,
            b"300" => Self::TryAgain,
            b"501" => Self::Protocol,
            b"502" => Self::Version,
            b"503" => Self::LocalName,
            b"504" => Self::RemoteName,
            _ => return None,
        })
    }
}

/// Returns the first line without its line end, and the number of bytes consumed; `None` if it is incomplete.
///
/// # Errors
/// The line is longer than any line of the protocol.
pub fn read_line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Status> {
    match bytes.iter().take(LONGEST).position(|byte| *byte == b'\n') {
        Some(end) => Ok(Some((bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]), end + 1))),
        None if bytes.len() >= LONGEST => Err(Status::Protocol),
        None => Ok(None),
    }
}

impl Hello {
    /// Appends the three lines.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut text = String::new();
        let _ = write!(text, "HAProxyS 2.{}\n{}\n{} {} 1\n", self.minor, self.remote, self.local, self.pid);
        out.extend_from_slice(text.as_bytes());
    }

    /// Parses a hello at the start of `bytes`; returns it and the number of bytes consumed, or `None` if it is
    /// incomplete.
    ///
    /// # Errors
    /// The status to send to the peer.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, Status> {
        let mut at = 0;
        let mut lines = [""; 3];
        for line in &mut lines {
            let Some((found, length)) = read_line(&bytes[at..])? else { return Ok(None) };
            *line = std::str::from_utf8(found).map_err(|_| Status::Protocol)?;
            at += length;
        }
        let (protocol, version) = lines[0].split_once(' ').ok_or(Status::Protocol)?;
        if protocol != "HAProxyS" {
            return Err(Status::Protocol);
        }
        let (major, minor) = version.split_once('.').ok_or(Status::Version)?;
        let minor = minor.parse().map_err(|_| Status::Version)?;
        if major != "2" {
            return Err(Status::Version);
        }
        let mut words = lines[2].split(' ');
        let local = words.next().filter(|name| !name.is_empty()).ok_or(Status::Protocol)?;
        let pid = words.next().and_then(|number| number.parse().ok()).ok_or(Status::Protocol)?;
        Ok(Some((Self { minor, remote: lines[1].to_owned(), local: local.to_owned(), pid }, at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_of_haproxy_is_read_and_written_the_same() {
        let bytes = b"HAProxyS 2.1\na\nb 29376 1\n";
        let hello = Hello { minor: 1, remote: "a".to_owned(), local: "b".to_owned(), pid: 29_376 };
        assert_eq!(Hello::decode(bytes), Ok(Some((hello.clone(), bytes.len()))));
        let mut out = Vec::new();
        hello.encode(&mut out);
        assert_eq!(out, bytes);
        for end in 0..bytes.len() {
            assert_eq!(Hello::decode(&bytes[..end]), Ok(None));
        }
    }

    #[test]
    fn what_is_no_hello_is_told_apart() {
        for (text, status) in [
            ("GET / HTTP/1.1\na\nb 1 1\n", Status::Protocol),
            ("HAProxyS\na\nb 1 1\n", Status::Protocol),
            ("HAProxyS 1.0\na\nb 1 1\n", Status::Version),
            ("HAProxyS 2.x\na\nb 1 1\n", Status::Version),
            ("HAProxyS 2.0\na\nb\n", Status::Protocol),
        ] {
            assert_eq!(Hello::decode(text.as_bytes()), Err(status), "{text}");
        }
        assert_eq!(Hello::decode(&[b'a'; LONGEST]), Err(Status::Protocol));
    }

    #[test]
    fn a_status_is_a_line() {
        for status in [Status::Succeeded, Status::TryAgain, Status::Protocol, Status::Version, Status::RemoteName] {
            assert_eq!(Status::of_line(&status.line()[..3]), Some(status));
        }
        assert_eq!((Status::of_line(b"404"), Status::LocalName.line()), (None, *b"503\n"));
    }
}
