//! One JSON object per line: a record per second, and one at the end. Owns no field: those are [`Record`]'s.

use super::{Second, Show, Sink};
use crate::Outcome;
use crate::load::counters::Counters;
use crate::load::plan::Plan;
use crate::load::record::{Counts, Moment, Record};
use std::time::Duration;

/// `--json`.
#[derive(Debug)]
pub struct Json {
    out: Sink,
    /// Only the end is written.
    quiet: bool,
    /// Time of the last second: the record of the end contains its wall clock time and its connections.
    last: Moment,
}

impl Json {
    /// Creates the writer; `quiet`: only the end is written.
    #[must_use]
    pub fn new(out: Sink, quiet: bool) -> Self {
        Self { out, quiet, last: Moment::default() }
    }

    fn write(&mut self, record: &Record) -> Result<(), Outcome> {
        let line = serde_json::to_string(record);
        let line = line.map_err(|error| Outcome::Failed(format!("cannot write JSON: {error}")))?;
        self.out.write(&(line + "\n"))
    }
}

impl Show for Json {
    fn begin(&mut self, _: &Plan) -> Result<(), Outcome> {
        Ok(())
    }

    fn second(&mut self, second: &Second, _: &Counters) -> Result<(), Outcome> {
        self.last = second.moment();
        if self.quiet {
            return Ok(());
        }
        self.write(&Record::Second(Counts::of(&second.counters, &self.last)))
    }

    fn end(&mut self, total: &Counters, length: Duration) -> Result<(), Outcome> {
        self.write(&Record::summary(total, &Moment { at: length, length, ..self.last }))
    }
}
