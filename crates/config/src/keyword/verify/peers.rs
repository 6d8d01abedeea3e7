//! Checks of `peers` sections that require the whole configuration: they contain this instance, and exist
//! where tables name them. Must never check the words of a line.

use crate::diagnostic::{Diagnostic, Form, ReportOrder, Severity};
use crate::keyword::proxy::ProxyDraft;
use crate::keyword::report::Report;
use crate::spec::PeersSpec;

/// Checks all sections, and the tables shared through them.
pub(in crate::keyword) fn peers(drafts: &[ProxyDraft], sections: &mut [PeersSpec], report: &mut Report<'_>) {
    let mut told = Vec::new();
    for draft in drafts.iter().filter(|draft| !draft.spec.disabled && !draft.gaps.base) {
        let Some(wanted) = draft.spec.stick_table.as_ref().and_then(|table| table.peers.as_ref()) else { continue };
        let proxy = &draft.spec.name.value;
        let message = match sections.iter().find(|section| section.name.value == wanted.value) {
            Some(section) if section.disabled || section.local.is_some() || !is_bare(section) => continue,
            Some(section) => {
                told.push(wanted.value.clone());
                let (local, name) = (&section.local_name, &wanted.value);
                format!("Proxy '{proxy}': unable to find local peer '{local}' in peers section '{name}'.")
            }
            None => format!("Proxy '{proxy}': unable to find sync peers '{}'.", wanted.value),
        };
        let mut diagnostic = Diagnostic::alert(wanted.span, message).with_form(Form::Bare);
        let is_known = sections.iter().any(|section| section.name.value == wanted.value);
        let known = crate::suggest::nearest(&wanted.value, sections.iter().map(|section| section.name.value.as_str()));
        diagnostic.hint = known.filter(|_| !is_known).map(|known| format!("there is a section 'peers {known}'"));
        report.push(diagnostic);
    }
    for section in sections.iter_mut().filter(|section| !section.disabled) {
        let name = &section.name.value;
        if section.local.is_none() && !told.contains(name) {
            let local = &section.local_name;
            let message = format!("Removing incomplete section 'peers {name}' (no peer named '{local}').");
            let found = Diagnostic::warning(section.name.span, message).with_form(Form::Bare);
            report.push(found.in_turn(ReportOrder::Sections(0), section.name.span));
        }
        let shards = section.shards;
        for peer in section.peers.iter_mut().filter(|peer| peer.shard > shards && section.local.is_some()) {
            let message = format!(
                "Peers section '{name}': shard ignored for '{}' local peer because {} shard value is greater than the \
                 section number of shards ({shards})",
                peer.name.value, peer.shard
            );
            report.late(Severity::Warning, peer.name.span, message);
            peer.shard = 0;
        }
    }
}

/// Whether the section contains nothing but its name.
fn is_bare(section: &PeersSpec) -> bool {
    section.bind.is_none() && section.peers.is_empty() && section.tables.is_empty() && section.logs.is_empty()
}
