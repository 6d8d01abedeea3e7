//! The agent section of an SPOE file (SPOE.txt, section 2.2). Must never resolve the names in it: messages, groups and
//! a backend.

use super::{SectionContext, SectionKeyword, supported, tuning};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::{Line, Word};
use crate::keyword::argument::{leading_number, milliseconds};
use crate::keyword::negation::Negation;
use crate::keyword::{is_name_character, log_line};
use crate::span::Spanned;
use crate::spec::SpoeAgentSpec;

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("groups", "<group>...", "Groups that rules may send.", groups),
    supported("log", "{ global | <target> ... }", "Log target.", log),
    supported("max-frame-size", "<number>", "Bytes of a frame at most.", max_frame_size),
    tuning("max-waiting-frames", "<number>", "Without effect, as in HAProxy."),
    tuning("maxconnrate", "<number>", "Without effect, as in HAProxy."),
    tuning("maxerrrate", "<number>", "Without effect, as in HAProxy."),
    supported("messages", "<message>...", "Messages sent on their events.", messages),
    tuning("option async", "", "Without effect, as in HAProxy."),
    supported("option continue-on-error", "", "Later events of a stream go on after an error.", flag),
    supported("option dontlog-normal", "", "Logs failures only.", flag),
    supported("option force-set-var", "", "The agent may set variables that nothing names.", flag),
    supported("option pipelining", "", "Several frames wait for their answers on a connection.", flag),
    tuning("option send-frag-payload", "", "Without effect, as in HAProxy."),
    supported("option set-on-error", "<variable>", "Variable that an error is reported in.", variable),
    supported("option set-process-time", "<variable>", "Variable for the time of the last event.", variable),
    supported("option set-total-time", "<variable>", "Variable for the time of all events.", variable),
    supported("option var-prefix", "<prefix>", "Prefix of the agent's variables.", variable),
    supported("register-var-names", "<name>...", "Variables that the agent may set.", register_variables),
    tuning("timeout hello", "<time>", "Without effect, as in HAProxy."),
    tuning("timeout idle", "<time>", "Without effect, as in HAProxy."),
    supported("timeout processing", "<time>", "How long an event may take.", timeout),
    supported("use-backend", "<backend>", "Backend of the agent's servers.", use_backend),
];

/// Returns the name after the keyword of a section; reports an error if there is none.
pub(super) fn section_name(context: &mut SectionContext<'_>, line: &Line) -> Option<Spanned<String>> {
    let (kind, name) = (line.keyword(), line.text(1));
    if context.report.too_many(line, 2, kind) {
        return None;
    }
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in '{kind}' name '{name}'.");
        context.report.alert(line.span(1), message);
        return None;
    }
    Some(Spanned::new(name.to_owned(), line.span(1)))
}

/// Opens the section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let Some(name) = section_name(context, line) else { return false };
    let Some(engine) = context.content.spoe_engines.last_mut() else { return false };
    if engine.agent.is_some() {
        context.report.alert(line.span(0), "another spoe-agent section previously defined.");
        return false;
    }
    engine.agent = Some(SpoeAgentSpec { name, ..SpoeAgentSpec::default() });
    true
}

/// Returns the open section.
fn agent<'a>(context: &'a mut SectionContext<'_>) -> Option<&'a mut SpoeAgentSpec> {
    context.content.spoe_engines.last_mut()?.agent.as_mut()
}

/// Adds the words after the keyword to a list of unique names. `what` is the kind of section that they name.
pub(super) fn add_names(
    known: &mut Vec<Spanned<String>>,
    line: &Line,
    what: &str,
    report: &mut crate::keyword::report::Report<'_>,
) {
    for word in line.arguments() {
        if known.iter().any(|known| known.value == word.text) {
            report.tight(word.span, format!("{what} '{}' already used.", word.text));
            return;
        }
        known.push(Spanned::new(word.text.clone(), word.span));
    }
}

fn groups(context: &mut SectionContext<'_>, line: &Line) {
    let Some(agent) = context.content.spoe_engines.last_mut().and_then(|engine| engine.agent.as_mut()) else { return };
    add_names(&mut agent.groups, line, "spoe-group", &mut context.report);
}

fn messages(context: &mut SectionContext<'_>, line: &Line) {
    let Some(agent) = context.content.spoe_engines.last_mut().and_then(|engine| engine.agent.as_mut()) else { return };
    add_names(&mut agent.messages, line, "spoe-message", &mut context.report);
}

fn register_variables(context: &mut SectionContext<'_>, line: &Line) {
    if line.arguments().is_empty() {
        let message = "'register-var-names' expects one or more variable names.";
        return context.report.alert(line.span(1), message);
    }
    let names = line.arguments().iter().map(|word| Spanned::new(word.text.clone(), word.span));
    if let Some(agent) = agent(context) {
        agent.variables.extend(names);
    }
}

fn log(context: &mut SectionContext<'_>, line: &Line) {
    let asker = log_line::Asker {
        global: false,
        place: "section 'spoe-agent'",
        environment: context.around.environment,
        negated: context.negation == Negation::No,
    };
    let entry = log_line::read(line, &asker, &mut context.report);
    let (Some(entry), Some(agent)) = (entry, agent(context)) else { return };
    match entry {
        log_line::Entry::Own(log) => agent.logs.push(*log),
        log_line::Entry::Global(_) => agent.logs_globally = true,
        log_line::Entry::Clear => (agent.logs_globally, agent.logs) = (false, Vec::new()),
    }
}

/// Whether HAProxy accepts the line of a keyword without effect; reports an error if not.
pub(super) fn is_sound(line: &Line, report: &mut crate::keyword::report::Report<'_>) -> bool {
    match line.keyword() {
        "timeout" => !report.too_many(line, 3, "timeout"),
        "option" => !report.too_many(line, 2, "option"),
        name if line.words.len() < 2 => {
            report.alert(line.span(1), format!("'{name}' expects an integer argument."));
            false
        }
        _ => true,
    }
}

fn max_frame_size(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        return context.report.alert(line.span(1), "'max-frame-size' expects an integer argument.");
    };
    if context.report.too_many(line, 2, "max-frame-size") {
        return;
    }
    let most = context.around.bufsize.next_multiple_of(16).saturating_sub(4);
    let size = u32::try_from(leading_number(&word.text).0).ok().filter(|size| (256..=most).contains(size));
    match (size, agent(context)) {
        (Some(size), Some(agent)) => agent.max_frame_size = Some(size),
        _ => {
            let range = format!("'max-frame-size' expects a positive integer argument in the range [256, {most}].");
            context.report.alert(word.span, range);
        }
    }
}

fn use_backend(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        return context.report.alert(line.span(1), "'use-backend' expects a backend name.");
    };
    if context.report.too_many(line, 2, "use-backend") {
        return;
    }
    if let Some(agent) = agent(context) {
        agent.backend = Some(Spanned::new(word.text.clone(), word.span));
    }
}

fn timeout(context: &mut SectionContext<'_>, line: &Line) {
    if context.report.too_many(line, 3, "timeout") {
        return;
    }
    let missing = "'timeout processing' expects an integer value (in milliseconds).";
    let unexpected = "unexpected character '%c' in 'timeout processing'.";
    let time = milliseconds(line.words.get(2), line, "timeout processing", missing, unexpected, &mut context.report);
    if let (Some(time), Some(agent)) = (time, agent(context)) {
        agent.processing = Some(time).filter(|time| *time > 0);
    }
}

fn flag(context: &mut SectionContext<'_>, line: &Line) {
    let (name, negated) = (line.text(1), context.negation != Negation::None);
    if negated && matches!(name, "continue-on-error" | "force-set-var") {
        return refuse_negation(context, line);
    }
    if context.report.too_many(line, 2, "option") {
        return;
    }
    let Some(agent) = agent(context) else { return };
    match name {
        "continue-on-error" => agent.continues_on_error = true,
        "dontlog-normal" => agent.dontlog_normal = !negated,
        "force-set-var" => agent.sets_any_variable = true,
        "pipelining" => agent.no_pipelining = negated,
        _ => {}
    }
}

fn refuse_negation(context: &mut SectionContext<'_>, line: &Line) {
    context.report.tight(line.span(1), format!("negation is not supported for option '{}'.", line.text(1)));
}

/// Reads an option whose argument is a name, or a part of one.
fn variable(context: &mut SectionContext<'_>, line: &Line) {
    let name = line.text(1);
    if context.negation != Negation::None {
        return refuse_negation(context, line);
    }
    let Some(word) = line.words.get(2) else {
        return context.report.tight(line.span(2), format!("'option {name}' expects a value."));
    };
    if context.report.too_many(line, 3, "option") {
        return;
    }
    if !is_variable_name(word) {
        let message = format!("'option {name}' only supports [a-zA-Z0-9_.] chars.");
        return context.report.tight(word.span, message);
    }
    let value = Some(Spanned::new(word.text.clone(), word.span));
    let Some(agent) = agent(context) else { return };
    match name {
        "set-on-error" => agent.set_on_error = value,
        "set-process-time" => agent.set_process_time = value,
        "set-total-time" => agent.set_total_time = value,
        _ => agent.var_prefix = value,
    }
}

fn is_variable_name(word: &Word) -> bool {
    word.text.chars().all(|found| found.is_ascii_alphanumeric() || matches!(found, '_' | '.'))
}

/// Reports words that are not keywords of the section. Returns false if it is another section.
pub(super) fn unknown(section: &str, line: &Line, report: &mut crate::keyword::report::Report<'_>) -> bool {
    let (first, second) = (line.text(0), line.text(1));
    match (section, first) {
        ("spoe-agent", "option") if second.is_empty() => {
            report.tight(line.span(1), "'option' expects an option name.");
        }
        ("spoe-agent", "option") => report.tight(line.span(1), format!("option '{second}' is not supported.")),
        ("spoe-agent", "timeout") if second.is_empty() => {
            report.alert(line.span(1), "'timeout' expects 'hello', 'idle' and 'processing'.");
        }
        ("spoe-agent", "timeout") => {
            report.alert(line.span(1), format!("'timeout' supports 'processing' (got {second})."));
        }
        ("spoe-agent" | "spoe-group", _) => {
            report.alert(line.span(0), format!("unknown keyword '{first}' in {section} section."));
        }
        ("spoe-message", _) => {
            // HAProxy ignores it silently.
            let message = format!("unknown keyword '{first}' in {section} section is ignored.");
            let found = Diagnostic::new(crate::diagnostic::Severity::Notice, line.span(0), message);
            report.push(found.with_form(Form::Parsing));
        }
        _ => return false,
    }
    true
}
