//! Output of `-v` before the run: the requests and their targets. Must never print a body.

use super::{Second, Show, Sink};
use crate::Outcome;
use crate::load::counters::Counters;
use crate::load::plan::{Pace, Plan, Target};
use std::fmt::Write;
use std::time::Duration;

/// Writes lines to standard error.
#[derive(Debug)]
pub struct Verbose {
    out: Sink,
}

impl Verbose {
    /// Creates it on that sink.
    #[must_use]
    pub const fn new(out: Sink) -> Self {
        Self { out }
    }
}

fn text(plan: &Plan) -> String {
    let mut text = format!("# {} connections, {} threads", plan.connections, plan.threads);
    let _ = match plan.pace {
        Pace::AsFastAsAnswered => writeln!(text, ", as fast as they are answered"),
        Pace::AtMost(rate) => writeln!(text, ", at most {rate} requests a second"),
        Pace::Constant(rate) => writeln!(text, ", {rate} requests due each second"),
    };
    for target in &plan.targets {
        let Target { url, address, weight, request, .. } = target;
        let _ = writeln!(text, "# {url} at {address}, weight {weight}, {} bytes", request.len());
        if plan.output.verbose > 1 {
            for line in String::from_utf8_lossy(head(request)).lines() {
                let _ = writeln!(text, "#   {line}");
            }
        }
    }
    text
}

/// Returns everything up to the empty line.
fn head(request: &[u8]) -> &[u8] {
    let end = request.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(request.len());
    &request[..end]
}

impl Show for Verbose {
    fn begin(&mut self, plan: &Plan) -> Result<(), Outcome> {
        self.out.write(&text(plan))
    }

    fn second(&mut self, _: &Second, _: &Counters) -> Result<(), Outcome> {
        Ok(())
    }

    fn end(&mut self, _: &Counters, _: Duration) -> Result<(), Outcome> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::show::tests::plan;

    #[test]
    fn heads_are_told_and_bodies_are_not() {
        let told = text(&plan(&["-c", "4", "-v", "-v", "--constant", "50", "--data", "secret", "http://192.0.2.1/x"]));
        assert_eq!(
            told,
            "# 4 connections, 1 threads, 50 requests due each second\n\
             # http://192.0.2.1/x at 192.0.2.1:80, weight 1, 62 bytes\n\
             #   POST /x HTTP/1.1\n#   Host: 192.0.2.1\n#   Content-Length: 6\n"
        );
    }
}
