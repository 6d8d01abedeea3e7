//! What a master and a worker say to each other over the channel between them. The words are kept from version to
//! version: the two may be different programs after an upgrade. Must never do more than that.

/// Bytes of a message at most; longer ones are cut.
pub const LONGEST: usize = 16 * 1024;

/// What a worker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromWorker {
    /// It serves; this is its version.
    Serves(String),
    /// It has said this on standard error while it started.
    Said(String),
    /// It reads a new configuration when it is told to ([`RELOAD`]).
    Reloads {
        /// It cannot read files: a reader has to do that for it.
        needs_reader: bool,
    },
    /// It serves the new configuration; what has changed.
    Adopted(String),
    /// The new configuration needs a new worker; why.
    Classic(String),
    /// The new configuration cannot be served; why has been said.
    Refused,
}

impl FromWorker {
    /// As it is sent.
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

    /// From what was received; `None` for what a later version may say.
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

/// What a master says: a connection to the worker's runtime API comes with it.
pub const CONNECTION: &[u8] = b"C";

/// What a worker adds that needs a reader.
const READER: &str = "reader";

/// What a master says: the files are to be read again. A stream to a reader comes with it where the worker needs one. It is
/// said to workers that have said [`FromWorker::Reloads`].
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
