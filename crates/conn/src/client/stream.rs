//! One request without a body on a stream of a multiplexed connection, and its whole answer. Must never open a connection, or send the
//! request again.

use base::Moment;
use base::buffer::Buffer;
use wire::h1::HeadLimits;
use wire::http::{Head, Method};

use super::{Answer, Failure, INPUT, MOST_INTERIM, within};
use crate::carrier::Carrier;
use crate::exchange::{AnswerHeadKind, AnswerReader, ReadOutcome};
use crate::upstream::Upstream;

/// Sends an encoded head, and reads the answer with a body of at most `most` bytes until `by`. Interim answers are skipped.
///
/// # Errors
/// Why there is no complete answer.
pub async fn ask_on_stream(
    carrier: &mut Carrier,
    mut head: Buffer,
    by: Moment,
    most: usize,
) -> Result<Answer, Failure> {
    let mut timer = rt::Timer::new();
    timer.arm(Some(by));
    let mut upstream = Upstream::of(carrier);
    within(&mut timer, |cx| upstream.poll_send(cx, &mut head)).await?.map_err(Failure::Broken)?;
    let (mut reader, mut found) = (AnswerReader::default(), Head::new());
    let limits = HeadLimits { max_head: INPUT, ..HeadLimits::default() };
    let mut interim = 0;
    loop {
        match within(&mut timer, |cx| reader.poll_receive(cx, &mut upstream)).await? {
            ReadOutcome::Bytes(_) => {}
            ReadOutcome::Closed => return Err(Failure::Closed),
        }
        match reader.parse(&upstream, Method::Get, &limits, &mut found) {
            AnswerHeadKind::Part => {}
            AnswerHeadKind::Interim if interim == MOST_INTERIM => return Err(Failure::Invalid),
            AnswerHeadKind::Interim => {
                interim += 1;
                found.clear();
            }
            // The request did not ask for another protocol.
            AnswerHeadKind::Final if found.status() == 101 => return Err(Failure::Invalid),
            AnswerHeadKind::Final => break,
            AnswerHeadKind::Invalid(_) => return Err(Failure::Invalid),
        }
    }
    let (mut body, mut input) = (Vec::new(), rt::buffer());
    loop {
        let read = within(&mut timer, |cx| upstream.poll_read(cx, &mut input)).await?.map_err(Failure::Broken)?;
        if read == 0 {
            return Ok(Answer { head: found, body });
        }
        body.extend_from_slice(input.data());
        input.clear();
        if body.len() > most {
            return Err(Failure::TooLong);
        }
    }
}
