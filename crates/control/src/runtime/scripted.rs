//! Commands registered by scripts: transfers the client's input and the script's output. Must never inspect either.

use std::task::Poll;

use super::call::{Call, Prompt};
use super::command::{CommandSet, CommandTarget};
use super::{Answer, Disconnected};

/// Maximum bytes of input waiting for the script.
const MOST_INPUT: usize = 64 * 1024;

/// Runs the command at that index until it ends. Its input is the payload of the call; on a connection with a single
/// command also the input that follows.
pub(super) async fn run<S: CommandTarget>(
    set: &CommandSet<S>,
    place: usize,
    call: &mut Call<'_, S>,
) -> Result<(), Disconnected> {
    let Some(mut service) = set.state.begin_scripted(place, call.words) else { return Ok(()) };
    let mut input = call.payload.unwrap_or_default().to_vec();
    let mut ended = call.conversation.prompt != Prompt::Single;
    let mut buffer = rt::buffer();
    loop {
        let mut output = Vec::new();
        let Some(stream) = call.answer.stream() else { return Ok(()) };
        let is_over = std::future::poll_fn(|cx| {
            loop {
                if service.poll(cx, &mut input, ended, &mut output).is_ready() {
                    return Poll::Ready(true);
                }
                if !output.is_empty() {
                    return Poll::Ready(false);
                }
                if ended || input.len() >= MOST_INPUT {
                    return Poll::Pending;
                }
                match stream.poll_read(cx, &mut buffer) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(1..)) => {
                        input.extend_from_slice(buffer.data());
                        buffer.clear();
                    }
                    Poll::Ready(_) => ended = true,
                }
            }
        });
        let is_over = is_over.await;
        push(call.answer, &output).await?;
        if is_over {
            return Ok(());
        }
    }
}

async fn push(answer: &mut Answer, output: &[u8]) -> Result<(), Disconnected> {
    answer.push(output);
    answer.flush().await
}
