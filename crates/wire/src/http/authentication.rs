//! Connection-based authentication (NTLM, Negotiate): recognizes the messages that take part in it. Must never check
//! credentials.

use super::Head;

/// The scope of a message's authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bond {
    /// None, or a single request (RFC 9110, section 11).
    None,
    /// The connection: the scheme authenticates connections.
    Connection,
    /// Unknown: a rule has removed a field that may have contained such a scheme.
    Removed,
}

/// Whether a request or its response may have an authentication field. False is exact.
#[inline]
pub fn may_authenticate(request: &Head, response: &Head) -> bool {
    request.fields.names.authenticate(response.fields.names)
}

/// Returns the scope of a request's credentials, according to its current fields.
pub fn credentials(request: &Head) -> Bond {
    bond(request, [b"authorization", b"proxy-authorization"])
}

/// Returns the scope of a response's challenges.
pub fn challenges(response: &Head) -> Bond {
    bond(response, [b"www-authenticate", b"proxy-authenticate"])
}

/// Whether a line of a request's head contains credentials that authenticate the connection.
pub fn logs_connection_in(line: &[u8]) -> bool {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return false };
    let name = &line[..colon];
    let is_one = [&b"authorization"[..], b"proxy-authorization"].iter().any(|own| name.eq_ignore_ascii_case(own));
    is_one && names_connection(&line[colon + 1..])
}

fn bond(head: &Head, names: [&'static [u8]; 2]) -> Bond {
    if !head.fields.names.authenticate(super::name::Names::default()) {
        return Bond::None;
    }
    let mut bond = Bond::Removed;
    for value in names.into_iter().flat_map(|name| head.all(name)) {
        if names_connection(value) {
            return Bond::Connection;
        }
        bond = Bond::None;
    }
    bond
}

/// Whether a field's value contains a connection-based scheme, in any element. Commas in quoted strings also separate:
/// a false positive only prevents the connection from being shared.
fn names_connection(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|element| {
        let element = element.trim_ascii();
        let end = element.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(element.len());
        let scheme = &element[..end];
        // `Negotiate:PKU2U` names a mechanism of the scheme.
        let base = scheme.split(|byte| *byte == b':').next().unwrap_or_default();
        [&b"ntlm"[..], b"negotiate", b"nego2", b"kerberos"].iter().any(|bound| base.eq_ignore_ascii_case(bound))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_that_belong_to_connections() {
        let rows: [(&str, &str, bool); 14] = [
            ("authorization", "Negotiate YII=", true),
            ("authorization", "nTLM TlR=", true),
            ("authorization", "  NEGOTIATE\tYII=", true),
            ("authorization", "Negotiate", true),
            ("authorization", "Basic bmVnb3RpYXRl", false),
            ("authorization", "Negotiated x", false),
            ("authorization", "Bearer NTLM", false),
            ("authorization", "", false),
            ("proxy-authorization", "Nego2 x", true),
            ("www-authenticate", "Basic realm=\"a\", Negotiate", true),
            ("www-authenticate", "Negotiate:PKU2U", true),
            ("www-authenticate", "Digest realm=\"x\"", false),
            ("proxy-authenticate", "Kerberos", true),
            ("x-authenticate", "NTLM", false),
        ];
        for (name, value, expected) in rows {
            let mut head = Head::new();
            head.append(name.as_bytes(), value.as_bytes());
            let found = [credentials(&head), challenges(&head)].contains(&Bond::Connection);
            assert_eq!(found, expected, "{name}: {value}");
            assert_eq!(may_authenticate(&Head::new(), &head), name != "x-authenticate", "{name}");
        }
    }

    #[test]
    fn lines_with_credentials() {
        let rows = [("Authorization: NTLM x\r", true), ("Proxy-Authorization:negotiate\r", true), ("X: NTLM", false)];
        for (line, expected) in rows {
            assert_eq!(logs_connection_in(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn a_field_that_was_removed_is_unknown() {
        let mut head = Head::new();
        assert_eq!((credentials(&head), challenges(&head)), (Bond::None, Bond::None));
        head.append(b"www-authenticate", b"NTLM");
        head.remove_all(b"www-authenticate");
        assert_eq!(challenges(&head), Bond::Removed);
    }
}
