//! Certificates loaded by name (section 12.7).

use super::{SectionContext, SectionKeyword, supported};
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::keyword::load_options;
use crate::spec::{CrtStoreSpec, LoadSpec};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("crt-base", "<directory>", "Base directory of certificates.", base),
    supported("key-base", "<directory>", "Base directory of private keys.", base),
    supported("load", "[crt <file>] [<option> <value>]...", "Loads a certificate.", load),
];

/// Base directories of the lines of the open section.
#[derive(Debug, Default)]
pub(crate) struct Bases {
    certificates: Option<String>,
    keys: Option<String>,
}

/// Opens a section; several may have the same name.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    if let Some(extra) = line.words.get(2) {
        context.report.alert(extra.span, "'crt-store' section only supports a <name> argument.");
        return false;
    }
    context.bases = Bases::default();
    let section = CrtStoreSpec { span: line.whole(), name: line.text(1).to_owned(), loads: Vec::new() };
    context.content.crt_stores.push(section);
    true
}

/// Returns the start of messages about a line of the section.
fn head(context: &SectionContext<'_>, line: &Line) -> String {
    format!("parsing [{}] : ", context.around.place(line.span(0)))
}

fn base(context: &mut SectionContext<'_>, line: &Line) {
    let keyword = line.keyword();
    let Some(word) = line.words.get(1).filter(|word| !word.text.is_empty()) else {
        let message = format!("{}'{keyword}' requires a <path> argument.", head(context, line));
        context.report.alert(line.span(1), message);
        return;
    };
    let place = if keyword == "crt-base" { &mut context.bases.certificates } else { &mut context.bases.keys };
    *place = Some(word.text.clone());
}

fn load(context: &mut SectionContext<'_>, line: &Line) {
    let head = head(context, line);
    let mut load = LoadSpec {
        span: line.whole(),
        crt_base: context.bases.certificates.clone(),
        key_base: context.bases.keys.clone(),
        folder: context.around.paths.folder(line.span(0), context.around.sources),
        ..LoadSpec::default()
    };
    let mut seen = Vec::new();
    for pair in line.arguments().chunks(2) {
        let keyword = &pair[0];
        let name = keyword.text.as_str();
        if !load_options::is_option(name) {
            let message = format!("{head}'load {name}' in section 'crt-store': unknown keyword '{name}'.");
            let known = crate::suggest::nearest(name, super::crt_store_load::TABLE.iter().map(|row| row.name));
            let hint = known.map(|known| format!("write '{known}'"));
            let mut diagnostic = Diagnostic::alert(keyword.span, message);
            diagnostic.hint = hint;
            context.report.push(diagnostic);
            return;
        }
        if seen.contains(&name) {
            context.report.warning(keyword.span, format!("'{name}' already specified, overwriting."));
        }
        seen.push(name);
        match load_options::read(&mut load, keyword, pair.get(1)) {
            Ok(()) => {}
            Err((span, message)) => context.report.alert(span, format!("{head}{message}")),
        }
    }
    if load.crt.is_none() {
        let message = format!("{head}'load' in section 'crt-store': mandatory 'crt' parameter not found.");
        context.report.alert(line.span(0), message);
        return;
    }
    if let Some(section) = context.content.crt_stores.last_mut() {
        section.loads.push(load);
    }
}
