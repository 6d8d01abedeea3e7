//! Which sections may inherit the rules of a `defaults` section: those of one side, and no other `defaults` section
//! (configuration manual, section 4.2). Must never change what is inherited.

use super::place::Section;
use super::rule::{QUIC_INITIAL, RuleSets, TCP_REQUEST_CONNECTION, TCP_REQUEST_SESSION, TCP_RESPONSE_CONTENT};
use crate::spec::RulesSpec;

/// Kinds of sections that use a `defaults` section.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Users {
    frontends: bool,
    backends: bool,
}

/// Returns the error of a section that inherits from a `defaults` section with these rules, which is at `place`.
pub(super) fn refusal(section: Section, rules: &RulesSpec, users: &mut Users, place: &str) -> Option<String> {
    // Rules on the first packets of QUIC connections are inherited by all.
    if rules.rules.iter().all(|rule| rule.set == QUIC_INITIAL) {
        return None;
    }
    let has = |sets: RuleSets| rules.rules.iter().any(|rule| rule.set & sets != 0);
    let at = format!("(defaults section at {place})");
    let other = match section {
        Section::Defaults => {
            return Some(format!(
                "a defaults section cannot inherit from a defaults section defining TCP/HTTP rules {at}."
            ));
        }
        Section::Listen | Section::UdpLb => {
            return Some("a listen section cannot inherit from a defaults section defining TCP/HTTP rules.".to_owned());
        }
        Section::Frontend => {
            users.frontends = true;
            users.backends
        }
        Section::Backend => {
            users.backends = true;
            users.frontends
        }
    };
    if other {
        return Some(format!(
            "frontends and backends cannot inherit from the same defaults section if it defines TCP/HTTP rules {at}."
        ));
    }
    if section == Section::Backend && has(TCP_REQUEST_CONNECTION | TCP_REQUEST_SESSION) {
        return Some(format!(
            "a backend section cannot inherit from a defaults section defining 'tcp-request connection' or \
             'tcp-request session' rules {at}."
        ));
    }
    (section == Section::Frontend && has(TCP_RESPONSE_CONTENT)).then(|| {
        format!("a frontend section cannot inherit from a defaults section defining 'tcp-response content' rules {at}.")
    })
}
