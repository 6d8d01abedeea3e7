//! Users and groups (section 12.2).

use super::{SectionContext, SectionKeyword, supported};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::keyword::is_name_character;
use crate::spec::{PasswordSpec, UserSpec, UserlistSpec};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("group", "<name> [users <user>[,<user>...]]", "A group.", group),
    supported(
        "user",
        "<name> [password|insecure-password <password>] [groups <group>[,<group>...]]",
        "A user, with a password hashed by crypt(3) or in clear.",
        user,
    ),
];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let name = line.text(1);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in 'userlist' name '{name}'.");
        context.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ParsingTight));
        return false;
    }
    if let Some(extra) = line.words.get(2) {
        let message = format!("'userlist' cannot handle unexpected argument '{}'.", extra.text);
        context.report.alert(extra.span, message);
        return false;
    }
    if context.content.userlists.iter().any(|other| other.name == name) {
        let message = format!("ignoring duplicated userlist '{name}'.");
        context.report.push(Diagnostic::warning(line.span(1), message).with_form(Form::ParsingTight));
        return false;
    }
    context.content.userlists.push(UserlistSpec { name: name.to_owned(), ..UserlistSpec::default() });
    true
}

fn named<'a>(context: &mut SectionContext<'_>, line: &'a Line) -> Option<&'a str> {
    let name = line.words.get(1).map(|word| word.text.as_str());
    if name.is_none() {
        let message = format!("'{}' expects <name> as arguments.", line.keyword());
        context.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ParsingTight));
    }
    name
}

fn duplicated(context: &mut SectionContext<'_>, line: &Line, what: &str) {
    let list = context.content.userlists.last().map_or("", |list| &list.name);
    let message = format!("ignoring duplicated {what} '{}' in userlist '{list}'.", line.text(1));
    context.report.push(Diagnostic::warning(line.span(1), message).with_form(Form::ParsingTight));
}

fn group(context: &mut SectionContext<'_>, line: &Line) {
    let Some(name) = named(context, line) else { return };
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        let message = format!("character '{bad}' is not permitted in 'group' name '{name}'.");
        context.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ParsingTight));
        return;
    }
    let Some(list) = context.content.userlists.last_mut() else { return };
    if list.groups.iter().any(|group| group.0 == name) {
        return duplicated(context, line, "group");
    }
    let mut users = Vec::new();
    for at in (2..line.words.len()).step_by(2) {
        if line.text(at) != "users" {
            let message = "'group' only supports 'users' option.";
            context.report.push(Diagnostic::alert(line.span(at), message).with_form(Form::ParsingTight));
            return;
        }
        users.extend(line.text(at + 1).split(',').filter(|user| !user.is_empty()).map(str::to_owned));
    }
    list.groups.push((name.to_owned(), users, line.span(1)));
}

fn user(context: &mut SectionContext<'_>, line: &Line) {
    let Some(name) = named(context, line) else { return };
    let Some(list) = context.content.userlists.last_mut() else { return };
    if list.users.iter().any(|user| user.name == name) {
        return duplicated(context, line, "user");
    }
    let mut user = UserSpec { name: name.to_owned(), password: None, groups: Vec::new(), span: line.span(1) };
    for at in (2..line.words.len()).step_by(2) {
        let value = line.text(at + 1);
        match line.text(at) {
            "insecure-password" => user.password = Some(PasswordSpec::Clear(value.to_owned())),
            "groups" => user.groups.extend(value.split(',').filter(|group| !group.is_empty()).map(str::to_owned)),
            "password" => user.password = Some(PasswordSpec::Hidden(value.to_owned(), line.span(at + 1))),
            _ => {
                let message = "'user' only supports 'password', 'insecure-password' and 'groups' options.";
                context.report.push(Diagnostic::alert(line.span(at), message).with_form(Form::ParsingTight));
                return;
            }
        }
    }
    list.users.push(user);
}
