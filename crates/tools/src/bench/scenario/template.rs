//! Text with placeholders: `{port}` in a command line or a configuration file. Must never depend on the meaning of a
//! name.

use std::collections::BTreeMap;

/// Values of placeholders by name.
pub type Values = BTreeMap<String, String>;

/// Maximum size of a text after its placeholders are replaced, in bytes.
const LONGEST: usize = 16 << 20;

/// Replaces names in braces: a lower case letter, then lower case letters, digits and `_`. Other
/// braces are kept, and `{{name}}` becomes `{name}`.
///
/// # Errors
/// A message with the name that has no value.
pub fn fill(text: &str, values: &Values) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let literal = rest.strip_prefix("{{").and_then(name);
        if let Some(name) = literal.filter(|name| rest[2 + name.len()..].starts_with("}}")) {
            out.push_str(&rest[1..name.len() + 3]);
            rest = &rest[name.len() + 4..];
        } else if let Some(name) = name(&rest[1..]) {
            let value = values.get(name).ok_or_else(|| unknown(name, values))?;
            out.push_str(value);
            rest = &rest[name.len() + 2..];
        } else {
            out.push('{');
            rest = &rest[1..];
        }
        if out.len() > LONGEST {
            return Err("grows beyond 16 MB when its placeholders are filled in".to_owned());
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Whether a text is a valid name of a placeholder.
#[must_use]
pub fn is_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Returns the name that is followed by a closing brace.
fn name(text: &str) -> Option<&str> {
    let name = &text[..text.find('}')?];
    is_name(name).then_some(name)
}

fn unknown(name: &str, values: &Values) -> String {
    let known: Vec<_> = values.keys().map(|known| format!("{{{known}}}")).collect();
    format!(
        "{{{name}}} stands for nothing; known are {} ({{{{{name}}}}} writes the braces themselves)",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        [("port", "80"), ("origin", "127.0.0.1:81"), ("own_1", "{port}")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    #[test]
    fn names_are_filled_in_and_other_braces_stay() {
        let rows = [
            ("", ""),
            ("bind :{port}", "bind :80"),
            ("{origin}{port}", "127.0.0.1:8180"),
            ("events { worker_connections 7; }", "events { worker_connections 7; }"),
            ("%{+Q}o ${HOME} {2,3} {} {", "%{+Q}o ${HOME} {2,3} {} {"),
            ("{{port}} {{{port}}}", "{port} {{port}}"),
            ("{{ {port} }}", "{{ 80 }}"),
            ("{own_1}", "{port}"),
            ("ü{port}ü", "ü80ü"),
        ];
        for (text, filled) in rows {
            assert_eq!(fill(text, &values()).as_deref(), Ok(filled), "{text}");
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_those_that_are_known() {
        let error = fill("listen {prot}", &values()).unwrap_err();
        assert!(error.starts_with("{prot} stands for nothing; known are {origin}, {own_1}, {port}"), "{error}");
    }
}
