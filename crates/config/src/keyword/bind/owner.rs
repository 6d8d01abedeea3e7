//! Owner and mode of a UNIX socket (section 5.1). These options have no effect on other sockets.

use super::{BindContext, BindOption, supported};
use crate::document::Word;
use crate::keyword::argument::{Arity, leading_number};
use crate::span::Spanned;
use crate::spec::AccountSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[BindOption] = &[
    supported(Arity::One, "mode", "<mode>", "Permissions of a UNIX socket, in octal.", mode),
    supported(Arity::One, "uid", "<number>", "Owner of a UNIX socket, by user ID.", uid),
    supported(Arity::One, "user", "<name>", "Owner of a UNIX socket.", user),
    supported(Arity::One, "gid", "<number>", "Group of a UNIX socket, by group ID.", gid),
    supported(Arity::One, "group", "<name>", "Group of a UNIX socket.", group),
];

fn mode(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let text = value.map_or("", |word| &word.text);
    match u32::from_str_radix(text, 8) {
        Ok(mode) => context.draft.unix_mode = Some(mode),
        Err(_) => context.error(
            value.map_or(keyword.span, |word| word.span),
            format!("'mode' : missing or invalid mode '{text}' (octal integer expected)"),
        ),
    }
}

/// Parses a number as `atol` does.
fn number(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) -> Option<Spanned<AccountSpec>> {
    let Some(word) = value else {
        context.error(keyword.span, format!("'{}' : missing value", keyword.text));
        return None;
    };
    Some(Spanned::new(AccountSpec::Number(account_number(&word.text)), word.span))
}

/// Parses the number of a user or a group as HAProxy does: 32 bits of the result of `atol`.
pub(crate) fn account_number(text: &str) -> u32 {
    leading_number(text).0 as u32
}

fn name(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) -> Option<Spanned<AccountSpec>> {
    let Some(word) = value else {
        context.error(keyword.span, format!("'{0}' : missing {0} name", keyword.text));
        return None;
    };
    Some(Spanned::new(AccountSpec::Name(word.text.clone()), word.span))
}

fn uid(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.listening.user = number(context, keyword, value);
}

fn user(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.listening.user = name(context, keyword, value);
}

fn gid(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.listening.group = number(context, keyword, value);
}

fn group(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.listening.group = name(context, keyword, value);
}
