//! Settings of multiplexers in percent (section 3.2): from which processor usage glitches end connections, and how far streams may exceed
//! their share. Must never read a count.

use super::GlobalContext;
use crate::document::Line;
use crate::keyword::argument::lenient;

pub(super) fn glitches_usage(context: &mut GlobalContext<'_>, line: &Line) {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return;
    }
    let usage = line.words.get(1).map_or(-1, |word| lenient(word, name, &mut context.report));
    match u32::try_from(usage).ok().filter(|usage| *usage <= 100) {
        Some(usage) => context.spec.tune.glitches.usage = usage,
        None => context.report.alert(line.span(1), format!("'{name}' expects a numeric value between 0 and 100")),
    }
}

pub(super) fn streams_elasticity(context: &mut GlobalContext<'_>, line: &Line) {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return;
    }
    let percent = line.words.get(1).and_then(|word| word.text.parse().ok());
    match percent.filter(|percent: &u32| *percent == 0 || (100..=i32::MAX as u32).contains(percent)) {
        Some(percent) => context.spec.tune.streams_elasticity = percent,
        None => {
            let expected = "expects 0 or a positive percentage value of 100 or above";
            context.report.alert(line.span(1), format!("'{name}' {expected}"));
        }
    }
}
