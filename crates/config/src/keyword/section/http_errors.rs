//! A set of error pages (section 12.4).

use super::{SectionContext, SectionKeyword, supported};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::keyword::{error_page, is_name_character};
use crate::spec::HttpErrorsSpec;

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] =
    &[supported("errorfile", "<status> <file>", "File with the complete response for a status.", errorfile)];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let name = line.text(1);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in 'http-errors' name '{name}'.");
        context.report.alert(line.span(1), message);
        return false;
    }
    if let Some(other) = context.content.http_errors.iter().find(|other| other.name == name) {
        let place = context.around.place(other.span);
        let message = format!("http-errors section '{name}' already exists (declared at {place}).");
        context.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ParsingTight));
        return false;
    }
    let section = HttpErrorsSpec { span: line.whole(), name: name.to_owned(), files: Vec::new() };
    context.content.http_errors.push(section);
    true
}

fn errorfile(context: &mut SectionContext<'_>, line: &Line) {
    if line.words.len() < 3 {
        let message = "errorfile: expects <status_code> and <file> as arguments.";
        context.report.alert(line.span(line.words.len()), message);
        return;
    }
    let Some(file) = error_page::line(line, context.around, &mut context.report) else { return };
    if let Some(section) = context.content.http_errors.last_mut() {
        section.files.retain(|other| other.status != file.status);
        section.files.push(file);
    }
}
