//! Errors of the apiserver as lines of the log: one when a problem begins, one when it ends, and none for each attempt.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::log::log;

/// A problem of a request to the apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The kind is not installed.
    Missing,
    /// The controller's account lacks a permission.
    Forbidden,
    /// The resource version is too old: all objects are listed again. It is not logged.
    Expired,
    /// The object has changed since it was read. It is not logged.
    Conflict,
    /// The apiserver asks for patience. It is not logged.
    Busy,
    /// The apiserver refuses or fails.
    Refused,
    /// There is no connection.
    Unreachable,
}

impl Problem {
    pub fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_code(status.code),
            kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => Self::Unreachable,
            _ => Self::Refused,
        }
    }

    pub fn of_code(code: u16) -> Self {
        match code {
            404 => Self::Missing,
            403 => Self::Forbidden,
            409 => Self::Conflict,
            410 => Self::Expired,
            429 => Self::Busy,
            _ => Self::Refused,
        }
    }
}

/// Returns the message of an error with its causes, and the apiserver's alone.
pub fn describe(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return match status.message.trim() {
            "" => format!("status {}", status.code),
            message => message.to_owned(),
        };
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}

/// The problems that are known by what they concern. It is bounded by the number of kinds.
#[derive(Debug, Default)]
pub struct Problems {
    known: Mutex<BTreeMap<String, Problem>>,
}

/// The subject of all requests without a connection: they share one line.
const APISERVER: &str = "the apiserver";

impl Problems {
    /// Records a problem, and logs it unless it is known. `subject` is a kind or "the lease".
    pub fn begin(&self, subject: &str, problem: Problem, detail: &str) {
        let text = match problem {
            Problem::Expired | Problem::Conflict | Problem::Busy => return,
            Problem::Unreachable => {
                if self.insert(APISERVER, problem) {
                    log(&format!("the apiserver is unreachable, Weir serves on: {detail}"));
                }
                return;
            }
            Problem::Missing => format!("{subject}: the kind is not installed, it is looked for again: {detail}"),
            Problem::Forbidden => format!("{subject}: the account of weir-gateway lacks a permission: {detail}"),
            Problem::Refused => format!("{subject}: the apiserver refuses a request: {detail}"),
        };
        if self.insert(subject, problem) {
            log(&text);
        }
    }

    /// Records a success, and logs the end of a problem.
    pub fn end(&self, subject: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return;
        }
        let is_reachable_again = known.remove(APISERVER).is_some();
        let is_solved = known.remove(subject).is_some();
        drop(known);
        if is_reachable_again {
            log("the apiserver is reachable again");
        }
        if is_solved {
            log(&format!("{subject}: available again"));
        }
    }

    fn insert(&self, subject: &str, problem: Problem) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(subject.to_owned(), problem) != Some(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_new_once() {
        let problems = Problems::default();
        assert!(problems.insert("TCPRoute", Problem::Missing));
        assert!(!problems.insert("TCPRoute", Problem::Missing));
        assert!(problems.insert("TCPRoute", Problem::Forbidden));
        problems.end("TCPRoute");
        assert!(problems.insert("TCPRoute", Problem::Missing));
    }

    #[test]
    fn codes_of_the_apiserver_are_told_apart() {
        let cases = [
            (404, Problem::Missing),
            (403, Problem::Forbidden),
            (409, Problem::Conflict),
            (410, Problem::Expired),
            (429, Problem::Busy),
            (500, Problem::Refused),
        ];
        for (code, problem) in cases {
            assert_eq!(Problem::of_code(code), problem, "{code}");
        }
    }
}
