//! Log profiles, as text.

use std::fmt::Write as _;

use weir_config::spec::{LogProfileSpec, LogProfileStepSpec};

use super::field;

/// A `log-profile` section.
pub fn show(section: &LogProfileSpec, out: &mut String) {
    let LogProfileSpec { span, name, tag, steps } = section;
    let _ = writeln!(out, "Profile {name} @{} {tag:?}", span.line);
    for LogProfileStepSpec { step, drop, format, structured_data } in steps {
        let _ = write!(out, "  on {step:?} drop={drop}");
        field(out, "format", format, &None);
        field(out, "sd", structured_data, &None);
        out.push('\n');
    }
}
