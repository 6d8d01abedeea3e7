//! Compiles the error pages of a proxy: `errorfile` and `http-error`. Must never choose the page for an error.

use super::Compiler;
use crate::program::{ErrorPages, Page};
use crate::rule::{Parsing, Reply, RuleError, Words, error_answer};
use config::diagnostic::Form;
use config::keyword::rule::HTTP_REQUEST;
use config::spec::{ErrorAnswerSpec, ProxySpec, Spec};
use expression::sample::EvalPlace;
use std::cell::RefCell;
use std::sync::Arc;

impl Compiler<'_> {
    /// Compiles a proxy's error pages.
    pub(super) fn pages(&mut self, spec: &Spec, index: usize, written: &ProxySpec) -> ErrorPages {
        let mut pages = ErrorPages::new();
        for file in &written.error_files {
            pages.set(file.status, Page::Text(Arc::new(Reply::new(file.content.clone()))));
        }
        for answer in &written.error_answers {
            let page = self.described(spec, index, written, answer);
            if let Some(page) = page.filter(|_| answer.counts) {
                pages.set(answer.status, page);
            }
        }
        pages
    }

    /// Compiles an `http-error` line. `None` if it is invalid, or if its content comes from another section.
    fn described(&mut self, spec: &Spec, index: usize, written: &ProxySpec, answer: &ErrorAnswerSpec) -> Option<Page> {
        let names = self.names(spec, Some(index));
        let line = &answer.line;
        names.begin(line);
        let mut words = Words::all(&line.words);
        let parsing = Parsing {
            names: &names,
            place: EvalPlace::Log,
            set: HTTP_REQUEST,
            proxy: written,
            warnings: RefCell::default(),
        };
        let read = error_answer(&mut words, &parsing);
        self.say(parsing, line);
        match read {
            Ok(page) => page,
            Err(RuleError { message, hint, span, .. }) => {
                let message = format!("http-error : {message}");
                self.alert_with_hint(span.unwrap_or(line.span), Form::Parsing, message, hint);
                None
            }
        }
    }
}
