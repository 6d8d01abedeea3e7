//! The request target and the Host field: the form, their agreement, and their normal form.
//!
//! As in HAProxy, a port that is the scheme's default (or empty) is removed from an absolute-form target and from its
//! Host; an empty path becomes `/`. Percent-encoding and dots in the path are not interpreted here.

use super::charset::{is_host, is_host_text};
use super::error::Violation;
use super::settle::keep_only;
use crate::http::{Fields, Head, Method, Name};

/// Validates target and Host against each other and normalizes both.
pub(crate) fn normalize(head: &mut Head, accept_unsafe: bool) -> Result<(), Violation> {
    settle_host(head)?;
    match head.target() {
        [b'/', ..] if head.method != Method::Connect => Ok(()),
        b"*" if head.method == Method::Options => Ok(()),
        _ if head.method == Method::Connect => connect(head, accept_unsafe),
        _ => absolute(head, accept_unsafe),
    }
}

/// Validates Host. Several equal ones are merged, different ones are rejected.
#[inline]
fn settle_host(head: &mut Head) -> Result<(), Violation> {
    let fields = &mut head.fields;
    if !fields.names.has(Name::Host) {
        return Ok(());
    }
    if fields.names.are_distinct() {
        let is_valid = fields.known(Name::Host).is_none_or(is_authority);
        return if is_valid { Ok(()) } else { Err(Violation::Host) };
    }
    merge_hosts(fields)
}

#[cold]
fn merge_hosts(fields: &mut Fields) -> Result<(), Violation> {
    let mut first = None;
    let mut count = 0;
    for (index, field) in fields.list.iter().enumerate().filter(|(_, field)| field.name == Name::Host) {
        let value = fields.value_of(field);
        match first {
            None => {
                if !is_authority(value) {
                    return Err(Violation::Host);
                }
                first = Some(index);
            }
            Some(first) if !fields.value_of(&fields.list[first]).eq_ignore_ascii_case(value) => {
                return Err(Violation::HostRepeated);
            }
            Some(_) => {}
        }
        count += 1;
    }
    if let (Some(first), 2..) = (first, count) {
        keep_only(fields, Name::Host, first);
    }
    Ok(())
}

/// Validates a CONNECT target: `host:port` (RFC 9112 section 3.2.3). Host may omit the ports 80 and 443.
fn connect(head: &mut Head, accept_unsafe: bool) -> Result<(), Violation> {
    let target = head.target();
    if matches!(target, [b'/', ..] | b"*") || target.windows(3).any(|bytes| bytes == b"://") {
        return Err(Violation::TargetForm);
    }
    let authority = without_user(target);
    let (name, port) = split_port(authority);
    if !accept_unsafe && (!is_unambiguous(authority) || port.is_none_or(<[u8]>::is_empty)) {
        return Err(Violation::Authority);
    }
    let is_default = matches!(port, Some(b"80" | b"443")) && is_unambiguous(authority);
    let Some(host) = head.host() else { return Ok(()) };
    if host.eq_ignore_ascii_case(authority) {
        if is_default {
            let name = name.to_vec();
            set_host(head, &name);
        }
        return Ok(());
    }
    let (host_name, host_port) = split_port(host);
    let agrees = is_default && host_port.unwrap_or_default().is_empty() && host_name.eq_ignore_ascii_case(name);
    if agrees || accept_unsafe { Ok(()) } else { Err(Violation::HostMismatch) }
}

/// Validates an absolute-form target: `scheme://authority…` (RFC 9112 section 3.2.2).
fn absolute(head: &mut Head, accept_unsafe: bool) -> Result<(), Violation> {
    let target = head.target();
    let Some(scheme) = scheme(target) else { return Err(Violation::TargetForm) };
    let begin = scheme.len() + 3;
    let rest = &target[begin..];
    let full = &rest[..rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len())];
    let path = &rest[full.len()..];
    let authority = without_user(full);
    if !accept_unsafe && !is_unambiguous(authority) {
        return Err(Violation::Authority);
    }
    let bare = if is_unambiguous(authority) { without_default_port(authority, scheme) } else { authority };
    let has_default = bare.len() < authority.len();
    let agrees = head.host().is_none_or(|host| {
        host.eq_ignore_ascii_case(authority) || without_default_port(host, scheme).eq_ignore_ascii_case(bare)
    });
    if !agrees && !accept_unsafe {
        return Err(Violation::HostMismatch);
    }
    let adds_path = path.is_empty() && head.method != Method::Options;
    if !has_default && !adds_path {
        return Ok(());
    }
    let mut normal = target[..begin + full.len() - (authority.len() - bare.len())].to_vec();
    normal.extend_from_slice(if adds_path { b"/" } else { path });
    let bare = bare.to_vec();
    head.set_target(&normal);
    if has_default && head.host().is_some() {
        set_host(head, &bare);
    }
    Ok(())
}

fn set_host(head: &mut Head, host: &[u8]) {
    if let Some(index) = head.fields.list.iter().position(|field| field.name == Name::Host)
        && head.fields.value_of(&head.fields.list[index]) != host
    {
        head.fields.set_value(index, host);
    }
}

/// Returns the scheme before `://` (RFC 3986 section 3.1).
fn scheme(target: &[u8]) -> Option<&[u8]> {
    let colon = target.iter().position(|byte| *byte == b':')?;
    let (scheme, rest) = target.split_at(colon);
    let valid = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    (valid && rest.starts_with(b"://")).then_some(scheme)
}

/// Returns an authority without its user information, up to the last `@`.
fn without_user(authority: &[u8]) -> &[u8] {
    let at = authority.iter().rposition(|byte| *byte == b'@').map_or(0, |at| at + 1);
    &authority[at..]
}

/// Splits off a port: the digits, perhaps none, after the last colon.
fn split_port(authority: &[u8]) -> (&[u8], Option<&[u8]>) {
    let digits = authority.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, port) = authority.split_at(authority.len() - digits);
    match before {
        [name @ .., b':'] => (name, Some(port)),
        _ => (authority, None),
    }
}

fn without_default_port<'a>(authority: &'a [u8], scheme: &[u8]) -> &'a [u8] {
    let (name, port) = split_port(authority);
    match port {
        Some([]) => name,
        Some(b"80") if scheme.eq_ignore_ascii_case(b"http") => name,
        Some(b"443") if scheme.eq_ignore_ascii_case(b"https") => name,
        _ => authority,
    }
}

/// Whether an authority has at most one colon outside of brackets: with more, parsers disagree on the port.
fn is_unambiguous(authority: &[u8]) -> bool {
    let behind = authority.iter().rposition(|byte| *byte == b']').map_or(0, |at| at + 1);
    is_authority(authority) && authority[behind..].iter().filter(|byte| **byte == b':').count() <= 1
}

/// Whether a valid authority that equals Host is left unchanged in any target: one host, without brackets or a user,
/// whose port is not a default one.
pub(crate) fn is_normal_authority(authority: &[u8]) -> bool {
    let Some(colon) = memchr::memchr2(b':', b'[', authority) else { return true };
    let (_, port) = authority.split_at(colon);
    match port {
        [b':', b'8', b'0'] | [b':', b'4', b'4', b'3'] => false,
        [b':', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Whether a text is a host with an optional port, by its characters; brackets are permitted only around a complete
/// host.
pub(crate) fn is_authority(text: &[u8]) -> bool {
    let rest = match text {
        [b'[', literal @ ..] => {
            let Some(end) = literal.iter().position(|byte| *byte == b']') else { return false };
            let (inside, behind) = literal.split_at(end);
            if !inside.iter().all(|byte| is_host(*byte)) || !matches!(behind, [b']'] | [b']', b':', ..]) {
                return false;
            }
            &behind[1..]
        }
        _ => text,
    };
    is_host_text(rest)
}
