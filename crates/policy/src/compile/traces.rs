//! Validates the lines of `traces` sections by executing them on separate trace states. Must never enable a trace.

use config::diagnostic::Form;
use config::spec::Spec;
use live::trace::{Reply, TraceSink, Traces};

use super::Compiler;

impl Compiler<'_> {
    /// Returns the words of each line.
    pub(super) fn traces(&mut self, spec: &Spec) -> Box<[Box<[Box<str>]>]> {
        let scratch = Traces::default();
        let rings: Vec<&str> = spec.sections.rings.iter().map(|ring| ring.name.as_str()).collect();
        let is_known = |name: &str| matches!(name, "stdout" | "stderr" | "buf0" | "dpapi") || rings.contains(&name);
        let find = |name: &str| is_known(name).then_some(TraceSink::Ring(0));
        let mut lines = Vec::new();
        for line in &spec.sections.traces {
            let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
            match scratch.command(&words, &find, &[]) {
                // A line without arguments would print a list, which is dropped.
                Reply::Done | Reply::Text(_) => lines.push(words.into_iter().map(Into::into).collect()),
                Reply::Refused(why) => {
                    let sentence = why.lines().next().unwrap_or_default().trim_end_matches('.').to_owned();
                    self.alert(line.span, Form::Parsing, format!("{sentence}."));
                }
            }
        }
        lines.into()
    }
}
