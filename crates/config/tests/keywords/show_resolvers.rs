//! Name servers, as text.

use super::{address, field};
use std::fmt::Write as _;
use weir_config::spec::{HoldSpec, NameserverSpec, ResolversSpec};

/// A `resolvers` section.
pub fn show(section: &ResolversSpec, out: &mut String) {
    let ResolversSpec { span, name, nameservers, payload, retries, timeout_resolve, timeout_retry, hold } = section;
    let _ = write!(out, "resolvers {} @{}", name.value, span.line);
    field(out, "payload", payload, &512);
    field(out, "retries", retries, &3);
    field(out, "resolve", timeout_resolve, &1_000);
    field(out, "retry", timeout_retry, &1_000);
    changed!(out, hold, HoldSpec::default(), HoldSpec { valid, obsolete, nx, refused, timeout, other } but {});
    out.push('\n');
    for one in nameservers {
        match one {
            NameserverSpec::Named { name, address: at, tls } => {
                let ssl = if tls.is_some() { " ssl" } else { "" };
                let _ = writeln!(out, "  nameserver@{} {} {}{ssl}", at.span.line, name.value, address(&at.value));
            }
            NameserverSpec::OfSystem(span) => {
                let _ = writeln!(out, "  of the system@{}", span.line);
            }
        }
    }
}
