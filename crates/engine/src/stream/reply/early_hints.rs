//! Early hints (RFC 8297): the links of a Link field (RFC 8288) that are sent in a 103 response. Must never follow a link.

/// Link relations that are sent as hints.
const RELATIONS: &[&[u8]] = &[b"preload", b"preconnect", b"dns-prefetch", b"modulepreload", b"prefetch"];

/// Returns the hints of a field's value, separated by commas; `None`: there are none.
pub fn of_field(value: &[u8]) -> Option<Box<[u8]>> {
    let hints: Vec<&[u8]> = split(value, b',').filter(|link| is_hint(link)).collect();
    (!hints.is_empty()).then(|| hints.join(&b", "[..]).into())
}

/// Splits a text at a byte outside of quotes. A backslash in a quoted text escapes the next byte.
fn split(text: &[u8], at: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    let divides = move |byte: &u8| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        escaped = quoted && *byte == b'\\';
        quoted ^= *byte == b'"';
        *byte == at && !quoted
    };
    text.split(divides).map(<[u8]>::trim_ascii)
}

/// Whether a link is a hint. Only the first `rel` counts (RFC 8288, section 3.3), and it has to be well-formed.
fn is_hint(link: &[u8]) -> bool {
    let Some(end) = link.iter().position(|byte| *byte == b'>').filter(|_| link.starts_with(b"<")) else { return false };
    let mut parameters = split(&link[end + 1..], b';');
    if parameters.next().is_none_or(|before| !before.is_empty()) {
        return false;
    }
    let relation = parameters.find_map(|parameter| {
        let at = parameter.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (parameter[..at].trim_ascii(), parameter[at + 1..].trim_ascii());
        name.eq_ignore_ascii_case(b"rel").then_some(value)
    });
    let Some(relation) = relation else { return false };
    let is_known = |one: &[u8]| RELATIONS.iter().any(|known| one.eq_ignore_ascii_case(known));
    match relation.strip_prefix(b"\"") {
        Some(quoted) => {
            quoted.strip_suffix(b"\"").is_some_and(|list| list.split(u8::is_ascii_whitespace).any(is_known))
        }
        None => is_known(relation),
    }
}

#[cfg(test)]
mod tests {
    use super::of_field;

    #[test]
    fn links_are_hints_by_their_first_relation() {
        let rows: &[(&str, Option<&str>)] = &[
            ("</a.css>; rel=preload; as=style", Some("</a.css>; rel=preload; as=style")),
            ("<a.css>; rel=\"preload prefetch\"", Some("<a.css>; rel=\"preload prefetch\"")),
            ("<a.css>; crossorigin; rel=preload", Some("<a.css>; crossorigin; rel=preload")),
            ("<a.css>; rel = preload", Some("<a.css>; rel = preload")),
            ("<a.css>; rel=stylesheet, , <b.js>; rel=preload", Some("<b.js>; rel=preload")),
            ("<a.css>; rel=preload prefetch", None),
            ("<a.css>; rel=stylesheet", None),
            ("<a.css>; rel=preload; rel=stylesheet", Some("<a.css>; rel=preload; rel=stylesheet")),
            ("<a.css>; rel=stylesheet; rel=preload", None),
            (r#"<a.css>; title="foo \"bar\""; rel=preload"#, Some(r#"<a.css>; title="foo \"bar\""; rel=preload"#)),
            (r#"</a>; title="x\"; rel=preload; y=\"z""#, None),
            ("<a.css>; rel=preload, <b.js>; rel=prefetch", Some("<a.css>; rel=preload, <b.js>; rel=prefetch")),
            ("<m.js>; rel=modulepreload", Some("<m.js>; rel=modulepreload")),
            ("<https://cdn.example>; rel=dns-prefetch", Some("<https://cdn.example>; rel=dns-prefetch")),
            ("</a,b.css>; rel=preload", None),
            ("a.css; rel=preload", None),
            ("<a.css; rel=preload", None),
            ("<a.css>x; rel=preload", None),
            ("<a.css>; rel=\"preload", None),
            ("", None),
        ];
        for (value, expected) in rows {
            let found = of_field(value.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{value}");
        }
    }
}
