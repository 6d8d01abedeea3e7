//! Mail servers (section 12.3). Must never resolve one.

use super::{SectionContext, SectionKeyword, supported};
use crate::address::{self, AddressRules};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::keyword::is_name_character;
use crate::span::Spanned;
use crate::spec::MailersSpec;
use crate::units::{self, TimeError};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("mailer", "<name> <address>:<port>", "A mail server.", mailer),
    supported("timeout mail", "<time>", "Maximum time to send a mail.", timeout),
];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let name = line.text(1);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in 'mailers' name '{name}'.");
        context.report.alert(line.span(1), message);
        return false;
    }
    if let Some(other) = context.content.mailers.iter().find(|other| other.name == name) {
        let place = context.around.place(other.span);
        let message =
            format!("mailers section '{name}' has the same name as another mailers section declared at {place}.");
        context.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ConfigLateParsing));
        return false;
    }
    context.content.mailers.push(MailersSpec {
        span: line.whole(),
        name: name.to_owned(),
        servers: Vec::new(),
        timeout: 10_000,
    });
    true
}

fn mailer(context: &mut SectionContext<'_>, line: &Line) {
    let (Some(name), Some(word)) = (line.words.get(1), line.words.get(2)) else {
        let message = "'mailer' expects <name> and <addr>[:<port>] as arguments.";
        return context.report.alert(line.span(line.words.len()), message);
    };
    let rules = AddressRules { port_required: true, port_offset: false, ..AddressRules::SERVER };
    match address::parse(&word.text, &rules, context.around.environment) {
        Ok(address) => {
            if let Some(section) = context.content.mailers.last_mut() {
                section.servers.push((name.text.clone(), Spanned::new(address, word.span)));
            }
        }
        Err(error) => context.report.alert(word.span, format!("'mailer {}' : {error}", name.text)),
    }
}

fn timeout(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = line.words.get(2) else {
        return context.report.alert(line.span(2), "'timeout mail' expects <time> as argument.");
    };
    let error = match units::milliseconds(&word.text) {
        Ok(time) => {
            if let Some(warning) = time.leftover_warning(&word.text) {
                context.report.leftover(word.span, warning);
            }
            if let Some(section) = context.content.mailers.last_mut().filter(|_| time.value > 0) {
                section.timeout = time.value;
            }
            return;
        }
        Err(error) => error,
    };
    let message = match error {
        TimeError::Unexpected(found) => format!("unexpected character '{found}' in argument to <timeout mail>."),
        TimeError::Empty | TimeError::Overflow => format!(
            "timer overflow in argument <{}> to <timeout mail>, maximum value is 2147483647 ms (~24.8 days).",
            word.text
        ),
    };
    let diagnostic = Diagnostic::alert(word.span, message).with_form(Form::ParsingTight).with_hint(error.hint());
    context.report.push(diagnostic);
}
