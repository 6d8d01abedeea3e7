//! Parser of `filter trace` (configuration manual, section 9.1). Must never depend on the destination of its messages.

use crate::document::Line;
use crate::keyword::argument::leading_number;
use crate::keyword::proxy::ProxyContext;
use crate::spec::{FilterSpec, TraceSpec};

pub(super) fn read(context: &mut ProxyContext<'_>, line: &Line) {
    let mut trace = TraceSpec::default();
    let mut at = 2;
    while let Some(word) = line.words.get(at) {
        let value = line.words.get(at + 1);
        let complain = |what: &str| format!("'filter' : 'trace' : '{}' {what}", word.text);
        match (word.text.as_str(), value) {
            ("name" | "max-fwd", None) => {
                context.report.alert(line.span(at + 1), complain("option without value"));
                return;
            }
            ("name", Some(_)) if trace.name.is_some() => {
                context.report.alert(word.span, complain("option already defined"));
                return;
            }
            ("name", Some(value)) => trace.name = Some(value.text.clone()),
            ("max-fwd", Some(value)) => {
                let (number, clean) = leading_number(&value.text);
                let Ok(number) = u32::try_from(number) else {
                    context.report.alert(value.span, complain("expect unsigned integer (0 to 4294967295 expected)"));
                    return;
                };
                if !clean {
                    let message = format!("'max-fwd' takes a number; '{}' is read as {number}.", value.text);
                    context.report.diag(value.span, message);
                }
                trace.max_forward = number;
            }
            ("quiet", _) => trace.quiet = true,
            // `random-parsing` applied to a parsing step that filters no longer have.
            ("random-forwarding", _) => trace.random_forwarding = true,
            ("random-parsing", _) => {}
            ("hexdump", _) => trace.hexdump = true,
            (other, _) => {
                context.report.alert(word.span, format!("'filter trace' : unknown keyword '{other}'."));
                return;
            }
        }
        at += if matches!(word.text.as_str(), "name" | "max-fwd") { 2 } else { 1 };
    }
    context.draft.spec.filters.list.push(FilterSpec::Trace(trace));
}
