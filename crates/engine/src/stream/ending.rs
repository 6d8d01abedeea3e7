//! The end that a rule puts to a message: the answer, its manner, and how it is logged. Must never send an answer.

use conn::h1::prepared;
use policy::rule::Reply;

use crate::decoding::ACCEPTED;
use crate::stream_state::{Cause, Outcome, Phase};

/// What a rule makes of a message.
pub struct Ending<'r> {
    /// How it is logged.
    pub outcome: Outcome,
    /// The answer's status; 0: none is given, and the connection ends.
    pub status: u16,
    /// The whole answer as text; `None`: the proxy's page for that status.
    pub text: Option<Reply<'r>>,
    /// How it comes.
    pub manner: Manner,
    /// A rule has refused the message.
    pub denied: bool,
    /// A rule could not do what it had to.
    pub failed: bool,
    /// A rule asks the client who it is.
    pub challenged: bool,
}

impl Ending<'_> {
    /// For who keeps it longer than the rule can be borrowed.
    pub fn into_owned(self) -> Ending<'static> {
        Ending { text: self.text.map(Reply::into_owned), ..self }
    }

    /// An answer of a server that does not pass: the client gets the proxy's page for that status.
    pub fn refused(status: u16) -> Self {
        let outcome = Outcome::new(Cause::Proxy, Phase::Headers);
        Self { outcome, status, text: None, manner: Manner::Prompt, denied: true, failed: false, challenged: false }
    }
}

impl Ending<'static> {
    /// A script gives this answer.
    pub fn given(phase: Phase, status: u16, text: Vec<u8>) -> Self {
        let (outcome, text) = (Outcome::new(Cause::Local, phase), Some(Reply::new(text)));
        Self { outcome, status, text, manner: Manner::Prompt, denied: false, failed: false, challenged: false }
    }

    /// A cache answers.
    pub fn cached() -> Self {
        let (outcome, manner) = (Outcome::new(Cause::Local, Phase::Request), Manner::Cached);
        Self { outcome, status: 200, text: None, manner, denied: false, failed: false, challenged: false }
    }

    /// No cache answers a client that wants nothing else (RFC 9111, section 5.2.1.7).
    pub fn unsatisfied() -> Self {
        let (outcome, manner) = (Outcome::new(Cause::Local, Phase::Request), Manner::Prompt);
        Self { outcome, status: 504, text: None, manner, denied: false, failed: false, challenged: false }
    }

    /// The content coding of a request's body is not known (RFC 9110, section 15.5.16).
    pub fn unsupported_coding() -> Self {
        let (outcome, manner) = (Outcome::new(Cause::Proxy, Phase::Request), Manner::Prompt);
        let text = Some(Reply::new(prepared::unsupported_coding(ACCEPTED)));
        Self { outcome, status: 415, text, manner, denied: false, failed: false, challenged: false }
    }

    /// The client is forgotten (`silent-drop`).
    pub fn silent(hops: Option<u8>) -> Self {
        let (outcome, manner) = (Outcome::new(Cause::Proxy, Phase::Request), Manner::Silent(hops));
        Self { outcome, status: 0, text: None, manner, denied: true, failed: false, challenged: false }
    }
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// At once.
    Prompt,
    /// After `timeout tarpit`.
    Late,
    /// From a service of that number, which is streamed.
    Streamed(usize),
    /// From a cache, which has found it.
    Cached,
    /// Not at all: the connection ends.
    Never,
    /// Not at all, and the client is not told either; or by a reset that lives so many hops.
    Silent(Option<u8>),
}
