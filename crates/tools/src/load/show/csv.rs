//! Comma-separated values: a heading, a record per second, and one at the end. The fields are those of the JSON format,
//! in the same order. Must never write a field that needs quotes.

use super::{Second, Show, Sink};
use crate::Outcome;
use crate::load::counters::Counters;
use crate::load::plan::Plan;
use crate::load::record::{Counts, Moment};
use std::time::Duration;

type Field = (&'static str, fn(&Counts) -> String);

/// A field of that name, with a number of decimal digits for times.
macro_rules! field {
    ($name:ident) => {
        (stringify!($name), |counts| counts.$name.to_string())
    };
    ($name:ident, $decimals:literal) => {
        (stringify!($name), |counts| format!(concat!("{:.", $decimals, "}"), counts.$name))
    };
}

/// All fields after the type of the record.
const FIELDS: &[Field] = &[
    field!(at, 6),
    field!(length, 6),
    field!(wall),
    field!(open),
    field!(connections),
    field!(requests),
    field!(answers),
    field!(received),
    field!(error_connect),
    field!(error_timeout),
    field!(error_reset),
    field!(error_protocol),
    field!(error_status),
    field!(unanswered),
    field!(status_1xx),
    field!(status_2xx),
    field!(status_3xx),
    field!(status_4xx),
    field!(status_5xx),
    field!(first_byte_mean, 3),
    field!(last_byte_mean, 3),
    field!(last_byte_p99, 3),
    field!(reference_answers),
    field!(reference_mean, 3),
    field!(reference_p99, 3),
    field!(handshakes),
    field!(resumed),
];

/// `--csv`.
#[derive(Debug)]
pub struct Csv {
    out: Sink,
    /// Only the end is written.
    quiet: bool,
    /// Time of the last second: the record of the end contains its wall clock time and its connections.
    last: Moment,
}

impl Csv {
    /// Creates the writer; `quiet`: only the end is written.
    #[must_use]
    pub fn new(out: Sink, quiet: bool) -> Self {
        Self { out, quiet, last: Moment::default() }
    }
}

fn line(kind: &str, cell: impl Fn(&Field) -> String) -> String {
    let cells: Vec<String> = std::iter::once(kind.to_owned()).chain(FIELDS.iter().map(cell)).collect();
    cells.join(",") + "\n"
}

impl Show for Csv {
    fn begin(&mut self, _: &Plan) -> Result<(), Outcome> {
        self.out.write(&line("type", |(name, _)| (*name).to_owned()))
    }

    fn second(&mut self, second: &Second, _: &Counters) -> Result<(), Outcome> {
        self.last = second.moment();
        if self.quiet {
            return Ok(());
        }
        let counts = Counts::of(&second.counters, &self.last);
        self.out.write(&line("second", |(_, value)| value(&counts)))
    }

    fn end(&mut self, total: &Counters, length: Duration) -> Result<(), Outcome> {
        let counts = Counts::of(total, &Moment { at: length, length, ..self.last });
        self.out.write(&line("summary", |(_, value)| value(&counts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_those_of_the_json_form_in_its_order() {
        let json = serde_json::to_string(&Counts::default()).expect("JSON");
        let names = json.split('"').skip(1).step_by(2);
        assert!(names.eq(FIELDS.iter().map(|(name, _)| *name)), "{json}");
    }

    #[test]
    fn every_record_has_as_many_fields_as_the_heading() {
        let counts = Counts { at: 1.5, answers: 7, last_byte_p99: 12.3456, ..Counts::default() };
        let (heading, record) =
            (line("type", |(name, _)| (*name).to_owned()), line("second", |(_, value)| value(&counts)));
        assert!(heading.starts_with("type,at,length,wall,open,"));
        assert!(record.starts_with("second,1.500000,0.000000,0,0,0,0,7,0,"), "{record}");
        assert!(record.ends_with(",12.346,0,0.000,0.000,0,0\n"), "{record}");
        assert_eq!(heading.matches(',').count(), record.matches(',').count());
    }
}
