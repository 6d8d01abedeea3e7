//! Settings of all listening sockets of a type (section 3.1).

use super::{GlobalContext, GlobalKeyword, supported};
use crate::diagnostic::{Diagnostic, Severity};
use crate::document::Line;
use crate::keyword::bind::owner::account_number;
use crate::span::Spanned;
use crate::spec::AccountSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[supported(
    "unix-bind",
    "[ prefix <prefix> ] [ mode <mode> ] [ user <user> ] [ uid <uid> ] [ group <group> ] [ gid <gid> ]",
    "Prefix, owner and permissions of UNIX listening sockets.",
    unix_bind,
)];

fn unix_bind(context: &mut GlobalContext<'_>, line: &Line) {
    let mut at = 1;
    while !line.text(at).is_empty() {
        let value = line.text(at + 1).to_owned();
        let account = |account| Some(Spanned::new(account, line.span(at + 1)));
        let unix_bind = &mut context.spec.unix_bind;
        match line.text(at) {
            "prefix" if unix_bind.prefix.is_some() => {
                // HAProxy labels it an alert, and continues with the first one.
                let message = "unix-bind 'prefix' already specified. Continuing.";
                context.report.push(Diagnostic::new(Severity::Notice, line.span(at), message));
            }
            "prefix" if value.is_empty() => {
                context.report.alert(line.span(at), "unix_bind 'prefix' expects a path as an argument.");
                return;
            }
            "prefix" => unix_bind.prefix = Some(value),
            // As `strtol` parses it: octal digits as far as they go.
            "mode" => unix_bind.mode = Some(octal(&value)),
            "uid" => unix_bind.user = account(AccountSpec::Number(account_number(&value))),
            "gid" => unix_bind.group = account(AccountSpec::Number(account_number(&value))),
            "user" => unix_bind.user = account(AccountSpec::Name(value)),
            "group" => unix_bind.group = account(AccountSpec::Name(value)),
            _ => {
                let message =
                    "'unix-bind' only supports the 'prefix', 'mode', 'uid', 'gid', 'user' and 'group' options.";
                context.report.alert(line.span(at), message);
                return;
            }
        }
        at += 2;
    }
}

fn octal(text: &str) -> u32 {
    let digits = text.len() - text.trim_start_matches(|found: char| found.is_digit(8)).len();
    u32::from_str_radix(&text[..digits], 8).unwrap_or(0)
}
