//! Plans the threads of this run on this machine. Must never bind a thread: the workers bind themselves.

use crate::messages::{Messages, ReportedError};
use crate::topology;
use config::diagnostic::{Diagnostic, Form, ReportOrder, Severity};
use config::spec::GlobalSpec;
use policy::processors::{Plan, plan};
use std::path::Path;

/// Decides how many threads there are and where each of them runs, and writes their number and their groups into
/// `global`, where everything that depends on them looks. What else there is to say of that goes to `found`.
///
/// # Errors
/// When the threads do not fit the groups; what is wrong has been said.
pub fn assign_processors(
    global: &mut GlobalSpec,
    found: &mut Vec<Diagnostic>,
    messages: &mut Messages,
) -> Result<Plan, ReportedError> {
    let topology = topology::read(Path::new(topology::DEVICES), rt::process::available_processors());
    let plan = plan(&global.processors, global.nbthread, &topology).map_err(|sentence| {
        messages.alert(&sentence);
        ReportedError
    })?;
    let said = plan.notices.iter().map(|sentence| (Severity::Notice, sentence));
    for (severity, sentence) in said.chain(plan.warnings.iter().map(|sentence| (Severity::Warning, sentence))) {
        let mut last = Diagnostic::general(severity, sentence).with_form(Form::Bare);
        last.turn = ReportOrder::Last;
        found.push(last);
    }
    global.nbthread = Some(plan.threads());
    global.processors.thread_groups = u32::try_from(plan.groups.len()).ok();
    global.processors.groups = (1..).zip(plan.groups.iter().copied()).collect();
    Ok(plan)
}
