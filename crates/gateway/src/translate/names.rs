//! Names of backends, servers and certificates, made of names of objects. Names of different objects differ, whatever they contain.

use crate::snapshot::ObjectKey;

/// The longest name of an object in Kubernetes.
const LONGEST: usize = 253;

/// Returns a part of a name in letters, digits, `-` and `.`. Other bytes are written as `_` and two hexadecimal digits: they do not occur
/// in valid names, so a valid name stays as it is.
pub fn part(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for byte in text.bytes().take(LONGEST) {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.' {
            result.push(char::from(byte));
        } else {
            result.push_str(&format!("_{byte:02x}"));
        }
    }
    result
}

/// Whether an object can have a name in Weir: longer ones are cut, and would no longer differ.
pub fn is_valid(key: &ObjectKey) -> bool {
    !key.name.is_empty() && key.name.len() <= LONGEST && key.namespace.len() <= LONGEST
}

/// Returns the name of the backend that all plain rules with a Service's port share.
pub fn service_backend(service: &ObjectKey, port: u16) -> String {
    format!("{}:{}:{port}", part(&service.namespace), part(&service.name))
}

/// Returns the name of the backend of a rule's match.
pub fn rule_backend(route: &ObjectKey, kind: char, rule: usize, matched: usize) -> String {
    format!("{}:{}:{kind}{rule}.{matched}", part(&route.namespace), part(&route.name))
}

/// Returns the name of what an object contains: a certificate, or a bundle of authorities.
pub fn object(prefix: &str, key: &ObjectKey) -> String {
    format!("{prefix}:{}:{}", part(&key.namespace), part(&key.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_safe_letters_and_differ() {
        for (text, expected) in [
            ("web-1.example", "web-1.example"),
            ("a:b", "a_3ab"),
            ("a_3ab", "a_5f3ab"),
            ("a\nserver b", "a_0aserver_20b"),
            ("a\"'%\\", "a_22_27_25_5c"),
        ] {
            assert_eq!(part(text), expected);
        }
        assert_eq!(part(&"x".repeat(100_000)).len(), LONGEST);
        assert!(!is_valid(&ObjectKey::new("default", "x".repeat(100_000))));
        assert_eq!(service_backend(&ObjectKey::new("default", "web"), 80), "default:web:80");
        assert_eq!(rule_backend(&ObjectKey::new("default", "web"), 'h', 1, 2), "default:web:h1.2");
    }
}
