//! Messages between a master and a worker. Stable across versions: after an upgrade the two may be different programs.
//! Must never do more than encode and decode.

/// Maximum length of a message in bytes; longer ones are truncated.
pub const LONGEST: usize = 16 * 1024;

/// Messages of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromWorker {
    /// It serves; contains its version.
    Serves(String),
    /// Its output on standard error during the start.
    Said(String),
    /// It supports a reload in place ([`RELOAD`]).
    Reloads {
        /// Whether it needs a reader, because it cannot read files itself.
        needs_reader: bool,
    },
    /// It serves the new configuration; contains the changes.
    Adopted(String),
    /// The new configuration needs a new worker; contains the reason.
    Classic(String),
    /// The new configuration is invalid; the errors were reported.
    Refused,
}

impl FromWorker {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let (mark, text) = match self {
            Self::Serves(version) => (b'R', version.as_str()),
            Self::Said(text) => (b'L', text.as_str()),
            Self::Reloads { needs_reader: false } => (b'P', ""),
            Self::Reloads { needs_reader: true } => (b'P', READER),
            Self::Adopted(text) => (b'A', text.as_str()),
            Self::Classic(why) => (b'N', why.as_str()),
            Self::Refused => (b'F', ""),
        };
        let mut bytes = Vec::with_capacity(1 + text.len());
        bytes.push(mark);
        bytes.extend_from_slice(&text.as_bytes()[..text.len().min(LONGEST - 1)]);
        bytes
    }

    /// Decodes a message; `None`: unknown, for example of a later version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (mark, text) = bytes.split_first()?;
        let text = String::from_utf8_lossy(text).into_owned();
        match mark {
            b'R' => Some(Self::Serves(text)),
            b'L' => Some(Self::Said(text)),
            b'P' => Some(Self::Reloads { needs_reader: text == READER }),
            b'A' => Some(Self::Adopted(text)),
            b'N' => Some(Self::Classic(text)),
            b'F' => Some(Self::Refused),
            _ => None,
        }
    }
}

/// Message of the master with a connection to the worker's runtime API.
pub const CONNECTION: &[u8] = b"C";

/// Added by a worker that needs a reader.
const READER: &str = "reader";

/// Message of the master: read the files again. Includes a stream to a reader if the worker needs one. Only sent to
/// workers that have sent [`FromWorker::Reloads`].
pub const RELOAD: &[u8] = b"P";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_arrive_as_they_were_meant() {
        let words = ["1.0", "[NOTICE] x\n", "rules of proxy web", "the threads are different"].map(str::to_owned);
        let [version, said, changes, why] = words;
        let messages = [FromWorker::Serves(version), FromWorker::Said(said)];
        let reloads = [false, true].map(|needs_reader| FromWorker::Reloads { needs_reader });
        let verdicts = [FromWorker::Adopted(changes), FromWorker::Classic(why), FromWorker::Refused];
        for message in messages.into_iter().chain(reloads).chain(verdicts) {
            assert_eq!(FromWorker::decode(&message.encode()), Some(message));
        }
        assert_eq!([FromWorker::decode(b""), FromWorker::decode(b"Zx")], [None, None]);
        assert_eq!(FromWorker::Said("x".repeat(LONGEST * 2)).encode().len(), LONGEST);
    }
}
