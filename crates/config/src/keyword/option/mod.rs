//! `option …`, by family. Owns the dispatch and the meaning of `no` and `default` in front of it.

mod address_fields;
mod checks;
mod connection;
mod http;
mod log;
mod persistence;

use super::negation::Negation;
use super::place::KeywordScope;
use super::proxy::{ProxyContext, ProxyParse, check_line, unknown_option};
use super::table::{Family, Keyword, Status, rows};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;

/// Sections that accept an option, and prefixes that it accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) place: KeywordScope,
    no: bool,
    default: bool,
}

/// Accepts `no option` and `default option`.
const fn switch(place: KeywordScope) -> Shape {
    Shape { place, no: true, default: true }
}

/// Accepts `no option`.
const fn no_only(place: KeywordScope) -> Shape {
    Shape { place, no: true, default: false }
}

/// Accepts no prefix.
const fn fixed(place: KeywordScope) -> Shape {
    Shape { place, no: false, default: false }
}

/// A row of the option tables. The function is called for `no` and `default` as well where the shape permits them.
pub(crate) type OptionKeyword = Keyword<ProxyParse, Shape>;

const fn supported(
    shape: Shape,
    name: &'static str,
    usage: &'static str,
    doc: &'static str,
    parse: ProxyParse,
) -> OptionKeyword {
    Keyword::new(shape, name, usage, doc, Status::Supported(parse))
}

const fn tuning(shape: Shape, name: &'static str, usage: &'static str, doc: &'static str) -> OptionKeyword {
    Keyword::new(shape, name, usage, doc, Status::Tuning)
}

const fn removed(name: &'static str, usage: &'static str, doc: &'static str, sentence: &'static str) -> OptionKeyword {
    Keyword::new(switch(super::place::places::ANY), name, usage, doc, Status::Removed(sentence))
}

/// Every option.
pub(crate) static FAMILIES: &[Family<OptionKeyword>] = &[
    Family { title: "Connections", rows: connection::TABLE },
    Family { title: "HTTP", rows: http::TABLE },
    Family { title: "Logs and counters", rows: log::TABLE },
    Family { title: "Health checks", rows: checks::TABLE },
    Family { title: "Server selection", rows: persistence::TABLE },
];

/// Reads an `option` line.
pub(crate) fn read(context: &mut ProxyContext<'_>, line: &Line) {
    let name = line.text(1);
    if name.is_empty() {
        context.report.alert(line.span(1), "'option' expects an option name.");
        return;
    }
    let Some(row) = rows(FAMILIES).find(|row| row.name == name) else {
        if context.negation != Negation::None {
            let message = format!("negation/default is not supported for option '{name}'.");
            return context.report.tight(line.span(1), message);
        }
        unknown_option(context, line, rows(FAMILIES).map(|row| row.name).collect());
        return;
    };
    if !may_stand(context, line, row) {
        return;
    }
    let what = format!("option {name}");
    let place = context.holder.describe();
    match row.status {
        Status::Supported(parse) | Status::Group(parse) => parse(context, line),
        // An option that is not supported is already off.
        Status::NotYet if context.negation != Negation::None => {}
        Status::NotYet => context.report.not_yet(line.span(1), &what, &place),
        Status::Tuning => context.report.no_counterpart(line.span(1), &what, &place),
        Status::Removed(sentence) | Status::Refused(sentence) => {
            context.report.tight(line.span(1), sentence.replace("%1", line.text(2)))
        }
    }
}

/// Options that HAProxy does not parse in a proxy where they have no effect.
const PASSED_OVER: &[&str] = &["forwarded", "redispatch"];

fn may_stand(context: &mut ProxyContext<'_>, line: &Line, row: &OptionKeyword) -> bool {
    let name = row.name;
    let fine = match context.negation {
        Negation::None => true,
        Negation::No => row.extra.no,
        Negation::Default => row.extra.default,
    };
    if !fine {
        context.report.push(
            Diagnostic::alert(line.span(1), format!("negation/default is not supported for option '{name}'."))
                .with_form(Form::ParsingTight),
        );
        return false;
    }
    if matches!(row.status, Status::Removed(_)) {
        return true;
    }
    let long = format!("option {name}");
    let first = if name == "forwarded" { long.as_str() } else { name };
    let place = row.extra.place;
    if !place.is_idle_in(context.holder.section) {
        return place.admits(context.holder, line.span(1), first, &long, &mut context.report);
    }
    let is_switch = row.extra.default && !PASSED_OVER.contains(&name);
    if is_switch && context.report.too_many(line, 2, &long) {
        return false;
    }
    place.admits(context.holder, line.span(1), first, &long, &mut context.report);
    match row.status {
        // HAProxy reports an unknown option here, after its warning.
        _ if is_switch && context.negation == Negation::None => {
            let message = format!("unknown option '{name}'; did you mean '{name}' maybe ?");
            let hint = format!("remove the line: {} has no use for it", context.holder.describe());
            context.report.push(Diagnostic::alert(line.span(1), message).with_hint(hint));
        }
        _ if is_switch => {
            context.report.tight(line.span(1), format!("negation/default is not supported for option '{name}'."));
        }
        Status::Supported(parse) | Status::Group(parse) if !PASSED_OVER.contains(&name) => {
            check_line(context, line, parse)
        }
        _ => {}
    }
    false
}

/// Returns whether the line switches its option on; `None` for `default`. `Err` if it has an extra argument.
fn switched(context: &mut ProxyContext<'_>, line: &Line) -> Result<Option<bool>, ()> {
    if context.report.too_many(line, 2, &format!("option {}", line.text(1))) {
        return Err(());
    }
    Ok(match context.negation {
        Negation::None => Some(true),
        Negation::No => Some(false),
        Negation::Default => None,
    })
}

/// Reads an option that is on or off, and off by default.
fn boolean(context: &mut ProxyContext<'_>, line: &Line, set: impl FnOnce(&mut ProxyContext<'_>, bool)) {
    if let Ok(on) = switched(context, line) {
        set(context, on.unwrap_or(false));
    }
}
