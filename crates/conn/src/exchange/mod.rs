//! The two directions of an exchange between a client and a server or service: the request's body and the answer. Owns
//! what either needs of both ends; must never decide which bytes are sent.

pub mod answer;
mod answer_reader;
pub mod attempt_rank;
pub mod body;
mod line;
mod whole;

pub use crate::answer_head_kind::AnswerHeadKind;
pub use answer::{Answer, ForwardTerms, Heads, Plan};
pub use answer_reader::{AnswerReader, ReadOutcome};
pub use attempt_rank::AttemptRank;
pub use body::{Coding, RequestBody};
pub use line::RequestLine;
