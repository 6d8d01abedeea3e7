//! Ends a message on behalf of a rule: the answer, the manner in which it is sent, and the outcome for the log.
//! Must never send an answer.

use conn::h1::prepared_answer;
use policy::rule::Reply;

use crate::decoding::ACCEPTED;
use crate::stream_state::{Cause, Outcome, Phase};

/// How a rule ends a message.
pub struct Ending<'r> {
    /// Outcome for the log.
    pub outcome: Outcome,
    /// Status of the answer; 0: there is no answer, and the connection ends.
    pub status: u16,
    /// Text of the whole answer; `None`: the proxy's page for that status.
    pub text: Option<Reply<'r>>,
    /// How the answer is sent.
    pub manner: AnswerTiming,
    /// A rule has refused the message.
    pub denied: bool,
    /// A rule could not be performed.
    pub failed: bool,
    /// A rule requires the client to authenticate.
    pub challenged: bool,
}

impl Ending<'_> {
    /// Copies the borrowed text.
    pub fn into_owned(self) -> Ending<'static> {
        Ending { text: self.text.map(Reply::into_owned), ..self }
    }

    /// Rejects an answer of a server: the client gets the proxy's page for that status.
    pub fn refused(status: u16) -> Self {
        let outcome = Outcome::new(Cause::Proxy, Phase::Headers);
        Self {
            outcome,
            status,
            text: None,
            manner: AnswerTiming::Prompt,
            denied: true,
            failed: false,
            challenged: false,
        }
    }
}

impl Ending<'static> {
    /// Answers with the text of a script.
    pub fn given(phase: Phase, status: u16, text: Vec<u8>) -> Self {
        let (outcome, text) = (Outcome::new(Cause::Local, phase), Some(Reply::new(text)));
        Self { outcome, status, text, manner: AnswerTiming::Prompt, denied: false, failed: false, challenged: false }
    }

    /// Answers from a cache.
    pub fn cached() -> Self {
        let (outcome, manner) = (Outcome::new(Cause::Local, Phase::Request), AnswerTiming::Cached);
        Self { outcome, status: 200, text: None, manner, denied: false, failed: false, challenged: false }
    }

    /// Answers 504: no cache has a response for a client that accepts nothing else (RFC 9111, section 5.2.1.7).
    pub fn unsatisfied() -> Self {
        let (outcome, manner) = (Outcome::new(Cause::Local, Phase::Request), AnswerTiming::Prompt);
        Self { outcome, status: 504, text: None, manner, denied: false, failed: false, challenged: false }
    }

    /// Answers 415: the content coding of a request's body is not supported (RFC 9110, section 15.5.16).
    pub fn unsupported_coding() -> Self {
        let (outcome, manner) = (Outcome::new(Cause::Proxy, Phase::Request), AnswerTiming::Prompt);
        let text = Some(Reply::new(prepared_answer::unsupported_coding(ACCEPTED)));
        Self { outcome, status: 415, text, manner, denied: false, failed: false, challenged: false }
    }

    /// Drops the client silently (`silent-drop`).
    pub fn silent(hops: Option<u8>) -> Self {
        let (outcome, manner) = (Outcome::new(Cause::Proxy, Phase::Request), AnswerTiming::Silent(hops));
        Self { outcome, status: 0, text: None, manner, denied: true, failed: false, challenged: false }
    }
}

/// How an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerTiming {
    /// Immediately.
    Prompt,
    /// After `timeout tarpit`.
    Late,
    /// Streamed by the service with that number.
    Streamed(usize),
    /// From the cache that has found it.
    Cached,
    /// There is none: the connection ends.
    Never,
    /// There is none, and the connection is dropped without a packet; with a number, by a reset with that time to live.
    Silent(Option<u8>),
}
