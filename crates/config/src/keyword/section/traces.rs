//! Traces (section 12.1). Must never depend on a source: the words are kept as written.

use super::{SectionContext, SectionKeyword, supported};
use crate::document::Line;
use crate::spec::TraceLineSpec;

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[supported(
    "trace",
    "<source> <argument>...",
    "Configures a trace, as the command of the runtime API does.",
    trace,
)];

/// Opens a section. There may be several, without names.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    !context.report.too_many(line, 1, "traces")
}

fn trace(context: &mut SectionContext<'_>, line: &Line) {
    let words = line.arguments().iter().map(|word| word.text.clone()).collect();
    context.content.traces.push(TraceLineSpec { span: line.whole(), words });
}
