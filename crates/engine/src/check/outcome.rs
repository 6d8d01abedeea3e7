//! The final status of a check: that of its last step, or of one that failed. Must never wait for anything.

use expression::sample::Value;
use live::health::CheckStatus;
use policy::check::{CheckStep, Connect, Expect};

use super::messages;
use super::running::{IMPLICIT, Outcome, RunningCheck};

impl Outcome {
    /// A status without a code.
    pub(super) fn new(status: CheckStatus, info: String) -> Self {
        Self { status, code: None, info }
    }

    /// A failure reported by the response of a known protocol.
    pub(super) fn failed(status: CheckStatus, code: i64, info: &str) -> Self {
        let code = status.is_application().then_some(code);
        Self { status, code, info: messages::printable(info.as_bytes()) }
    }
}

impl RunningCheck<'_> {
    /// Returns the outcome of an unfulfilled `expect`; `info` is used if it has no `on-error` format.
    pub(super) fn refuse(&self, expect: &Expect, info: String) -> Outcome {
        let status = expect.error_status();
        let info = match &expect.on_error {
            Some(format) => messages::with_comment(self, expect, self.rendered(format)),
            None => info,
        };
        Outcome { status, code: self.code(expect, status), info }
    }

    /// Returns the outcome of a check that has completed all its steps.
    pub(super) fn success(&self) -> Outcome {
        let acts = |step: &&CheckStep| !matches!(step, CheckStep::Comment(_) | CheckStep::Variable(_));
        let named = || if self.check.is_tcp { "(tcp-check)".to_owned() } else { String::new() };
        let expect = match (self.check.steps.iter().rev().find(acts), self.progress.fulfilled) {
            (Some(CheckStep::Expect(_)), Some(expect)) => expect,
            (Some(CheckStep::Connect(connect)), _) => {
                return Outcome::new(self.connected(connect), named());
            }
            (Some(_), _) if self.check.is_tcp => {
                return Outcome { status: CheckStatus::L7Ok, code: Some(0), info: named() };
            }
            (_, Some(expect)) => expect,
            _ => return Outcome::new(self.connected(&IMPLICIT), String::new()),
        };
        if let Some((code, info)) = &self.answer.said {
            let code = expect.ok.is_application().then_some(*code);
            return Outcome { status: expect.ok, code, info: messages::printable(info.as_bytes()) };
        }
        let head = self.answer.head.as_ref();
        let status = match head {
            Some(head) if self.wants_no_more(head) => CheckStatus::L7Conditional,
            _ => expect.ok,
        };
        let info = expect.on_success.as_ref().map_or_else(named, |format| self.rendered(format));
        Outcome { status, code: self.code(expect, status), info }
    }

    /// Returns the status of a check that only connects.
    fn connected(&self, connect: &Connect) -> CheckStatus {
        if self.tls(connect).is_some() { CheckStatus::L6Ok } else { CheckStatus::L4Ok }
    }

    /// Returns the code: that of the rule's expression, else the status of the response.
    fn code(&self, expect: &Expect, status: CheckStatus) -> Option<i64> {
        if let Some(expression) = &expect.code {
            let value = self.lend(self.connection.input.data(), |context| match expression.evaluate(context)? {
                Value::Int(code) => Some(code),
                other => std::str::from_utf8(context.as_text(other)?).ok()?.parse().ok(),
            });
            return value;
        }
        let of_answer = self.answer.head.as_ref().map_or(0, |head| i64::from(head.status()));
        status.is_application().then_some(of_answer)
    }

    fn rendered(&self, format: &expression::log_format::LogFormat) -> String {
        let mut out = Vec::new();
        self.lend(self.connection.input.data(), |context| format.render_in(context, &mut out));
        messages::printable(&out)
    }
}
