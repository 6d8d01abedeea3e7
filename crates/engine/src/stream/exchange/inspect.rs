//! Rules on the bytes of an answer (`tcp-response content`) whose head has been received: waits until they can be
//! decided, for the `inspect-delay` at most. Must never consume a byte.

use std::task::{Context, Poll};

use expression::sample::{Bytes, Direction};
use policy::rule::Final;

use super::{End, Exchange, failed};
use crate::script::StreamAccess;
use crate::stream::client::content;
use crate::stream::reply::ending::Ending;
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::rules::{Content, Progress, run_content};
use crate::stream::request::{actions, script};
use crate::stream_state::{Cause, Phase};

impl Exchange<'_> {
    /// Runs the rules of the backend. False: they wait for more bytes, or for an asynchronous operation.
    pub(super) fn inspect(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let session = self.session;
        let backend = self.state.borrow().route.backend.map(|index| session.proxy_at(index));
        let Some(rules) = backend.map(|proxy| &proxy.rules).filter(|rules| !rules.response_content.is_empty()) else {
            return Ok(true);
        };
        let delay = rules.response_delay.unwrap_or_default();
        let deadline = *self.rules.inspecting.get_or_insert_with(|| rt::now() + delay);
        let mut complete = rt::now() >= deadline;
        loop {
            if let Some(mut action) = self.rules.running.take() {
                let bytes = Bytes::new(self.reply.message.reader.received(), complete);
                let access = StreamAccess::of_bytes(session, self.state, Direction::Response, bytes);
                let Poll::Ready(verdict) = action.poll(cx, &access) else {
                    self.rules.running = Some(action);
                    return Ok(false);
                };
                match script::effect_of(&verdict, Direction::Response) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(ended) if verdict.says_how() => {
                        let ending = {
                            let known = self.state.borrow();
                            script::end(EvalContext::response(session, &known, &known.response), verdict, ended)
                        };
                        return Err(self.replace_answer(Box::new(ending)));
                    }
                    Err(ending) => return self.refuse(ending),
                }
            }
            let ended = {
                let known = self.state.borrow();
                let bytes = Bytes::new(self.reply.message.reader.received(), complete);
                let view = EvalContext::response(session, &known, &known.response);
                run_content(&EvalContext { bytes, ..view }, &rules.response_content, &mut self.rules.inspected)
            };
            match ended {
                Content::Passes => break,
                Content::Ended(ending) => return self.refuse(ending),
                Content::Yields => {
                    cx.waker().wake_by_ref();
                    return Ok(false);
                }
                Content::Runs(wait) => self.rules.running = actions::begin(session, wait),
                // Names are resolved only for requests.
                Content::Asks(_) => break,
                Content::Undecided if complete => break,
                Content::Undecided => match self.read_more(cx) {
                    Poll::Pending => return Ok(false),
                    Poll::Ready(more) => complete = !more,
                },
            }
        }
        (self.rules.inspecting, self.rules.inspected) = (None, Progress::default());
        Ok(true)
    }

    /// Reads bytes that follow the head; the rules wait for them until their deadline. Ready with false: there are no
    /// more, or the buffer is full.
    fn read_more(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.reply.message.reader.poll_more(cx, &mut self.upstream).map(|read| read.is_some())
    }

    /// Ends the exchange with the rule that rejected the answer.
    fn refuse(&mut self, ending: &Final) -> Result<bool, End> {
        let phase = match ending {
            // The server's answer does not count: the result is that of a server that has not answered.
            Final::Close => return failed(Cause::Server, Phase::Headers, 502),
            Final::SilentDrop(hops) => return Err(self.replace_answer(Box::new(Ending::silent(*hops)))),
            _ => Phase::Data,
        };
        let outcome = content::outcome(self.state, ending, phase);
        Err(End::Failed { outcome, status: 0, page: false })
    }
}
