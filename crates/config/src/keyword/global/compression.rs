//! Process-wide limits of HTTP compression (section 3.2). Must never count a byte.

use super::{GlobalContext, GlobalKeyword, supported, tuning};
use crate::document::Line;
use crate::keyword::argument::{lenient, limit};
use std::ops::RangeInclusive;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("maxcomprate", "<number>", "Maximum input rate of compression, in kilobytes per second.", rate),
    supported("maxcompcpuusage", "<number>", "Processor usage, in percent, above which compression is reduced.", usage),
    supported("maxzlibmem", "<number>", "Maximum memory of compression, in megabytes.", memory),
    supported("tune.comp.maxlevel", "<number>", "Highest compression level.", level),
    tuning(
        "tune.zlib.memlevel",
        "<number>",
        "Memory of zlib for each stream; Weir's compressor has one size, that of level 8.",
    ),
    supported("tune.zlib.windowsize", "<number>", "Window size of the compressor, as a power of two.", window),
];

fn rate(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "maxcomprate") {
        return;
    }
    match line.words.get(1) {
        Some(word) => context.spec.compression.rate = limit(lenient(word, "maxcomprate", &mut context.report)),
        None => context.report.alert(line.span(1), "'maxcomprate' expects an integer argument in kb/s."),
    }
}

fn usage(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "maxcompcpuusage") {
        return;
    }
    let number = line.words.get(1).map(|word| lenient(word, "maxcompcpuusage", &mut context.report));
    match number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number <= 100) {
        Some(number) => context.spec.compression.usage = Some(number),
        None => {
            let message = "'maxcompcpuusage' expects an integer argument between 0 and 100.";
            context.report.alert(line.span(1), message);
        }
    }
}

fn memory(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "maxzlibmem") {
        return;
    }
    match line.words.get(1) {
        Some(word) => context.spec.compression.memory = limit(lenient(word, "maxzlibmem", &mut context.report)),
        None => context.report.alert(line.span(1), "'maxzlibmem' expects an integer argument."),
    }
}

/// Parses a number of the permitted range.
fn number(context: &mut GlobalContext<'_>, line: &Line, permitted: RangeInclusive<u32>, end: &str) -> Option<u32> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    let number = line.words.get(1).map(|word| lenient(word, name, &mut context.report));
    let number = number.and_then(|number| u32::try_from(number).ok()).filter(|number| permitted.contains(number));
    if number.is_none() {
        let (least, most) = permitted.into_inner();
        let message = format!("'{name}' expects a numeric value between {least} and {most}{end}");
        context.report.alert(line.span(1), message);
    }
    number
}

fn level(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(level) = number(context, line, 1..=9, "") {
        context.spec.compression.level = Some(level);
    }
}

fn window(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(window) = number(context, line, 8..=15, ".") {
        context.spec.compression.window = Some(window);
    }
}
