//! Name constraints (RFC 5280, section 4.2.1.10), evaluated as in OpenSSL. Must never accept a name that cannot be
//! compared.

use x509_parser::asn1_rs::Oid;
use x509_parser::extensions::{GeneralName, GeneralSubtree, NameConstraints};

use super::link::{Link, canonical};
use super::{Notes, code};
use crate::faults::Fault;

/// Maximum number of comparisons for one certificate and one set of constraints.
const MOST: usize = 1 << 16;

/// A name of a certificate, of a type that constraints may have.
enum Name<'a> {
    Directory(Vec<u8>),
    Mail(Vec<u8>),
    Host(Vec<u8>),
    Uri(&'a [u8]),
    Address(&'a [u8]),
    /// A name of another type, by its tag.
    Other(u8),
}

/// Records the certificates whose names violate the constraints of a certificate after them.
pub(super) fn check(chain: &[Link<'_>], notes: &mut Notes<'_>) -> Result<(), Fault> {
    let constrained: Vec<_> =
        chain.iter().enumerate().filter(|(depth, one)| *depth > 0 && one.constraints.is_some()).collect();
    if constrained.is_empty() {
        return Ok(());
    }
    for (depth, certificate) in chain.iter().enumerate().rev() {
        // A self-issued certificate changes the key of an authority, not its name.
        if depth > 0 && certificate.is_self_issued {
            continue;
        }
        let names = names(certificate, depth == 0);
        for (_, above) in constrained.iter().rev().filter(|(above, _)| *above > depth) {
            let Some(constraints) = &above.constraints else { continue };
            let violation = match &names {
                Ok(names) => violation(names, constraints),
                Err(code) => Some(*code),
            };
            if let Some(code) = violation {
                notes.note(code, depth)?;
            }
        }
    }
    Ok(())
}

/// Returns the names of a certificate; for the first one, also the common names that may be hosts if it has no other
/// host names.
fn names<'a>(certificate: &'a Link<'_>, is_first: bool) -> Result<Vec<Name<'a>>, u8> {
    let parsed = &certificate.parsed;
    let mut names = Vec::new();
    if !certificate.subject.is_empty() {
        names.push(Name::Directory(certificate.subject.clone()));
    }
    for mail in parsed.subject().iter_email() {
        // A mail address is an IA5String (RFC 5280, section 4.1.2.6).
        if mail.attr_value().header.tag().0 != 22 {
            return Err(code::NAME_SYNTAX);
        }
        names.push(Name::Mail(mail.attr_value().data.to_vec()));
    }
    let alternative = parsed.subject_alternative_name().map_err(|_| code::NAME_SYNTAX)?;
    let alternative = alternative.map_or(&[][..], |found| &found.value.general_names);
    for name in alternative {
        names.push(match name {
            GeneralName::DNSName(host) => Name::Host(host.as_bytes().to_vec()),
            GeneralName::RFC822Name(mail) => Name::Mail(mail.as_bytes().to_vec()),
            GeneralName::URI(uri) => Name::Uri(uri.as_bytes()),
            GeneralName::IPAddress(address) => Name::Address(address),
            GeneralName::DirectoryName(name) => Name::Directory(canonical(name.as_raw()).ok_or(code::NAME_SYNTAX)?),
            other => Name::Other(tag(other)),
        });
    }
    if is_first && !names.iter().any(|name| matches!(name, Name::Host(_))) {
        for common in parsed.subject().iter_by_oid(&oid_of_common_name()) {
            let value = common.attr_value();
            let Some(text) = u8::try_from(value.header.tag().0).ok().and_then(|tag| super::link::text(tag, value.data))
            else {
                continue;
            };
            if is_host(&text) {
                names.push(Name::Host(text));
            }
        }
    }
    Ok(names)
}

fn oid_of_common_name() -> Oid<'static> {
    x509_parser::oid_registry::OID_X509_COMMON_NAME
}

/// Whether a common name looks like a host name: at least two labels of letters, digits, hyphens and underscores.
fn is_host(name: &[u8]) -> bool {
    let is_label = |label: &[u8]| {
        !label.is_empty()
            && !label.starts_with(b"-")
            && !label.ends_with(b"-")
            && label.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.contains(&b'.') && name.split(|byte| *byte == b'.').all(is_label)
}

/// Returns the error of names under constraints; `None`: they are permitted.
fn violation(names: &[Name<'_>], constraints: &NameConstraints<'_>) -> Option<u8> {
    let permitted = constraints.permitted_subtrees.as_deref().unwrap_or_default();
    let excluded = constraints.excluded_subtrees.as_deref().unwrap_or_default();
    if names.len().saturating_mul(permitted.len() + excluded.len()) > MOST {
        return Some(code::UNSPECIFIED);
    }
    names.iter().find_map(|name| violation_of(name, permitted, excluded).err())
}

fn violation_of(name: &Name<'_>, permitted: &[GeneralSubtree<'_>], excluded: &[GeneralSubtree<'_>]) -> Result<(), u8> {
    let of_kind = |subtree: &&GeneralSubtree<'_>| tag(&subtree.base) == name.tag();
    let (mut is_limited, mut is_permitted) = (false, false);
    for subtree in permitted.iter().filter(of_kind) {
        is_limited = true;
        is_permitted = is_permitted || name.is_within(&subtree.base)?;
    }
    if is_limited && !is_permitted {
        return Err(code::NOT_PERMITTED);
    }
    for subtree in excluded.iter().filter(of_kind) {
        if name.is_within(&subtree.base)? {
            return Err(code::EXCLUDED);
        }
    }
    Ok(())
}

fn tag(name: &GeneralName<'_>) -> u8 {
    match name {
        GeneralName::OtherName(..) => 0,
        GeneralName::RFC822Name(_) => 1,
        GeneralName::DNSName(_) => 2,
        GeneralName::X400Address(_) => 3,
        GeneralName::DirectoryName(_) => 4,
        GeneralName::EDIPartyName(_) => 5,
        GeneralName::URI(_) => 6,
        GeneralName::IPAddress(_) => 7,
        GeneralName::RegisteredID(_) => 8,
        GeneralName::Invalid(tag, _) => u8::try_from(tag.0).unwrap_or(u8::MAX),
    }
}

impl Name<'_> {
    fn tag(&self) -> u8 {
        match self {
            Self::Mail(_) => 1,
            Self::Host(_) => 2,
            Self::Directory(_) => 4,
            Self::Uri(_) => 6,
            Self::Address(_) => 7,
            Self::Other(tag) => *tag,
        }
    }

    /// Whether it is within a constraint of its type.
    fn is_within(&self, base: &GeneralName<'_>) -> Result<bool, u8> {
        match (self, base) {
            (Self::Directory(name), GeneralName::DirectoryName(base)) => {
                Ok(name.starts_with(&canonical(base.as_raw()).ok_or(code::NAME_SYNTAX)?))
            }
            (Self::Host(name), GeneralName::DNSName(base)) => Ok(is_host_within(name, base.as_bytes())),
            (Self::Mail(name), GeneralName::RFC822Name(base)) => is_mail_within(name, base.as_bytes()),
            (Self::Uri(name), GeneralName::URI(base)) => is_uri_within(name, base.as_bytes()),
            (Self::Address(name), GeneralName::IPAddress(base)) => is_address_within(name, base),
            _ => Err(code::CONSTRAINT_KIND),
        }
    }
}

/// Returns the part of `name` before the suffix `base`, compared case-insensitively.
fn before<'a>(name: &'a [u8], base: &[u8]) -> Option<&'a [u8]> {
    let (before, end) = name.split_at_checked(name.len().checked_sub(base.len())?)?;
    end.eq_ignore_ascii_case(base).then_some(before)
}

fn is_host_within(name: &[u8], base: &[u8]) -> bool {
    base.is_empty()
        || before(name, base).is_some_and(|rest| rest.is_empty() || base.starts_with(b".") || rest.ends_with(b"."))
}

fn is_mail_within(name: &[u8], base: &[u8]) -> Result<bool, u8> {
    let at = |text: &[u8]| text.iter().rposition(|byte| *byte == b'@');
    let own = at(name).ok_or(code::NAME_SYNTAX)?;
    let (local, host) = (&name[..own], &name[own + 1..]);
    Ok(match at(base) {
        None if base.starts_with(b".") => before(name, base).is_some_and(|rest| !rest.is_empty()),
        None => host.eq_ignore_ascii_case(base),
        Some(0) => host.eq_ignore_ascii_case(&base[1..]),
        Some(place) => local == &base[..place] && host.eq_ignore_ascii_case(&base[place + 1..]),
    })
}

fn is_uri_within(name: &[u8], base: &[u8]) -> Result<bool, u8> {
    let colon = name.iter().position(|byte| *byte == b':').ok_or(code::NAME_SYNTAX)?;
    let rest = name[colon + 1..].strip_prefix(b"//").ok_or(code::NAME_SYNTAX)?;
    let end = rest.iter().position(|byte| matches!(byte, b':' | b'/')).unwrap_or(rest.len());
    let host = &rest[..end];
    if host.is_empty() {
        return Err(code::NAME_SYNTAX);
    }
    Ok(match base.starts_with(b".") {
        true => before(host, base).is_some_and(|rest| !rest.is_empty()),
        false => host.eq_ignore_ascii_case(base),
    })
}

fn is_address_within(name: &[u8], base: &[u8]) -> Result<bool, u8> {
    if !matches!(name.len(), 4 | 16) || !matches!(base.len(), 8 | 32) {
        return Err(code::NAME_SYNTAX);
    }
    let (network, mask) = base.split_at(base.len() / 2);
    let is_same = |((own, network), mask): ((&u8, &u8), &u8)| (own ^ network) & mask == 0;
    Ok(network.len() == name.len() && name.iter().zip(network).zip(mask).all(is_same))
}
