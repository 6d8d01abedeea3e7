//! Compares two definitions of one certificate (configuration manual, section 12.7.1). Must never load anything.

use config::span::{Span, Spanned};
use config::spec::LoadSpec;

/// The source of a certificate's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A `crt-store`: lines may refer to it without specifying its files.
    Store(Span),
    /// A line that specifies its files.
    Line,
    /// A line with only the name of the file.
    File,
}

/// Returns the differences to the previous definition, one per line, in HAProxy's words. `None` if there is no relevant
/// one. `updates`: the value of `ocsp-update.mode`.
pub(super) fn differences(before: &LoadSpec, origin: Origin, now: &LoadSpec, updates: bool) -> Option<String> {
    if !now.has_options() && matches!(origin, Origin::Store(_)) {
        return None;
    }
    let text = |file: &Option<Spanned<String>>| file.as_ref().map(|file| file.value.clone());
    let file = |file: &Option<Spanned<String>>| format!("'{}'", text(file).as_deref().unwrap_or("(null)"));
    let mut lines = Vec::new();
    let files = [
        ("key", &before.key, &now.key),
        ("ocsp", &before.ocsp, &now.ocsp),
        ("issuer", &before.issuer, &now.issuer),
        ("sctl", &before.sctl, &now.sctl),
        ("acme", &before.acme, &now.acme),
        ("keytype", &before.keytype, &now.keytype),
    ];
    for (name, before, now) in files.into_iter().filter(|(_, before, now)| text(before) != text(now)) {
        lines.push(format!("- different parameter '{name}' : previously {} vs {}", file(before), file(now)));
    }
    if before.ocsp_update.unwrap_or(updates) != now.ocsp_update.unwrap_or(updates) {
        lines.push(different_update(before.ocsp_update, now.ocsp_update, updates));
    }
    let head = match origin {
        Origin::File if now.has_options() => {
            "Can't use the certificate previously defined without any keyword with these keywords:\n"
        }
        Origin::Line if !now.has_options() => {
            "Can't use the certificate previously defined with keywords without these keywords:\n"
        }
        _ if lines.is_empty() => return None,
        _ => "",
    };
    Some(format!("{head}{}", lines.join("\n")))
}

/// Returns the line about a different `ocsp-update`. `updates`: the value of `ocsp-update.mode`.
pub(in crate::compile::tls) fn different_update(before: Option<bool>, now: Option<bool>, updates: bool) -> String {
    let update = |update: Option<bool>| match update {
        Some(true) => "'on'",
        Some(false) => "'off'",
        None if updates => "'default' (ocsp-update.mode on)",
        None => "'default' (ocsp-update.mode off)",
    };
    format!("- different parameter 'ocsp-update' : previously {} vs {}", update(before), update(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_key(key: Option<&str>) -> LoadSpec {
        LoadSpec { key: key.map(|key| Spanned::new(key.to_owned(), Span::default())), ..LoadSpec::default() }
    }

    #[test]
    fn definitions_are_the_same_or_told_apart() {
        let store = Origin::Store(Span::default());
        let (none, a, b) = (with_key(None), with_key(Some("a")), with_key(Some("b")));
        let on = LoadSpec { ocsp_update: Some(true), ..LoadSpec::default() };
        let off = LoadSpec { ocsp_update: Some(false), ..LoadSpec::default() };
        let jwt = LoadSpec { jwt: Some(true), ..LoadSpec::default() };
        let acme = LoadSpec { acme: Some(Spanned::new("LE".to_owned(), Span::default())), ..LoadSpec::default() };
        let key = |before: &str, now: &str| format!("- different parameter 'key' : previously {before} vs {now}");
        let rows = [
            (&none, Origin::File, &none, None),
            (&a, store, &none, None),
            (&a, store, &a, None),
            (
                &none,
                Origin::File,
                &off,
                Some("Can't use the certificate previously defined without any keyword with these keywords:\n".to_owned()),
            ),
            (&none, store, &jwt, None),
            (
                &jwt,
                Origin::Line,
                &none,
                Some("Can't use the certificate previously defined with keywords without these keywords:\n".to_owned()),
            ),
            (&acme, store, &b, Some("- different parameter 'key' : previously '(null)' vs 'b'\n- different parameter 'acme' : previously 'LE' vs '(null)'".to_owned())),
            (&a, store, &b, Some(key("'a'", "'b'"))),
            (&a, Origin::Line, &b, Some(key("'a'", "'b'"))),
            (
                &a,
                Origin::Line,
                &none,
                Some(format!(
                    "Can't use the certificate previously defined with keywords without these keywords:\n{}",
                    key("'a'", "'(null)'")
                )),
            ),
            (
                &none,
                Origin::File,
                &on,
                Some(
                    "Can't use the certificate previously defined without any keyword with these keywords:\n- different \
                     parameter 'ocsp-update' : previously 'default' (ocsp-update.mode off) vs 'on'"
                        .to_owned(),
                ),
            ),
            (
                &on,
                Origin::Line,
                &off,
                Some("- different parameter 'ocsp-update' : previously 'on' vs 'off'".to_owned()),
            ),
        ];
        for (before, origin, now, expected) in rows {
            assert_eq!(differences(before, origin, now, false), expected);
        }
        assert_eq!(differences(&off, Origin::Line, &off, true), None);
        let off = differences(&none, Origin::File, &off, true).unwrap();
        assert!(off.ends_with("'ocsp-update' : previously 'default' (ocsp-update.mode on) vs 'off'"), "{off}");
    }
}
