//! Formats variables for `dump_all_vars` (configuration manual, section 7.3.2). Must never show one that is not set.

use super::{Scope, StoredValue, VariableNames, Variables};
use crate::sample::{Text, Value};
use std::fmt::Write as _;

/// The scopes that can be dumped, in order.
pub const SCOPES: [Scope; 5] = [Scope::Session, Scope::Transaction, Scope::Request, Scope::Response, Scope::Process];

/// Writes the variables of one scope, or of all, whose names begin with `prefix`: `name=value`, separated by
/// `delimiter`.
pub fn dump(
    variables: &Variables<'_>,
    known: &VariableNames,
    scope: Option<Scope>,
    prefix: &[u8],
    delimiter: &[u8],
    out: &mut Text<'_>,
) {
    let mut first = true;
    for scope in SCOPES.into_iter().filter(|one| scope.is_none_or(|scope| scope == *one)) {
        variables.read(scope, |store| {
            for (name, stored) in store.iter(scope) {
                let Some(name) = known.text(name).filter(|name| name.as_bytes().starts_with(prefix)) else { continue };
                if !std::mem::take(&mut first) {
                    out.extend(delimiter);
                }
                // An overflow is reported when the text is finished.
                let _ = write!(out, "{}.{name}=", scope.name());
                show(stored, out);
            }
        });
    }
}

fn show(stored: &StoredValue, out: &mut Text<'_>) {
    let _ = match stored.value() {
        Value::Bool(flag) => write!(out, "{flag}"),
        Value::Int(number) => write!(out, "{number}"),
        Value::Ipv4(address) => write!(out, "{address}"),
        Value::Ipv6(address) => write!(out, "{address}"),
        Value::Bin(bytes) => {
            out.extend(b"x");
            bytes.iter().for_each(|byte| out.extend(&base::hex::lower(*byte)));
            Ok(())
        }
        Value::Str(text) | Value::Method(text) => {
            out.extend(b"\"");
            for byte in text {
                match byte {
                    b'"' => out.extend(b"\\\""),
                    b'\\' => out.extend(b"\\\\"),
                    b'\r' => out.extend(b"\\r"),
                    b'\n' => out.extend(b"\\n"),
                    8 => out.extend(b"\\b"),
                    0 => out.extend(b"\\0"),
                    other => out.extend(&[*other]),
                }
            }
            out.extend(b"\"");
            Ok(())
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::tests::Scene;
    use crate::variable::Variable;

    #[test]
    fn values_are_shown_by_their_type() {
        let shown = |scope: Option<Scope>, prefix: &[u8], delimiter: &[u8]| {
            Scene::request("GET", "/", &[]).with(|context| {
                let mut known = VariableNames::default();
                for (name, value) in [
                    ("txn.name", Value::Str(b"John \"Doe\" \\\r\n\x08\0\t")),
                    ("txn.data", Value::Bin(b"Hello")),
                    ("txn.count", Value::Int(-42)),
                    ("sess.active", Value::Bool(true)),
                    ("sess.client", Value::Ipv6(std::net::Ipv6Addr::LOCALHOST)),
                    ("req.method", Value::Method(b"GET")),
                ] {
                    let variable = Variable::parse(name).expect("a name");
                    known.add(&variable);
                    context.variables.set(&variable, value);
                }
                let mut text = context.text(16);
                dump(&context.variables, &known, scope, prefix, delimiter, &mut text);
                String::from_utf8_lossy(text.finish().unwrap_or_default()).into_owned()
            })
        };
        let name = r#"txn.name="John \"Doe\" \\\r\n\b\0"#.to_owned() + "\t\"";
        let all = format!(
            "sess.active=true, sess.client=::1, {name}, txn.data=x48656c6c6f, txn.count=-42, req.method=\"GET\""
        );
        assert_eq!(shown(None, b"", b", "), all);
        assert_eq!(shown(Some(Scope::Transaction), b"", b"; "), format!("{name}; txn.data=x48656c6c6f; txn.count=-42"));
        assert_eq!(shown(None, b"c", b""), "sess.client=::1txn.count=-42");
        assert_eq!(shown(Some(Scope::Process), b"", b", "), "");
    }
}
