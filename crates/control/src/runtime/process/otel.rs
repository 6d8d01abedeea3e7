//! `show otel` (Weir's own): the state of telemetry export to collectors. Must never send any.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use config::spec::RuntimeLevel;
use engine::telemetry;
use engine::worker::Worker;

use super::super::{Call, Command, Pending, Run};

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show otel",
    "show otel",
    "report queues and results of the exporters of telemetry",
    Run::Gradual(show_otel),
)
.at(RuntimeLevel::Operator)];

fn show_otel<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        call.answer.push("# signal url queued size sent dropped failed requests state last_error\n");
        let generation = call.state.process.generation();
        for channel in call.state.process.service::<telemetry::Registry>().channels() {
            let (signal, _) = channel.plan.signal.names();
            // A channel of a previous configuration still sends its queue.
            let is_current = generation.channels.iter().any(|own| std::sync::Arc::ptr_eq(own, &channel));
            let (queued, size) = (channel.waiting(), channel.plan.queue);
            let counts = &channel.counts;
            let [sent, dropped, failed, requests] =
                [&counts.sent, &counts.dropped, &counts.failed, &counts.requests].map(|count| count.load(Relaxed));
            let error = channel.last_error();
            let state = match &error {
                _ if !is_current => "LEAVING",
                Some(error) if error.lasts => "FAILING",
                _ => "OK",
            };
            let url = call.conversation.anonymous.name(&channel.plan.url).into_owned();
            let _ = write!(call.answer, "{signal} {url} {queued} {size} {sent} {dropped} {failed} {requests} {state} ");
            let _ = match error {
                None => writeln!(call.answer, "-"),
                Some(error) => {
                    let ago = rt::now().millis_since(error.at) / 1_000;
                    writeln!(call.answer, "\"{}\" {ago}s ago", error.text.escape_default())
                }
            };
            call.answer.relieve().await?;
        }
        Ok(())
    })
}
