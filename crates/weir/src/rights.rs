//! Drops privileges between binding sockets and serving: root directory, groups, user, capabilities, in this order
//! (configuration manual, section 3.1). Must never run in a master, which needs its privileges for the next worker.

use crate::files::reason;
use crate::material;
use crate::messages::{Messages, ReportedError};
use config::diagnostic::Diagnostic;
use config::span::Spanned;
use config::spec::{self, AccountSpec, ChrootSpec, Confinement, RightsSpec};
use rt::Folder;
use rt::SocketCalls;
use rt::confine::{Extent, RequiredOperations, confine};
use rt::rights::{self, Capability};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Privileges to drop and to keep, with resolved names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rights {
    /// `user`, `uid`.
    pub user: Option<u32>,
    /// `group`, `gid`.
    pub group: Option<u32>,
    /// `chroot`.
    pub chroot: Option<ChrootSpec>,
    /// `setcap`.
    pub kept: Vec<Capability>,
    /// `set-dumpable`.
    pub dumpable: Option<bool>,
    /// `insecure-fork-wanted`.
    pub fork_wanted: bool,
    /// `insecure-setuid-wanted`.
    pub setuid_wanted: bool,
    /// `confine`.
    pub confine: Confinement,
}

/// Resolves accounts while the system's database is still accessible. Unknown ones are reported in `out`.
pub fn look_up(written: &RightsSpec, out: &mut Vec<Diagnostic>) -> Rights {
    Rights {
        user: account(written.user.as_ref(), "user", material::user, out),
        group: account(written.group.as_ref(), "group", material::group, out),
        chroot: written.chroot.clone(),
        kept: written.capabilities.iter().copied().map(capability).collect(),
        dumpable: written.dumpable,
        fork_wanted: written.fork_wanted,
        setuid_wanted: written.setuid_wanted,
        confine: written.confine,
    }
}

fn account(
    written: Option<&Spanned<AccountSpec>>,
    kind: &str,
    find: impl Fn(&str) -> io::Result<Option<u32>>,
    out: &mut Vec<Diagnostic>,
) -> Option<u32> {
    let written = written?;
    let name = match &written.value {
        AccountSpec::Number(number) => return Some(*number),
        AccountSpec::Name(name) => name,
    };
    let found = find(name);
    if let Ok(Some(number)) = found {
        return Some(number);
    }
    // The error number and its message in HAProxy's format: an unknown name has none.
    let why = match found.err() {
        None => "0:Success".to_owned(),
        Some(error) => format!("{}:{}", error.raw_os_error().unwrap_or(0), reason(&error)),
    };
    out.push(Diagnostic::alert(written.span, format!("cannot find {kind} id for '{name}' ({why})")));
    None
}

const fn capability(written: spec::Capability) -> Capability {
    match written {
        spec::Capability::NetRaw => Capability::NetRaw,
        spec::Capability::NetAdmin => Capability::NetAdmin,
        spec::Capability::NetBindService => Capability::NetBindService,
        spec::Capability::SysAdmin => Capability::SysAdmin,
    }
}

/// Drops privileges; files of `folders` stay writable. Call it when everything is bound and written, before any thread
/// is started.
///
/// # Errors
/// A step failed; reported through `messages`. The process must not serve then.
pub fn give_up(rights: &Rights, folders: &[Arc<Folder>], messages: &mut Messages) -> Result<(), ReportedError> {
    // The time zone is read once; its file is outside of the chroot.
    let _ = rt::local_offset(0);
    let was_superuser = rt::process::is_superuser();
    let (user, group) = rt::process::identity();
    warn_of_too_much(rights, was_superuser, messages);
    jail(rights.chroot.as_ref(), messages)?;
    if rights.user.or(rights.group).is_some_and(|number| number > 0) && !rights::leave_other_groups() {
        messages.warning(
            "Failed to drop supplementary groups. Using 'gid'/'group' without 'uid'/'user' is generally useless.",
        );
    }
    let refused = |what: &str, number: u32, error: &io::Error, messages: &mut Messages| {
        messages.alert(&format!("Cannot set {what} {number} : {}", reason(error)));
        ReportedError
    };
    if let Some(wanted) = rights.group.filter(|wanted| *wanted > 0 && *wanted != group) {
        rights::change_group(wanted).map_err(|error| refused("gid", wanted, &error, messages))?;
    }
    match rights.user.filter(|wanted| *wanted > 0 && *wanted != user) {
        Some(wanted) => {
            rights::change_user(wanted, &rights.kept).map_err(|error| refused("uid", wanted, &error, messages))?;
        }
        None if !was_superuser && !rights.kept.is_empty() => use_capabilities(rights, messages),
        None => {}
    }
    set_dumpable(rights, messages);
    forbid_the_rest(rights, folders, messages)
}

/// HAProxy's warning about a process that keeps all privileges.
fn warn_of_too_much(rights: &Rights, is_superuser: bool, messages: &mut Messages) {
    if is_superuser && rights.chroot.is_none() {
        messages.warning(
            "Weir was started as root without any 'chroot' directive. A chroot limits filesystem access of an intruder \
             to a single, preferably empty, directory. It is strongly recommended to enable this feature, via 'chroot \
             auto' in the global section. If you have good reasons for running outside a chroot, explicitly configure \
             'chroot /' to silence this warning.",
        );
    }
    if is_superuser && rights.user.is_none() {
        messages.warning(
            "Weir was started as the root user and does not make use of 'user' nor 'uid' global options to drop the \
             privileges. If running as root is intentional, please make it explicit using 'uid 0' or 'user root'; \
             otherwise prefer an unprivileged user, with the capabilities that it needs ('setcap').",
        );
    }
}

fn jail(chroot: Option<&ChrootSpec>, messages: &mut Messages) -> Result<(), ReportedError> {
    let (changed, name) = match chroot {
        None => return Ok(()),
        Some(ChrootSpec::Auto) => (rights::change_root_to_nothing(), "auto"),
        Some(ChrootSpec::Directory(directory)) => (rights::change_root(Path::new(directory)), directory.as_str()),
    };
    changed.map_err(|error| {
        messages.alert(&format!("Cannot chroot({name}) : {}", reason(&error)));
        ReportedError
    })
}

/// Enables the capabilities that the program's file grants to an unprivileged user.
fn use_capabilities(rights: &Rights, messages: &mut Messages) {
    if !rights::has(&rights.kept).unwrap_or(false) {
        messages.warning(
            "The process lacks some of the capabilities that 'setcap' names: give them to the program's file with \
             setcap(8), or start it as root.",
        );
    }
    if let Err(error) = rights::keep_only(&rights.kept) {
        messages.warning(&format!("Cannot set capabilities : {}", reason(&error)));
    }
}

fn set_dumpable(rights: &Rights, messages: &mut Messages) {
    let done = match rights.dumpable {
        None => return,
        Some(true) => rights::allow_cores(),
        Some(false) => rights::forbid_cores(),
    };
    if let Err(error) = done {
        messages.warning(&format!("Cannot change whether the process may dump a core : {}", reason(&error)));
    }
}

/// Forbids the process to do what serving does not need (gaining privileges, changes of the file system, other system
/// calls): with `confine auto` only measures that cost nothing at run time, with `confine strict` all of them; if one of
/// those fails, the process does not serve.
fn forbid_the_rest(rights: &Rights, folders: &[Arc<Folder>], messages: &mut Messages) -> Result<(), ReportedError> {
    let extent = match rights.confine {
        Confinement::Off => return Ok(()),
        // A preloaded library may need files and system calls of its own.
        Confinement::Auto if SocketCalls::current() == SocketCalls::Named => return Ok(()),
        Confinement::Auto => Extent::Free,
        Confinement::Strict => Extent::Whole,
    };
    let needs = RequiredOperations {
        programs: rights.fork_wanted,
        gains: rights.setuid_wanted,
        files: rights.dumpable == Some(true),
    };
    let written: Vec<_> = folders.iter().map(|folder| folder.descriptor()).collect();
    let done = confine(needs, extent, &written);
    let mut measures = vec![("programs that gain rights", done.gains), ("changes of the file system", done.files)];
    if extent == Extent::Whole || done.calls.is_some() {
        measures.push(("system calls that serving does not need", done.calls));
    }
    let (mut forbidden, mut missing) = (Vec::new(), Vec::new());
    for (measure, result) in measures {
        match result {
            Some(Ok(())) => forbidden.push(measure),
            Some(Err(error)) => missing.push(format!("{measure} ({})", reason(&error))),
            None => missing.push(format!("{measure} (the configuration asks for more)")),
        }
    }
    if rights.confine == Confinement::Strict && !missing.is_empty() {
        messages.alert(&format!("'confine strict' : cannot forbid {}.", missing.join(", ")));
        return Err(ReportedError);
    }
    let allowed = if missing.is_empty() { String::new() } else { format!("; not forbidden: {}", missing.join(", ")) };
    let forbidden = if forbidden.is_empty() { "nothing".to_owned() } else { forbidden.join(", ") };
    messages.notice(&format!("The process has forbidden itself: {forbidden}{allowed}."));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::span::Span;

    fn written(user: AccountSpec, group: AccountSpec) -> RightsSpec {
        let at = |account| Some(Spanned::new(account, Span::default()));
        RightsSpec { user: at(user), group: at(group), ..RightsSpec::default() }
    }

    #[test]
    fn accounts_are_found_by_name_and_by_number() {
        let mut found = Vec::new();
        let rights = look_up(&written(AccountSpec::Name("root".into()), AccountSpec::Number(7)), &mut found);
        assert_eq!((rights.user, rights.group), (Some(0), Some(7)));
        assert!(found.is_empty());
    }

    #[test]
    fn an_unknown_account_is_an_alert_at_its_place() {
        let mut found = Vec::new();
        let nobody = || AccountSpec::Name("no such account".into());
        let rights = look_up(&written(nobody(), nobody()), &mut found);
        assert_eq!(rights, Rights::default());
        let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "cannot find user id for 'no such account' (0:Success)",
                "cannot find group id for 'no such account' (0:Success)"
            ]
        );
    }
}
