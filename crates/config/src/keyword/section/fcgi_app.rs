//! A FastCGI application (section 10.1). Must never access a proxy.

use super::{SectionContext, SectionKeyword, supported};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::{Line, Word};
use crate::keyword::negation::Negation;
use crate::keyword::{is_name_character, log_line};
use crate::span::Spanned;
use crate::spec::{FcgiAppSpec, FcgiRuleSpec};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("acl", "<name> <expression> [<flag>...] [<value>...]", "Defines an ACL.", acl),
    supported("docroot", "<path>", "Document root on the application's host.", docroot),
    supported("index", "<script>", "Script name appended to a URI that ends with a slash.", index),
    supported("log-stderr", "{ global | <target> ... }", "Log target of the application's standard error.", log_stderr),
    supported("option get-values", "", "Retrieves the application's limits.", option),
    supported("option keep-conn", "", "Keeps connections to the application open.", option),
    supported("option max-reqs", "<number>", "Maximum number of concurrent requests on a connection.", max_requests),
    supported("option mpxs-conns", "", "Multiplexes several requests on a connection.", option),
    supported(
        "pass-header",
        "<name> [{ if | unless } <condition>]",
        "Passes a request header to the application.",
        rule,
    ),
    supported(
        "path-info",
        "<regex>",
        "Regular expression that splits the path into script name and path info.",
        path_info,
    ),
    supported("set-param", "<name> <format> [{ if | unless } <condition>]", "Sets a parameter.", rule),
];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let name = line.text(1);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in 'fcgi-app' name '{name}'.");
        context.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ParsingTight));
        return false;
    }
    if context.report.too_many(line, 2, "fcgi-app") {
        return false;
    }
    if let Some(other) = context.content.fcgi_apps.iter().find(|other| other.name.value == name) {
        let place = context.around.place(other.span);
        let message = format!("fcgi-app section '{name}' has the same name as another one declared at {place}.");
        context.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ConfigLateParsing));
        return false;
    }
    context.content.fcgi_apps.push(FcgiAppSpec {
        span: line.whole(),
        name: Spanned::new(name.to_owned(), line.span(1)),
        docroot: None,
        index: None,
        path_info: None,
        acls: Vec::new(),
        rules: Vec::new(),
        logs_globally: false,
        logs: Vec::new(),
        keep_conn: true,
        get_values: false,
        shares_connections: false,
        max_requests: 1,
    });
    true
}

/// Returns the open section.
fn app<'a>(context: &'a mut SectionContext<'_>) -> Option<&'a mut FcgiAppSpec> {
    context.content.fcgi_apps.last_mut()
}

/// Returns the only word after a keyword.
fn only<'l>(context: &mut SectionContext<'_>, line: &'l Line, what: &str) -> Option<&'l Word> {
    let name = line.keyword();
    let Some(word) = line.words.get(1).filter(|word| !word.text.is_empty()) else {
        context.report.alert(line.span(1), format!("'{name}' expects <{what}> as argument."));
        return None;
    };
    (!context.report.too_many(line, 2, &format!("{name} {}", word.text))).then_some(word)
}

fn docroot(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = only(context, line, "path") else { return };
    if let Some(app) = app(context) {
        app.docroot = Some(word.text.clone());
    }
}

fn index(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = only(context, line, "filename") else { return };
    if let Some(app) = app(context) {
        app.index = Some(word.text.clone());
    }
}

fn path_info(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = only(context, line, "regex") else { return };
    if let Some(app) = app(context) {
        app.path_info = Some(Spanned::new(word.text.clone(), word.span));
    }
}

fn acl(context: &mut SectionContext<'_>, line: &Line) {
    let name = line.text(1);
    if name.is_empty() {
        context.report.alert(line.span(0), "'acl' expects a name and an expression.");
        return;
    }
    if name == "||" || name.eq_ignore_ascii_case("or") {
        let word = name.to_ascii_lowercase();
        let message = format!(
            "acl name '{name}' will never match. '{word}' is used to express a logical disjunction within a condition."
        );
        context.report.alert(line.span(1), message);
        return;
    }
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        context.report.alert(line.span(1), format!("character '{bad}' is not permitted in acl name '{name}'."));
        return;
    }
    let line = context.around.rule_line(line, 1);
    if let Some(app) = app(context) {
        app.acls.push(line);
    }
}

fn rule(context: &mut SectionContext<'_>, line: &Line) {
    let sets = line.keyword() == "set-param";
    let least = if sets { 3 } else { 2 };
    if line.words.len() < least || line.arguments()[..least - 1].iter().any(|word| word.text.is_empty()) {
        let message = if sets {
            "'set-param' expects <name> and <value> as arguments."
        } else {
            "'pass-header' expects <name> as arguments."
        };
        context.report.alert(line.span(line.words.len()), message);
        return;
    }
    let line = context.around.rule_line(line, 1);
    if let Some(app) = app(context) {
        app.rules.push(FcgiRuleSpec { sets, line });
    }
}

fn log_stderr(context: &mut SectionContext<'_>, line: &Line) {
    let asker = log_line::Asker {
        global: false,
        place: "section 'fcgi-app'",
        environment: context.around.environment,
        negated: false,
    };
    let entry = log_line::read(line, &asker, &mut context.report);
    if let (Some(entry), Some(app)) = (entry, app(context)) {
        match entry {
            log_line::Entry::Own(log) => app.logs.push(*log),
            log_line::Entry::Global(_) => app.logs_globally = true,
            log_line::Entry::Clear => {}
        }
    }
}

fn option(context: &mut SectionContext<'_>, line: &Line) {
    let name = line.text(1);
    if context.report.too_many(line, 2, &format!("option {name}")) {
        return;
    }
    let negation = context.negation;
    let Some(app) = app(context) else { return };
    match name {
        "keep-conn" => app.keep_conn = negation != Negation::No,
        "mpxs-conns" => app.shares_connections = negation == Negation::None,
        _ => app.get_values = negation == Negation::None,
    }
}

/// Reads `option max-reqs`.
fn max_requests(context: &mut SectionContext<'_>, line: &Line) {
    if context.negation != Negation::None {
        context.report.alert(line.span(1), "negation/default is not supported for option 'max-reqs'.");
        return;
    }
    let Some(word) = line.words.get(2) else {
        context.report.alert(line.span(2), "option 'max-reqs' expects an integer argument.");
        return;
    };
    if context.report.too_many(line, 3, "option max-reqs") {
        return;
    }
    let number = word.text.parse().ok().filter(|number| *number > 0);
    let Some(number) = number else {
        context.report.alert(word.span, "option 'max-reqs' expects a strictly positive integer argument.");
        return;
    };
    if let Some(app) = app(context) {
        app.max_requests = number;
    }
}
