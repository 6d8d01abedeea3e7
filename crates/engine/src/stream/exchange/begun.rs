//! The points at which an exchange leaves the straight path, with the data of each. Must never continue one.

use base::buffer::Buffer;
use base::moment::Moment;
use conn::exchange::{AnswerHeadKind, AnswerReader};

/// An exchange that leaves the straight path.
pub(super) struct Begun {
    /// When it began.
    pub(super) since: Moment,
    /// The point that it has reached.
    pub(super) step: Step,
}

/// A point of an exchange at which it may leave the straight path.
pub(super) enum Step {
    /// The server has not accepted the request: the unsent part of its head.
    Sending(Buffer),
    /// The request was sent. The bytes received of the answer, and the result of parsing them if there are any.
    Awaiting(AnswerReader, Option<AnswerHeadKind>),
    /// The client has not accepted the answer, which was received whole.
    Answering(PartlySent),
}

/// An answer that was received whole, and sent in part.
pub(super) struct PartlySent {
    /// The unsent part of its head.
    pub(super) head: Buffer,
    /// The unsent part of its body.
    pub(super) body: Buffer,
    /// The client's connection is kept.
    pub(super) keep_client: bool,
    /// The server's link may serve another request.
    pub(super) reusable: bool,
}
