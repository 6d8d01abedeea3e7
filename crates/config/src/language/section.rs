//! Keywords that start a section (configuration manual, section 2.1, rules 6 and 7).

use crate::suggest;

/// All of them. Whether a section is supported is not decided here.
pub const SECTIONS: &[&str] = &[
    "acme",
    "backend",
    "bgp",
    "cache",
    "crt-store",
    "defaults",
    "fcgi-app",
    "frontend",
    "global",
    "healthcheck",
    "http-errors",
    "listen",
    "log-forward",
    "log-profile",
    "mailers",
    "namespace_list",
    "peers",
    "resolvers",
    "ring",
    "store",
    "traces",
    "udp-lb",
    "userlist",
];

/// Whether a line that starts with this word starts a section.
pub fn is_section(word: &str) -> bool {
    SECTIONS.contains(&word)
}

/// Returns a hint for a word that is not a section where a section must start.
pub(super) fn hint(word: &str) -> String {
    if word.starts_with('\u{FEFF}') {
        return "the file starts with a byte order mark: save it as UTF-8 without one".into();
    }
    if word == "program" {
        return "HAProxy has removed this section in version 3.3".into();
    }
    match suggest::nearest(word, SECTIONS.iter().copied()) {
        Some(meant) => format!("did you mean '{meant}'? Everything up to the next section is passed over"),
        None => "each file must start with a section like 'global', 'defaults' or 'frontend'; everything up to the \
                 next one is passed over"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_known_and_suggested() {
        assert!(is_section("frontend") && !is_section("Frontend") && !is_section("bind"));
        assert!(hint("fronted").starts_with("did you mean 'frontend'?"));
        assert!(hint("bind").starts_with("each file must start"));
        assert!(hint("\u{FEFF}global").contains("byte order mark"));
    }
}
