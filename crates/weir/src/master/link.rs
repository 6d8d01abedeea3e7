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
}

impl FromWorker {
    /// As it is sent.
    pub fn encode(&self) -> Vec<u8> {
        let (mark, text) = match self {
            Self::Serves(version) => (b'R', version),
            Self::Said(text) => (b'L', text),
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
            _ => None,
        }
    }
}

/// What a master says: a connection to the worker's runtime API comes with it.
pub const CONNECTION: &[u8] = b"C";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_arrive_as_they_were_meant() {
        for message in [FromWorker::Serves("1.0".into()), FromWorker::Said("[NOTICE] x\n".into())] {
            assert_eq!(FromWorker::decode(&message.encode()), Some(message));
        }
        assert_eq!([FromWorker::decode(b""), FromWorker::decode(b"Zx")], [None, None]);
        assert_eq!(FromWorker::Said("x".repeat(LONGEST * 2)).encode().len(), LONGEST);
    }
}
