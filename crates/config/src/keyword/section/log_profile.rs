//! Log formats by event (section 8.3.5). Must never compile one.

use super::{SectionContext, SectionKeyword, supported};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::keyword::is_name_character;
use crate::span::Spanned;
use crate::spec::{LogProfileSpec, LogProfileStepSpec, LogStep};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("log-tag", "<text>", "Program name in log lines.", log_tag),
    supported("on", "<step> [drop] [format <format>] [sd <format>]", "Log line of an event.", on),
];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let name = line.text(1);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in 'log-profile' name '{name}'.");
        context.report.alert(line.span(1), message);
        return false;
    }
    if context.report.too_many(line, 2, "log-profile") {
        return false;
    }
    if let Some(other) = context.content.log_profiles.iter().find(|other| other.name == name) {
        let message = format!(
            "log-profile section '{name}' has the same name as another log-profile section declared at {}.",
            context.around.place(other.span)
        );
        context.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ConfigLateParsing));
        return false;
    }
    let profile = LogProfileSpec { span: line.whole(), name: name.to_owned(), ..LogProfileSpec::default() };
    context.content.log_profiles.push(profile);
    true
}

fn log_tag(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), "'log-tag' expects a tag for use in syslog.");
        return;
    };
    if let Some(profile) = context.content.log_profiles.last_mut() {
        profile.tag = Some(word.text.clone());
    }
}

fn on(context: &mut SectionContext<'_>, line: &Line) {
    let Some(step) = LogStep::named(line.text(1)) else {
        let of_rules = LogStep::NAMES.iter().filter(|(_, step)| step.is_of_streams()).skip(5);
        let of_rules: Vec<String> = of_rules.map(|(name, _)| format!("'{name}'")).collect();
        let message = format!(
            "'on' expects a log step.\nexpected values are: 'accept', 'request', 'connect', 'response', 'close', 'error' or \
             'any'.\nOr one of the additional log steps: {}.",
            of_rules.join(", ")
        );
        let hint = crate::suggest::nearest(line.text(1), LogStep::NAMES.iter().map(|(name, _)| *name));
        let mut diagnostic = Diagnostic::alert(line.span(1), message).with_form(Form::ParsingTight);
        diagnostic.hint = hint.map(|known| format!("write '{known}'"));
        context.report.push(diagnostic);
        return;
    };
    let Some(profile) = context.content.log_profiles.last_mut() else { return };
    let known = profile.steps.iter().position(|known| known.step == step).unwrap_or_else(|| {
        profile.steps.push(LogProfileStepSpec { step, drop: false, format: None, structured_data: None });
        profile.steps.len() - 1
    });
    let entry = &mut profile.steps[known];
    let mut words = line.words.iter().skip(2).peekable();
    let name = line.text(1);
    if words.peek().is_none() {
        context.report.alert(line.span(2), format!("'on {name}' expects 'drop', 'format' or 'sd'."));
    }
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "drop" => entry.drop = true,
            "format" | "sd" => {
                let Some(format) = words.next() else {
                    let message = format!("'on {name} {}' expects a logformat string.", word.text);
                    context.report.alert(word.span, message);
                    return;
                };
                // A line with a format cancels `drop`.
                entry.drop = false;
                let format = Some(Spanned::new(format.text.clone(), format.span));
                match word.text.as_str() {
                    "format" => entry.format = format,
                    _ => entry.structured_data = format,
                }
            }
            _ => {
                context.report.alert(word.span, format!("'on {name}' expects 'drop', 'format' or 'sd'."));
                return;
            }
        }
    }
}
