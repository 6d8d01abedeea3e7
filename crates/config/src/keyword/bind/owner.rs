//! Who may use a UNIX socket (section 5.1). Other sockets have no owner: there, these options say nothing.

use super::{BindContext, BindOption, supported};
use crate::document::Word;
use crate::keyword::argument::{Arity, leading_number};
use crate::span::Spanned;
use crate::spec::AccountSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[BindOption] = &[
    supported(Arity::One, "mode", "<mode>", "Rights of a UNIX socket, in octal.", mode),
    supported(Arity::One, "uid", "<number>", "Owner of a UNIX socket, by number.", uid),
    supported(Arity::One, "user", "<name>", "Owner of a UNIX socket.", user),
    supported(Arity::One, "gid", "<number>", "Group of a UNIX socket, by number.", gid),
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

/// A number the way `atol` reads it.
fn number(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) -> Option<Spanned<AccountSpec>> {
    let Some(word) = value else {
        context.error(keyword.span, format!("'{}' : missing value", keyword.text));
        return None;
    };
    Some(Spanned::new(AccountSpec::Number(account_number(&word.text)), word.span))
}

/// The number of a user or a group as HAProxy reads it: 32 bits of what `atol` makes of the text.
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
