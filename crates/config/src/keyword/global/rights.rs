//! Privileges that the process drops before it serves (section 3.1). Owns the parsing only: names are looked up by the
//! process.

use super::{GlobalContext, GlobalKeyword, supported};
use crate::diagnostic::{Diagnostic, Severity};
use crate::document::Line;
use crate::keyword::argument::{leading_number, only};
use crate::span::Spanned;
use crate::spec::{AccountSpec, Capability, ChrootSpec, Confinement};

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported(
        "chroot",
        "{ <directory> | auto }",
        "Changes the root directory of the process before it serves traffic.",
        chroot,
    ),
    supported("uid", "<number>", "User ID to switch to after start-up.", uid),
    supported("gid", "<number>", "Group ID to switch to after start-up.", gid),
    supported("user", "<name>", "User to switch to after start-up.", user),
    supported("group", "<name>", "Group to switch to after start-up.", group),
    supported("setcap", "<name>[,<name>...]", "Capabilities to keep when switching to another user.", setcap),
    supported(
        "set-dumpable",
        "[ on | off | libs ]",
        "Whether core dumps are allowed after switching users.",
        set_dumpable,
    ),
    supported(
        "insecure-fork-wanted",
        "[no]",
        "Allows new processes and programs while serving; without it, the sandbox forbids them.",
        insecure_fork_wanted,
    ),
    supported(
        "insecure-setuid-wanted",
        "",
        "Allows executed programs to gain privileges from set-user-ID files.",
        insecure_setuid_wanted,
    ),
    supported(
        "confine",
        "{ auto | off | strict }",
        "Weir's own: restrictions of the process after start-up: those without cost (auto), everything that serving \
         does not need (strict), or none.",
        confine,
    ),
];

fn chroot(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "chroot") {
        return;
    }
    if context.spec.rights.chroot.is_some() {
        context.report.warning(line.span(0), "'chroot' is already specified. Continuing.");
        return;
    }
    match line.text(1) {
        "" => context.report.alert(line.span(1), "'chroot' expects a directory as an argument."),
        "auto" => context.spec.rights.chroot = Some(ChrootSpec::Auto),
        directory => context.spec.rights.chroot = Some(ChrootSpec::Directory(directory.to_owned())),
    }
}

/// HAProxy labels a second user or group an alert and continues with the first one.
fn is_known(context: &mut GlobalContext<'_>, line: &Line, known: bool, what: &str) -> bool {
    if known {
        let message = format!("{what} already specified. Continuing.");
        context.report.push(Diagnostic::new(Severity::Notice, line.span(0), message));
    }
    known
}

/// Parses a number; other text is read as far as it is a number, with a warning.
fn number(context: &mut GlobalContext<'_>, line: &Line, instead: &str) -> Option<AccountSpec> {
    let name = line.keyword();
    let Some(word) = line.words.get(1) else {
        context.report.alert(line.span(1), format!("'{name}' expects an integer argument."));
        return None;
    };
    let (value, clean) = leading_number(&word.text);
    if !clean {
        let message = format!(
            " {name}: string '{}' is not a number.\n   | You might want to use the '{instead}' parameter to use a \
             system {instead} name.",
            word.text
        );
        context.report.warning(word.span, message);
    }
    u32::try_from(value).ok().filter(|value| *value > 0).map(AccountSpec::Number)
}

fn uid(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "uid") {
        return;
    }
    let known = context.spec.rights.user.is_some();
    if !is_known(context, line, known, "user/uid")
        && let Some(account) = number(context, line, "user")
    {
        context.spec.rights.user = Some(Spanned::new(account, line.span(1)));
    }
}

fn gid(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "gid") {
        return;
    }
    let known = context.spec.rights.group.is_some();
    if !is_known(context, line, known, "group/gid")
        && let Some(account) = number(context, line, "group")
    {
        context.spec.rights.group = Some(Spanned::new(account, line.span(1)));
    }
}

/// Parses an account name. Whether the account exists is checked by the process.
fn account(context: &mut GlobalContext<'_>, line: &Line, missing: &str) -> Option<Spanned<AccountSpec>> {
    let word = only(line, missing, &mut context.report)?;
    Some(Spanned::new(AccountSpec::Name(word.text.clone()), word.span))
}

fn user(context: &mut GlobalContext<'_>, line: &Line) {
    let known = context.spec.rights.user.is_some();
    if !is_known(context, line, known, "user/uid") {
        context.spec.rights.user = account(context, line, "cannot find user id for ''");
    }
}

fn group(context: &mut GlobalContext<'_>, line: &Line) {
    let known = context.spec.rights.group.is_some();
    if !is_known(context, line, known, "group/gid") {
        context.spec.rights.group = account(context, line, "cannot find group id for ''");
    }
}

fn setcap(context: &mut GlobalContext<'_>, line: &Line) {
    const SUPPORTED: &str = "Supported ones are: cap_net_raw, cap_net_admin, cap_net_bind_service and cap_sys_admin.";
    let text = line.text(1);
    if text.is_empty() {
        let message = format!("'setcap' : missing capability name(s).  {SUPPORTED}");
        return context.report.alert(line.span(1), message);
    }
    for name in text.split(',') {
        match Capability::ALL.into_iter().find(|capability| capability.name() == name) {
            Some(capability) => context.spec.rights.capabilities.push(capability),
            None => {
                let message = format!("'setcap' : unsupported capability '{name}'.  {SUPPORTED}");
                return context.report.alert(line.span(1), message);
            }
        }
    }
}

fn set_dumpable(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "set-dumpable") {
        return;
    }
    let on = match line.text(1) {
        // Weir is a single file: it has no libraries to keep a copy of.
        "" | "on" | "libs" => true,
        "off" => false,
        other => {
            let message = format!("'set-dumpable' only supports 'on' and 'off' as an argument, found '{other}'.");
            return context.report.alert(line.span(1), message);
        }
    };
    context.spec.rights.dumpable = Some(on && !context.negated);
}

fn insecure_fork_wanted(context: &mut GlobalContext<'_>, line: &Line) {
    if !context.report.too_many(line, 1, "insecure-fork-wanted") {
        context.spec.rights.fork_wanted = !context.negated;
    }
}

fn insecure_setuid_wanted(context: &mut GlobalContext<'_>, line: &Line) {
    if !context.report.too_many(line, 1, "insecure-setuid-wanted") {
        context.spec.rights.setuid_wanted = true;
    }
}

fn confine(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "confine") {
        return;
    }
    context.spec.rights.confine = match line.text(1) {
        "auto" => Confinement::Auto,
        "off" => Confinement::Off,
        "strict" => Confinement::Strict,
        other => {
            let message = format!("'confine' expects 'auto', 'off' or 'strict' but got '{other}'.");
            return context.report.alert(line.span(1), message);
        }
    };
}
