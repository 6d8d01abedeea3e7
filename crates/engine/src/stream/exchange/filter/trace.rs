//! `filter trace` (configuration manual, section 9.1): prints the calls of a filter, and can forward data in random pieces, which
//! tests the other filters. Must never change a byte.

use std::fmt::Write as _;
use std::sync::Arc;

use base::buffer::Buffer;
use conn::flow::{FilterOutput, forward};
use expression::sample::Direction;
use policy::program::Trace;
use wire::http::Head;

use crate::filter::{Event, Filter, FilterContext};

/// Bytes per line of a dump.
const LINE: usize = 16;

/// A filter that prints its calls.
pub(super) struct TraceFilter {
    plan: Arc<Trace>,
    of_backend: bool,
}

impl TraceFilter {
    pub(super) fn new(plan: &Arc<Trace>, of_backend: bool) -> Self {
        Self { plan: Arc::clone(plan), of_backend }
    }

    /// Prints a call; `name`: its name in HAProxy.
    fn tell(&self, context: &FilterContext, name: &str, what: &str) {
        let Some(print) = context.print.filter(|_| !self.plan.quiet) else { return };
        let mut text = self.prefix(context);
        let _ = match what {
            "" => writeln!(text, "{name:<25}"),
            _ => writeln!(text, "{name:<25}: {what}"),
        };
        print(text.as_bytes());
    }

    /// Returns the beginning of every line.
    fn prefix(&self, context: &FilterContext) -> String {
        let now = rt::wall();
        let (seconds, micros) = (now.seconds, now.nanos / 1_000);
        format!("{seconds}.{micros:06} [{:<20}] [strm {:#x}({})] ", self.plan.label, context.stream, context.worker)
    }

    fn channel(context: &FilterContext, direction: Direction) -> String {
        let channel = if direction == Direction::Request { "REQUEST" } else { "RESPONSE" };
        let mode = if context.http { "HTTP" } else { "TCP" };
        let side = if context.has_backend { "backend" } else { "frontend" };
        format!("channel={channel:<10} - mode={mode:<5} ({side})")
    }
}

impl Filter for TraceFilter {
    fn note(&mut self, context: &FilterContext, event: Event<'_>) {
        if self.plan.quiet {
            return;
        }
        let side = if self.of_backend { "filter-type=backend" } else { "filter-type=frontend" };
        match event {
            Event::Attached => self.tell(context, "trace_attach", side),
            Event::Begun => self.tell(context, "trace_stream_start", ""),
            Event::BackendChosen(name) => self.tell(context, "trace_stream_set_backend", &format!("backend={name}")),
            Event::Opened(direction) => {
                self.tell(context, "trace_chn_start_analyze", &Self::channel(context, direction));
            }
            Event::MessageEnded(direction) if context.http => {
                self.tell(context, "trace_http_end", &Self::channel(context, direction));
            }
            Event::MessageEnded(_) => {}
            Event::Restarted => {
                self.tell(context, "trace_http_reset", &Self::channel(context, Direction::Response));
            }
            Event::Replied(status) => self.tell(context, "trace_http_reply", &format!("status={status}")),
            Event::Closed(direction) => self.tell(context, "trace_chn_end_analyze", &Self::channel(context, direction)),
            Event::Ended => self.tell(context, "trace_stream_stop", ""),
            Event::Detached => self.tell(context, "trace_detach", side),
        }
    }

    fn head(&mut self, context: &FilterContext, direction: Direction, head: &mut Head) {
        let Some(print) = context.print.filter(|_| !self.plan.quiet) else { return };
        let prefix = self.prefix(context);
        let shown = String::from_utf8_lossy;
        let mut text = prefix.clone();
        let _ = write!(text, "{:<25}: {}\t", "trace_http_headers", Self::channel(context, direction));
        let _ = match direction {
            Direction::Request => {
                let version = shown(head.version_text());
                writeln!(text, "{} {} {version}", shown(head.method()), shown(head.target()))
            }
            Direction::Response => {
                writeln!(text, "{} {} {}", shown(head.version_text()), head.status(), shown(head.reason()))
            }
        };
        for (name, value) in head.fields() {
            let _ = writeln!(text, "{prefix}\t{}: {}", shown(name), shown(value));
        }
        print(text.as_bytes());
    }

    fn wants(&self, _: Direction) -> bool {
        // A quiet filter that passes everything does not need the body.
        !self.plan.quiet || self.plan.random_forwarding || self.plan.most.is_some()
    }

    fn body(
        &mut self,
        context: &FilterContext,
        direction: Direction,
        input: &mut Buffer,
        output: &mut Buffer,
        _: bool,
    ) -> FilterOutput {
        let length = input.len();
        let mut share = match self.plan.random_forwarding {
            true => (rt::random() % (length as u64 + 1)) as usize,
            false => length,
        };
        share = share.min(self.plan.most.unwrap_or(usize::MAX));
        let gone = if share > 0 { forward(input, output, share) } else { 0 };
        if let Some(print) = context.print.filter(|_| !self.plan.quiet) {
            let name = if context.http { "trace_http_payload" } else { "trace_tcp_payload" };
            let what = format!("{} - len={length} - forward={gone}", Self::channel(context, direction));
            self.tell(context, name, &what);
            if self.plan.hexdump {
                let mut text = String::new();
                dump(output.data(), &mut text);
                print(text.as_bytes());
            }
        }
        if gone == length { FilterOutput::Through } else { FilterOutput::Again }
    }
}

/// Dumps bytes as hexadecimal numbers and as characters, sixteen per line.
fn dump(bytes: &[u8], text: &mut String) {
    for (line, bytes) in bytes.chunks(LINE).enumerate() {
        let _ = write!(text, "\t0x{:06x}: ", line * LINE);
        for at in 0..LINE {
            let _ = match bytes.get(at) {
                Some(byte) => write!(text, "{byte:02x} "),
                None => write!(text, "   "),
            };
            if at == LINE / 2 - 1 {
                text.push_str("  ");
            }
        }
        text.push_str("  |");
        text.extend(bytes.iter().map(|byte| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' }));
        text.push_str("|\n");
    }
}

#[cfg(test)]
mod tests {
    use super::dump;

    #[test]
    fn a_dump_shows_sixteen_bytes_a_line() {
        let mut text = String::new();
        dump(b"0123456789abcdef\x00\xffA", &mut text);
        let expected = "\t0x000000: 30 31 32 33 34 35 36 37   38 39 61 62 63 64 65 66   |0123456789abcdef|\n\
                        \t0x000010: 00 ff 41                                            |..A|\n";
        assert_eq!(text, expected);
    }
}
