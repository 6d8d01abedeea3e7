//! Whether two definitions of one certificate are the same (configuration manual, section 12.7.1). Must never load anything.

use config::span::{Span, Spanned};
use config::spec::LoadSpec;

/// What has brought a certificate into the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A `crt-store`: lines may refer to it without saying what it is made of.
    Store(Span),
    /// A line that says so.
    Line,
    /// A line that names its file alone.
    File,
}

/// In which of its parts a certificate differs from what was defined before, a line each, as HAProxy says it. `None`: in
/// nothing that counts.
pub(super) fn differences(before: &LoadSpec, origin: Origin, now: &LoadSpec) -> Option<String> {
    if !now.has_options() && matches!(origin, Origin::Store(_)) {
        return None;
    }
    let file = |file: &Option<Spanned<String>>| {
        let text = file.as_ref().map_or("(null)", |file| file.value.as_str());
        format!("'{text}'")
    };
    let update = |update: Option<bool>| match update {
        Some(true) => "'on'",
        Some(false) => "'off'",
        None => "'default' (ocsp-update.mode off)",
    };
    let mut lines = Vec::new();
    let files = [
        ("key", &before.key, &now.key),
        ("ocsp", &before.ocsp, &now.ocsp),
        ("issuer", &before.issuer, &now.issuer),
        ("sctl", &before.sctl, &now.sctl),
    ];
    for (name, before, now) in files.into_iter().filter(|(_, before, now)| before != now) {
        lines.push(format!("- different parameter '{name}' : previously {} vs {}", file(before), file(now)));
    }
    if before.ocsp_update.unwrap_or(false) != now.ocsp_update.unwrap_or(false) {
        let (before, now) = (update(before.ocsp_update), update(now.ocsp_update));
        lines.push(format!("- different parameter 'ocsp-update' : previously {before} vs {now}"));
    }
    if lines.is_empty() {
        return None;
    }
    let head = match origin {
        Origin::File => "Can't use the certificate previously defined without any keyword with these keywords:\n",
        Origin::Line if !now.has_options() => {
            "Can't use the certificate previously defined with keywords without these keywords:\n"
        }
        _ => "",
    };
    Some(format!("{head}{}", lines.join("\n")))
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
        let key = |before: &str, now: &str| format!("- different parameter 'key' : previously {before} vs {now}");
        let rows = [
            (&none, Origin::File, &none, None),
            (&a, store, &none, None),
            (&a, store, &a, None),
            (&none, Origin::File, &off, None),
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
            assert_eq!(differences(before, origin, now), expected);
        }
    }
}
