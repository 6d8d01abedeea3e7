//! The response to a call of the gRPC health service (`option grpc-check`): its head, its message, its trailers. Must never judge
//! them.

use live::health::CheckStatus;
use policy::check::{Expect, GrpcAnswer, Judgement};
use wire::http::Framing;

use super::messages;
use super::running::{Outcome, RunningCheck, Waited};

/// Maximum bytes of a message that are read; that of a health service has two.
const MOST: usize = 1024;

impl<'a> RunningCheck<'a> {
    /// Waits for a gRPC response that reports `SERVING`.
    pub(super) async fn expect_grpc(&mut self, expect: &'a Expect) -> Result<(), Outcome> {
        self.restart_timeout();
        let head = self.read_head(expect).await?;
        self.connection.ended |= head.framing == Framing::None;
        while !self.connection.ended && self.connection.input.len() < MOST {
            match self.receive().await {
                Waited::Done(Ok(())) => {}
                Waited::Done(Err(error)) => {
                    return Err(Outcome::new(CheckStatus::SocketError, messages::of_system(&error)));
                }
                Waited::Expired => return Err(Outcome::new(expect.timeout, messages::at_expect(self, expect))),
            }
        }
        let trailers = self.connection.solo.as_mut().and_then(|solo| solo.take_trailers());
        let field = |name: &[u8]| trailers.as_ref().and_then(|fields| fields.first(name)).or_else(|| head.first(name));
        let answer = GrpcAnswer {
            status: head.status(),
            kind: head.first(b"content-type"),
            code: field(b"grpc-status"),
            words: field(b"grpc-message"),
            body: self.connection.input.data(),
        };
        match answer.judge() {
            Judgement::Passed { code, info } => {
                self.answer.said = Some((code, info.unwrap_or_default()));
                Ok(())
            }
            Judgement::Failed { status, code, info } => Err(Outcome::failed(status, code, &info)),
            Judgement::Wait | Judgement::Nothing => Err(Outcome::new(expect.error_status(), String::new())),
        }
    }
}
