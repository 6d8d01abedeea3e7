//! Messages on standard error in HAProxy's format: `[NOTICE]   (pid) : …`, `[WARNING]  (pid) : …`,
//! `[ALERT]    (pid) : …`. Counts them for `-dW` and `-c`. Must never decide to end the process.

use crate::{identity, version};
use config::LANGUAGE_LEVEL;
use config::diagnostic::{Diagnostic, Severity};
use config::document::Sources;
use std::io::Write;

/// An error that has already been reported.
#[derive(Debug)]
pub struct ReportedError;

/// Writes and counts messages.
pub struct Messages {
    out: Box<dyn Write>,
    quiet: bool,
    /// Only alerts are printed.
    hushed: bool,
    diagnostics: bool,
    introduced: bool,
    warnings: usize,
    alerts: usize,
    /// Printed messages, at most [`MOST_KEPT`] bytes.
    said: String,
}

/// Maximum bytes of printed messages that are kept for `show startup-logs`.
const MOST_KEPT: usize = 64 * 1024;

impl Messages {
    /// Writes to standard error. `quiet` suppresses all output (messages are still counted); `diagnostics` enables
    /// `[DIAG]`.
    #[must_use]
    pub fn new(quiet: bool, diagnostics: bool) -> Self {
        Self::to(Box::new(std::io::stderr()), quiet, diagnostics)
    }

    /// Creates it for a process that already serves: the version is not printed again.
    #[must_use]
    pub fn while_serving(quiet: bool) -> Self {
        Self { introduced: true, ..Self::new(quiet, false) }
    }

    /// Writes to `out` from now on, instead of standard error.
    pub fn speak_through(&mut self, out: Box<dyn Write>) {
        self.out = out;
    }

    fn to(out: Box<dyn Write>, quiet: bool, diagnostics: bool) -> Self {
        Self { out, quiet, hushed: false, diagnostics, introduced: false, warnings: 0, alerts: 0, said: String::new() }
    }

    /// From now on prints only alerts (`quiet` in the configuration).
    pub fn hush(&mut self) {
        self.hushed = true;
    }

    /// From now on prints nothing (a daemon that has detached from its terminal).
    pub fn silence(&mut self) {
        self.quiet = true;
    }

    /// Whether at most alerts are printed.
    #[must_use]
    pub fn quiet(&self) -> bool {
        self.quiet || self.hushed
    }

    /// Returns the number of warnings.
    #[must_use]
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// Returns the number of alerts.
    #[must_use]
    pub fn alerts(&self) -> usize {
        self.alerts
    }

    /// Returns the printed messages.
    #[must_use]
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Reports information.
    pub fn notice(&mut self, text: &str) {
        self.say(Severity::Notice, text);
    }

    /// Reports a probable mistake.
    pub fn warning(&mut self, text: &str) {
        self.say(Severity::Warning, text);
    }

    /// Reports an error that ends the process or prevents its start.
    pub fn alert(&mut self, text: &str) {
        self.say(Severity::Alert, text);
    }

    /// Reports all diagnostics of loading the configuration, in order.
    pub fn report(&mut self, found: &[Diagnostic], sources: &Sources) {
        let mut text = String::new();
        for diagnostic in found {
            text.clear();
            diagnostic.render(sources, std::process::id(), &mut text);
            self.pass(diagnostic.severity, &text);
        }
    }

    fn say(&mut self, severity: Severity, text: &str) {
        self.pass(severity, &line(severity, text));
    }

    /// Counts a formatted message and prints it. The first warning or alert is preceded by the version.
    fn pass(&mut self, severity: Severity, text: &str) {
        match severity {
            Severity::Alert => self.alerts += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Notice => {}
            Severity::Diag if self.diagnostics => {}
            Severity::Diag => return,
        }
        if self.quiet || self.hushed && severity != Severity::Alert {
            return;
        }
        if !self.introduced && matches!(severity, Severity::Alert | Severity::Warning) {
            self.introduced = true;
            self.introduce();
        }
        if self.said.len() + text.len() <= MOST_KEPT {
            self.said.push_str(text);
        }
        // The terminal may be closed.
        let _ = self.out.write_all(text.as_bytes());
    }

    fn introduce(&mut self) {
        let name = identity::command();
        if identity::is_haproxy() {
            self.notice(&format!("{name} version is {}", version::runtime()));
        } else {
            self.notice(&format!("{name} version is {} (language level {LANGUAGE_LEVEL})", version::VERSION));
        }
        if let Ok(path) = std::env::current_exe() {
            self.notice(&format!("path to executable is {}", path.display()));
        }
    }
}

/// Formats a message.
#[must_use]
pub fn line(severity: Severity, text: &str) -> String {
    format!("{}({}) : {text}\n", severity.tag(), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::span::Span;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Paper(Rc<RefCell<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn said(quiet: bool, diagnostics: bool, speak: impl FnOnce(&mut Messages)) -> (String, usize, usize) {
        let paper = Paper::default();
        let mut messages = Messages::to(Box::new(paper.clone()), quiet, diagnostics);
        speak(&mut messages);
        let text = String::from_utf8(paper.0.borrow().clone()).unwrap();
        (text, messages.warnings(), messages.alerts())
    }

    #[test]
    fn tags_and_process_numbers_stand_where_scripts_look_for_them() {
        let pid = std::process::id();
        let (text, warnings, alerts) = said(false, false, |messages| {
            messages.notice("n");
            messages.warning("w");
            messages.alert("a");
        });
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], format!("[NOTICE]   ({pid}) : n"));
        assert!(lines[1].starts_with(&format!("[NOTICE]   ({pid}) : weir version is ")));
        assert!(lines[2].starts_with(&format!("[NOTICE]   ({pid}) : path to executable is ")));
        assert_eq!(lines[3..], [format!("[WARNING]  ({pid}) : w"), format!("[ALERT]    ({pid}) : a")]);
        assert_eq!((warnings, alerts), (1, 1));
    }

    #[test]
    fn a_notice_alone_is_not_preceded_by_anything() {
        assert_eq!(said(false, false, |messages| messages.notice("n")).0.lines().count(), 1);
    }

    #[test]
    fn silence_still_counts() {
        assert_eq!(said(true, false, |messages| messages.warning("w")), (String::new(), 1, 0));
    }

    #[test]
    fn suspicion_is_shown_only_when_asked_for() {
        let found = [Diagnostic::new(Severity::Diag, Span::default(), "hm")];
        let report = |messages: &mut Messages| messages.report(&found, &Sources::default());
        assert_eq!(said(false, false, report), (String::new(), 0, 0));
        let (text, warnings, _) = said(false, true, report);
        assert!(text.starts_with("[DIAG]     ("), "{text}");
        assert_eq!(warnings, 0);
    }
}
