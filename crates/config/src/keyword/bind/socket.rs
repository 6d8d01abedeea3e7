//! Options set on a listening socket, and where it is opened (section 5.1). All of them except `namespace` are ignored
//! on UNIX sockets.

use super::{BindContext, BindOption, supported};
use crate::document::Word;
use crate::keyword::argument::{Arity, leading_number};
use crate::units::{self, TimeError};

/// Every keyword of the family.
pub(super) const TABLE: &[BindOption] = &[
    supported(Arity::One, "interface", "<interface>", "Restricts the socket to a network interface.", interface),
    supported(Arity::One, "namespace", "<name>", "Network namespace of the address.", namespace),
    supported(Arity::None, "transparent", "", "Binds a non-local address.", transparent),
    supported(Arity::None, "tfo", "", "TCP fast open.", tfo),
    supported(Arity::One, "mss", "<size>", "Maximum TCP segment size to announce.", mss),
    supported(
        Arity::One,
        "tcp-ut",
        "<delay>",
        "TCP user timeout: how long sent data may remain unacknowledged.",
        tcp_ut,
    ),
    supported(Arity::One, "tcp-md5sig", "<password>", "Signs TCP segments with MD5.", tcp_md5sig),
    supported(Arity::One, "tcp-ss", "<mode>", "Saves the SYN packet for inspection.", tcp_ss),
    supported(Arity::One, "cc", "<algorithm>", "Congestion control of accepted connections.", cc),
];

/// Maximum length of a password for TCP's MD5 signatures in the kernel, in bytes.
pub(crate) const LONGEST_MD5_PASSWORD: usize = 80;

/// Directory of named network namespaces.
const NAMESPACES: &str = "/var/run/netns";

fn interface(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) => context.draft.listening.interface = Some(word.text.clone()),
        None => context.error(keyword.span, "'interface' : missing interface name"),
    }
}

/// Whether a network namespace of this name exists and can be opened.
pub(crate) fn namespace_exists(name: &str) -> bool {
    !name.contains('/') && std::fs::File::open(format!("{NAMESPACES}/{name}")).is_ok()
}

fn namespace(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) if (context.around.options.has_namespace)(&word.text) => {
            context.draft.listening.namespace = Some(word.text.clone())
        }
        Some(word) => context.error(word.span, format!("'namespace' : Cannot open namespace '{}'.", word.text)),
        None => context.error(keyword.span, "'namespace' : missing namespace id"),
    }
}

fn transparent(context: &mut BindContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.listening.transparent = true;
}

fn tfo(context: &mut BindContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.listening.fast_open = true;
}

fn mss(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'mss' : missing MSS value");
        return;
    };
    match i32::try_from(leading_number(&word.text).0) {
        Ok(size @ (-65535..=-1 | 1..=65535)) => context.draft.listening.mss = Some(size),
        _ => context.error(word.span, "'mss' : expects an MSS with and absolute value between 1 and 65535"),
    }
}

fn tcp_ut(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'tcp-ut' : missing TCP User Timeout value");
        return;
    };
    match units::milliseconds(&word.text) {
        Ok(time) if time.leftover.is_none() => {
            context.draft.listening.user_timeout = Some(time.value).filter(|time| *time > 0);
        }
        Err(error @ TimeError::Overflow) => context.error(word.span, error.message(&word.text, "tcp-ut")),
        _ => context.error(word.span, "'tcp-ut' : expects a positive delay in milliseconds"),
    }
}

fn tcp_md5sig(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'tcp-md5sig' : missing TCP MD5 signature password");
        return;
    };
    if word.text.len() > LONGEST_MD5_PASSWORD {
        let message = format!("'tcp-md5sig' : password too long (at most {LONGEST_MD5_PASSWORD} characters expected)");
        context.error(word.span, message);
        return;
    }
    context.draft.listening.md5_password = Some(word.text.clone());
}

fn tcp_ss(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let mode = value.map_or("", |word| &word.text);
    context.draft.listening.save_syn = match mode {
        "0" => None,
        "1" => Some(1),
        "2" => Some(2),
        _ => {
            let place = value.map_or(keyword.span, |word| word.span);
            context.error(place, "'tcp-ss' : TCP Save SYN option expects an integer argument from 0 to 2");
            None
        }
    };
}

fn cc(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) => context.draft.listening.congestion_control = Some(word.text.clone()),
        None => context.error(keyword.span, "'cc' : missing TCP congestion control algorithm"),
    }
}
