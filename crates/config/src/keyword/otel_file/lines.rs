//! The sections `otel-instrumentation`, `otel-group` and `otel-scope`. Must never resolve a name in a line: that
//! requires all of them.

use super::plain;
use crate::diagnostic::Diagnostic;
use crate::document::{Line, Section, Sources};
use crate::keyword::paths::Paths;
use crate::keyword::proxy::percent;
use crate::keyword::report::Report;
use crate::span::Spanned;
use crate::spec::{OtelCarrierSpec, OtelEvent, OtelFileSpec, OtelScopeSpec, OtelSpanSpec, OtelStatus, RuleLineSpec};
use crate::suggest;

/// Maximum number of spans, attributes, events or names of one section.
const MOST: usize = 256;

/// Context of a line's parser.
pub(super) struct LineContext<'a> {
    pub(super) file: &'a mut OtelFileSpec,
    pub(super) report: Report<'a>,
    pub(super) paths: &'a Paths,
    pub(super) sources: &'a Sources,
}

type Read = fn(&mut LineContext<'_>, &Line) -> Result<(), (usize, String)>;

/// A keyword, the number of words that must follow it, and its parser; `None`: not supported yet.
struct Row(&'static str, usize, Option<Read>);

const INSTRUMENTATION: &[Row] = &[
    Row(
        "acl",
        2,
        Some(|course, line| {
            let own = course.rule_line(line, 1);
            course.file.acls.push(own);
            Ok(())
        }),
    ),
    Row("config", 1, Some(config)),
    Row("debug-level", 1, Some(ignored)),
    Row("groups", 1, Some(|course, line| names(&mut course.file.used_groups, line))),
    Row("log", 1, Some(ignored)),
    Row("no", 1, Some(|course, line| option(course, line, 1))),
    Row("option", 1, Some(|course, line| option(course, line, 0))),
    Row("rate-limit", 1, Some(rate_limit)),
    Row("scopes", 1, Some(|course, line| names(&mut course.file.used_scopes, line))),
];

const GROUP: &[Row] = &[Row(
    "scopes",
    1,
    Some(|course, line| match course.file.groups.last_mut() {
        Some((_, scopes)) => names(scopes, line),
        None => Ok(()),
    }),
)];

const SCOPE: &[Row] = &[
    Row(
        "acl",
        2,
        Some(|course, line| {
            let own = course.rule_line(line, 1);
            course.scope().acls.push(own);
            Ok(())
        }),
    ),
    Row(
        "attribute",
        2,
        Some(|course, line| {
            let own = (plain(line.text(1)), course.rule_line(line, 2));
            add(&mut course.span()?.attributes, own)
        }),
    ),
    Row(
        "baggage",
        2,
        Some(|course, line| {
            let own = (plain(line.text(1)), course.rule_line(line, 2));
            add(&mut course.span()?.baggage, own)
        }),
    ),
    Row(
        "event",
        3,
        Some(|course, line| {
            let own = (plain(line.text(1)), plain(line.text(2)), course.rule_line(line, 3));
            add(&mut course.span()?.events, own)
        }),
    ),
    Row(
        "extract",
        1,
        Some(|course, line| {
            let own = carrier(line)?;
            add(&mut course.scope().extracts, own)
        }),
    ),
    Row("finish", 1, Some(|course, line| names(&mut course.scope().finish, line))),
    Row("idle-timeout", 1, None),
    Row(
        "inject",
        1,
        Some(|course, line| {
            course.span()?.inject = Some(carrier(line)?);
            Ok(())
        }),
    ),
    Row("instrument", 2, None),
    Row("link", 1, Some(|course, line| names(&mut course.span()?.links, line))),
    Row("log-record", 1, None),
    Row("otel-event", 1, Some(event)),
    Row("span", 1, Some(span)),
    Row("status", 1, Some(status)),
];

/// Reads a section. Returns whether it is the instrumentation.
pub(super) fn section(course: &mut LineContext<'_>, section: &Section) -> bool {
    let (kind, name) = (section.line.keyword(), section.line.text(1));
    if name.is_empty() {
        course.report.alert(section.line.span(1), format!("missing name for {kind} section."));
        return false;
    }
    let own = Spanned::new(name.to_owned(), section.line.span(1));
    let known = match kind {
        "otel-scope" => course.file.scopes.iter().any(|scope| scope.name.value == own.value),
        "otel-group" => course.file.groups.iter().any(|(group, _)| group.value == own.value),
        _ => course.file.config.is_some(),
    };
    if known {
        course.report.alert(own.span, format!("'{kind} {name}' : there is another one before it."));
        return false;
    }
    let table = match kind {
        "otel-scope" => {
            course.file.scopes.push(OtelScopeSpec { name: own, ..OtelScopeSpec::default() });
            SCOPE
        }
        "otel-group" => {
            course.file.groups.push((own, Vec::new()));
            GROUP
        }
        _ => INSTRUMENTATION,
    };
    for line in &section.body {
        read_line(course, kind, table, line);
    }
    kind == "otel-instrumentation"
}

fn read_line(course: &mut LineContext<'_>, kind: &str, table: &[Row], line: &Line) {
    let Some(Row(name, words, read)) = table.iter().find(|row| row.0 == line.keyword()) else {
        let mut found =
            Diagnostic::alert(line.span(0), format!("unknown keyword '{}' in section '{kind}'.", line.keyword()));
        let known = suggest::nearest(line.keyword(), table.iter().map(|row| row.0));
        found.hint = known.map(|known| format!("write '{known}'"));
        return course.report.push(found);
    };
    let Some(read) = read else {
        return course.report.not_yet(line.span(0), name, &format!("section '{kind}'"));
    };
    if line.words.len() <= *words {
        return course.report.alert(line.span(line.words.len()), format!("'{name}' : missing argument."));
    }
    if let Err((at, message)) = read(course, line) {
        course.report.alert(line.span(at), format!("'{name}' : {message}."));
    }
}

impl LineContext<'_> {
    fn rule_line(&self, line: &Line, at: usize) -> RuleLineSpec {
        let words = line.words.get(at..).unwrap_or_default().to_vec();
        let span = line.whole();
        RuleLineSpec { words, span, folder: self.paths.folder(span, self.sources), inherited: false }
    }

    /// Returns the scope that is being read.
    fn scope(&mut self) -> &mut OtelScopeSpec {
        if self.file.scopes.is_empty() {
            self.file.scopes.push(OtelScopeSpec::default());
        }
        let last = self.file.scopes.len() - 1;
        &mut self.file.scopes[last]
    }

    /// Returns the span that a line belongs to.
    fn span(&mut self) -> Result<&mut OtelSpanSpec, (usize, String)> {
        self.scope().spans.last_mut().ok_or_else(|| (0, "there is no 'span' before it".to_owned()))
    }
}

fn add<T>(list: &mut Vec<T>, one: T) -> Result<(), (usize, String)> {
    if list.len() == MOST {
        return Err((0, format!("more than {MOST} of them")));
    }
    list.push(one);
    Ok(())
}

fn names(list: &mut Vec<Spanned<String>>, line: &Line) -> Result<(), (usize, String)> {
    for word in line.arguments() {
        add(list, Spanned::new(word.text.clone(), word.span))?;
    }
    Ok(())
}

fn ignored(course: &mut LineContext<'_>, line: &Line) -> Result<(), (usize, String)> {
    course.report.no_counterpart(line.span(0), line.keyword(), "section 'otel-instrumentation'");
    Ok(())
}

fn config(course: &mut LineContext<'_>, line: &Line) -> Result<(), (usize, String)> {
    let path = course.paths.full(line.text(1), line.whole(), course.sources).into_owned();
    course.file.config = Some((Spanned::new(line.text(1).to_owned(), line.span(1)), path));
    Ok(())
}

fn option(course: &mut LineContext<'_>, line: &Line, at: usize) -> Result<(), (usize, String)> {
    let on = at == 0;
    match line.text(at + 1) {
        _ if !on && line.text(1) == "log" => return ignored(course, line),
        _ if !on && line.text(1) != "option" => return Err((1, "only 'option' and 'log' may follow".to_owned())),
        "disabled" => course.file.disabled = on,
        "hard-errors" => course.file.hard_errors = on,
        "dontlog-normal" => return ignored(course, line),
        name => return Err((at + 1, format!("unknown option '{name}'"))),
    }
    Ok(())
}

fn rate_limit(course: &mut LineContext<'_>, line: &Line) -> Result<(), (usize, String)> {
    let share = percent(line.text(1)).ok_or_else(|| (1, format!("'{}' is no number from 0 to 100", line.text(1))))?;
    course.file.rate_limit = Some(share);
    Ok(())
}

/// Parses `<prefix> [use-vars] [use-headers]`.
fn carrier(line: &Line) -> Result<OtelCarrierSpec, (usize, String)> {
    let mut own =
        OtelCarrierSpec { prefix: Spanned::new(line.text(1).to_owned(), line.span(1)), ..OtelCarrierSpec::default() };
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !line.text(1).bytes().all(is_token) {
        return Err((1, format!("'{}' cannot be a part of the name of a header field", line.text(1))));
    }
    for (place, word) in line.words.iter().enumerate().skip(2) {
        match word.text.as_str() {
            "use-vars" => own.variables = true,
            "use-headers" => own.headers = true,
            other => return Err((place, format!("unknown storage '{other}'"))),
        }
    }
    own.headers |= !own.variables;
    Ok(own)
}

fn event(course: &mut LineContext<'_>, line: &Line) -> Result<(), (usize, String)> {
    let name = line.text(1);
    if name == "on-idle-timeout" {
        return Err((1, "'on-idle-timeout' is not supported yet by Weir".to_owned()));
    }
    let event = OtelEvent::named(name).ok_or_else(|| {
        let known = suggest::nearest(name, OtelEvent::NAMES.iter().map(|(known, _)| *known));
        (1, format!("unknown event '{name}'{}", known.map_or_else(String::new, |known| format!("; write '{known}'"))))
    })?;
    if let Some(word) = line.words.get(2).filter(|word| !matches!(word.text.as_str(), "if" | "unless")) {
        return Err((2, format!("expects 'if' or 'unless' and a condition, not '{}'", word.text)));
    }
    let condition = course.rule_line(line, 2);
    if course.scope().event.is_some() {
        return Err((0, "the scope has one already".to_owned()));
    }
    course.scope().event = Some((event, condition));
    Ok(())
}

fn span(course: &mut LineContext<'_>, line: &Line) -> Result<(), (usize, String)> {
    let text = |at: usize| Spanned::new(line.text(at).to_owned(), line.span(at));
    let mut own = OtelSpanSpec { name: text(1), ..OtelSpanSpec::default() };
    let mut at = 2;
    while at < line.words.len() {
        match line.text(at) {
            "root" => own.root = true,
            name @ ("parent" | "link") if line.words.len() == at + 1 => {
                return Err((at + 1, format!("missing name behind '{name}'")));
            }
            "parent" => own.parent = Some(text(at + 1)),
            "link" => own.links.push(text(at + 1)),
            other => return Err((at, format!("unknown argument '{other}'"))),
        }
        at += if line.text(at) == "root" { 1 } else { 2 };
    }
    add(&mut course.scope().spans, own)
}

fn status(course: &mut LineContext<'_>, line: &Line) -> Result<(), (usize, String)> {
    let code = OtelStatus::NAMES.iter().find(|(name, _)| *name == line.text(1));
    let (_, code) = *code.ok_or_else(|| (1, format!("unknown code '{}'", line.text(1))))?;
    let samples = course.rule_line(line, 2);
    course.span()?.status = Some((code, samples));
    Ok(())
}
