//! Helpers of the tests of formats, and tests of the formats that a plan opens.

use super::*;
use crate::load::options::{LoadTask, parse};
use std::ffi::OsString;
use std::net::SocketAddr;

/// Parses a line of options.
pub(super) fn plan(words: &[&str]) -> Plan {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    match parse(&words, &|_, port| Ok(SocketAddr::from(([192, 0, 2, 1], port)))) {
        Ok(LoadTask::Run(plan)) => *plan,
        other => panic!("{other:?}"),
    }
}

/// 1,000 responses over four connections, 10 of them 404, from 1 to 1,000 microseconds, the first byte in half the
/// time.
pub(super) fn total() -> Counters {
    let mut total = Counters::new();
    (total.connections, total.requests, total.answers, total.received) = (4, 1004, 1000, 1_062_000);
    (total.statuses[100], total.statuses[304], total.errors.status) = (990, 10, 10);
    for micros in 1..=1000 {
        total.first_byte.record(micros * 500);
        total.last_byte.record(micros * 1000);
    }
    total
}

/// Returns the second that ends at that time.
pub(super) fn second(at: u64) -> Second {
    let at = Duration::from_secs(at);
    Second { at, wall: 1_800_000_000, length: Duration::from_secs(1), open: 4, counters: total() }
}

fn refused(words: &[&str], stdout: bool) -> Outcome {
    match forms(&plan(words), stdout, false) {
        Err(outcome) => outcome,
        Ok(_) => panic!("{words:?} are taken"),
    }
}

#[test]
fn a_live_view_needs_a_terminal() {
    let told = "--live needs a terminal, and standard output is none".to_owned();
    assert_eq!(refused(&["--live", "a"], false), Outcome::Misused(told));
    assert!(forms(&plan(&["--live", "a"]), true, true).is_ok());
}

#[test]
fn a_file_that_cannot_be_written_ends_it_before_it_begins() {
    for option in ["--json=/nonexistent/x", "--csv=/nonexistent/x"] {
        let why = "cannot write '/nonexistent/x': No such file or directory (os error 2)".to_owned();
        assert_eq!(refused(&[option, "a"], true), Outcome::Failed(why));
    }
}

/// Every format receives every call, and the first error ends the run.
#[test]
fn one_that_fails_does_not_silence_the_others() {
    struct Ends(Outcome, std::sync::Arc<std::sync::atomic::AtomicU32>);
    impl Ends {
        fn hear(&self) -> Result<(), Outcome> {
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Err(self.0.clone())
        }
    }
    impl Show for Ends {
        fn begin(&mut self, _: &Plan) -> Result<(), Outcome> {
            self.hear()
        }
        fn second(&mut self, _: &Second, _: &Counters) -> Result<(), Outcome> {
            self.hear()
        }
        fn end(&mut self, _: &Counters, _: Duration) -> Result<(), Outcome> {
            self.hear()
        }
    }
    let heard = std::sync::Arc::default();
    let failed = Outcome::Failed("x".to_owned());
    let form = |outcome: &Outcome| Box::new(Ends(outcome.clone(), std::sync::Arc::clone(&heard)));
    let mut forms = Forms(vec![form(&failed), form(&Outcome::Done)]);
    assert_eq!(forms.second(&second(1), &total()), Err(failed.clone()));
    assert_eq!(forms.end(&total(), Duration::from_secs(1)), Err(failed));
    assert_eq!(heard.load(std::sync::atomic::Ordering::Relaxed), 4);
}
