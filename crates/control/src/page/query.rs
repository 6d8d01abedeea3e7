//! The query of a request for the page: output format, filters, the result of a form. Must never read statistics.

use std::fmt::Write as _;

use wire::http::Head;

use crate::statistics;

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum View {
    #[default]
    Html,
    Csv,
    Typed,
    Json,
    JsonSchema,
}

impl View {
    pub(super) const fn media_type(self) -> &'static [u8] {
        match self {
            Self::Html => b"text/html; charset=utf-8",
            Self::Csv | Self::Typed => b"text/plain",
            Self::Json | Self::JsonSchema => b"application/json",
        }
    }
}

/// Maximum length of a filter in bytes.
pub(super) const LONGEST_SCOPE: usize = 256;

/// The parameters after the page's address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Query {
    pub(super) view: View,
    /// `;up`: only servers that are up.
    pub(super) up: bool,
    /// `;no-maint`: no servers in maintenance.
    pub(super) no_maint: bool,
    /// `;norefresh`: no automatic refresh.
    pub(super) norefresh: bool,
    /// `scope=`: only proxies whose names contain it.
    pub(super) scope: String,
    /// `;st=`: the result of a form.
    pub(super) result: String,
}

impl Query {
    /// Parses the part of a target after `uri`. Unknown words are ignored, as in HAProxy.
    pub(super) fn read(target: &[u8], uri: &[u8]) -> Self {
        let begin = memchr::memmem::find(target, uri).map_or(target.len(), |at| at + uri.len());
        let mut query = Self::default();
        for word in target[begin..].split(|byte| matches!(byte, b';' | b'&' | b'?')) {
            // A form writes an equals sign after the name of an empty field.
            match word.strip_suffix(b"=").unwrap_or(word) {
                b"csv" => query.view = View::Csv,
                b"typed" => query.view = View::Typed,
                b"json" => query.view = View::Json,
                b"json-schema" => query.view = View::JsonSchema,
                b"up" => query.up = true,
                b"no-maint" => query.no_maint = true,
                b"norefresh" => query.norefresh = true,
                _ => query.read_value(word),
            }
        }
        query
    }

    fn read_value(&mut self, word: &[u8]) {
        if let Some(scope) = word.strip_prefix(b"scope=") {
            let scope = super::form::decode(&scope[..scope.len().min(LONGEST_SCOPE)]);
            self.scope = String::from_utf8_lossy(&scope).into_owned();
        } else if let Some(result) = word.strip_prefix(b"st=")
            && result.len() == 4
        {
            self.result = String::from_utf8_lossy(result).into_owned();
        }
    }

    /// Returns the address to redirect to after a form, with its result.
    pub(super) fn location(&self, uri: &[u8], result: &str) -> Vec<u8> {
        let mut location = uri.to_vec();
        location.extend_from_slice(b";st=");
        location.extend_from_slice(result.as_bytes());
        location.extend_from_slice(self.rest().as_bytes());
        location
    }

    /// Returns the parameters of a link that keeps the filters.
    pub(super) fn rest(&self) -> String {
        let mut text = String::new();
        for (is_on, word) in [(self.up, ";up"), (self.no_maint, ";no-maint"), (self.norefresh, ";norefresh")] {
            text.push_str(if is_on { word } else { "" });
        }
        if !self.scope.is_empty() {
            text.push_str("?scope=");
            for byte in self.scope.bytes() {
                let _ = match byte {
                    b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => {
                        text.write_char(char::from(byte))
                    }
                    other => write!(text, "%{other:02X}"),
                };
            }
        }
        text
    }
}

/// Whether a form comes from a page of the host that it is sent to: the host in Origin, or in Referer without Origin,
/// must equal the one in Host (configuration manual, "stats admin"). Clients that send neither are not browsers.
pub(crate) fn is_from_the_page(request: &Head) -> bool {
    let Some(from) = request.first(b"origin").or_else(|| request.first(b"referer")) else { return true };
    let Some(host) = request.host() else { return false };
    let Some(at) = memchr::memmem::find(from, b"://") else { return false };
    let authority = &from[at + 3..];
    let end = authority.iter().position(|byte| *byte == b'/').unwrap_or(authority.len());
    authority[..end].eq_ignore_ascii_case(host)
}

/// Writes the schema of the JSON form (management manual, "show schema json").
pub(super) fn write_json_schema(out: &mut String) {
    out.push_str(statistics::JSON_SCHEMA);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_after_the_address_are_read() {
        for (target, expected) in [
            ("/s", Query::default()),
            ("/s;csv", Query { view: View::Csv, ..Query::default() }),
            ("/s?;csv;scope=b1", Query { view: View::Csv, scope: "b1".into(), ..Query::default() }),
            ("/s;json;up;no-maint", Query { view: View::Json, up: true, no_maint: true, ..Query::default() }),
            ("/s;st=DONE;norefresh", Query { result: "DONE".into(), norefresh: true, ..Query::default() }),
            ("/s;st=<b>", Query::default()),
            ("/s?scope=a%3Cb", Query { scope: "a<b".into(), ..Query::default() }),
            ("http://host/s;typed", Query { view: View::Typed, ..Query::default() }),
            ("/s/x;nonsense", Query::default()),
            ("/s&up=&no-maint=&scope=", Query { up: true, no_maint: true, ..Query::default() }),
        ] {
            assert_eq!(Query::read(target.as_bytes(), b"/s"), expected, "{target}");
        }
    }

    #[test]
    fn a_form_leads_back_to_its_page() {
        let query = Query { up: true, scope: "a b".into(), ..Query::default() };
        assert_eq!(query.location(b"/s", "DONE"), b"/s;st=DONE;up?scope=a%20b");
    }

    #[test]
    fn forms_of_other_sites_are_told_apart() {
        for (field, value, expected) in [
            (&b"x"[..], &b""[..], true),
            (b"origin", b"http://site:80", true),
            (b"origin", b"http://evil", false),
            (b"origin", b"null", false),
            (b"referer", b"https://site:80/s;up", true),
            (b"referer", b"https://site:80.evil/s", false),
            (b"referer", b"http://evil/site:80", false),
        ] {
            let mut request = Head::new();
            request.append(b"host", b"site:80");
            request.append(field, value);
            assert_eq!(is_from_the_page(&request), expected, "{}", String::from_utf8_lossy(value));
        }
    }
}
