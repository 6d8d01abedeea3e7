//! The bytes of a request, head and body. Must never send a head whose lines differ from the requested ones.

use super::Url;
use crate::Outcome;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of a body in bytes: every target holds its whole request.
pub const LARGEST_BODY: u64 = 64 << 20;
/// Maximum size of a head, in bytes.
pub const LARGEST_HEAD: usize = 64 << 10;

/// A body, shared by the URLs that send it.
pub type Body = Arc<[u8]>;

/// Content of a URL's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wording {
    /// The method; the default is GET, or POST with a body.
    pub method: String,
    /// Field lines, in the order of the command line.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Option<Body>,
}

impl Wording {
    /// Builds the whole request; `last`: with `Connection: close`.
    pub(super) fn request(&self, url: &Url, last: bool) -> Result<Vec<u8>, Outcome> {
        let told = |name: &str| self.fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name));
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, url.path);
        if !told("host") {
            push(&mut head, "Host", &url.authority);
        }
        for (name, value) in &self.fields {
            push(&mut head, name, value);
        }
        if let Some(body) = self.body.as_ref().filter(|_| !told("content-length") && !told("transfer-encoding")) {
            push(&mut head, "Content-Length", &body.len().to_string());
        }
        if last && !told("connection") {
            push(&mut head, "Connection", "close");
        }
        head.push_str("\r\n");
        if head.len() > LARGEST_HEAD {
            let length = head.len();
            return Err(Outcome::Misused(format!(
                "{}: its head of {length} bytes is larger than {LARGEST_HEAD}",
                url.written
            )));
        }
        let mut request = head.into_bytes();
        request.extend_from_slice(self.body.as_deref().unwrap_or_default());
        Ok(request)
    }
}

fn push(head: &mut String, name: &str, value: &str) {
    head.push_str(name);
    head.push_str(if value.is_empty() { ":" } else { ": " });
    head.push_str(value);
    head.push_str("\r\n");
}

/// Parses name and value of a field line of `-H`.
///
/// # Errors
/// A description of the expected value.
pub fn check_field(line: &str) -> Result<(String, String), String> {
    let expected = || "a field line such as 'Name: value', without line breaks".to_owned();
    let (name, value) = line.split_once(':').ok_or_else(expected)?;
    let value = value.trim_matches([' ', '\t']);
    let fits = is_token(name) && value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f));
    fits.then(|| (name.to_owned(), value.to_owned())).ok_or_else(expected)
}

/// Checks a method of `-X`.
///
/// # Errors
/// A description of the expected value.
pub fn check_method(text: &str) -> Result<String, String> {
    match text {
        "CONNECT" => Err("a method that is answered; CONNECT makes a tunnel".to_owned()),
        _ if is_token(text) && text.len() <= 64 => Ok(text.to_owned()),
        _ => Err("a method such as GET or POST".to_owned()),
    }
}

fn is_token(text: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// Reads a body from a file.
///
/// # Errors
/// It cannot be read, or it is larger than [`LARGEST_BODY`].
pub fn read_body(path: &Path) -> Result<Body, Outcome> {
    let cannot = |error| Outcome::Failed(format!("cannot read the body '{}': {error}", path.display()));
    let mut bytes = Vec::new();
    // One byte more than allowed: a file may grow, and a device has no length.
    File::open(path).and_then(|file| file.take(LARGEST_BODY + 1).read_to_end(&mut bytes)).map_err(cannot)?;
    if bytes.len() as u64 > LARGEST_BODY {
        return Err(Outcome::Failed(format!("the body '{}' is larger than {LARGEST_BODY} bytes", path.display())));
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wording(method: &str, fields: &[&str], body: Option<&str>) -> Wording {
        Wording {
            method: method.to_owned(),
            fields: fields.iter().map(|line| check_field(line).expect(line)).collect(),
            body: body.map(|text| text.as_bytes().into()),
        }
    }

    fn sent(wording: &Wording, last: bool) -> String {
        let url = Url::parse("http://a:81/x?y").expect("a URL");
        String::from_utf8(wording.request(&url, last).expect("a request")).expect("text")
    }

    #[test]
    fn a_request_is_whole() {
        assert_eq!(sent(&wording("GET", &[], None), false), "GET /x?y HTTP/1.1\r\nHost: a:81\r\n\r\n");
        assert_eq!(
            sent(&wording("POST", &["A: b", "a:c"], Some("hi")), true),
            "POST /x?y HTTP/1.1\r\nHost: a:81\r\nA: b\r\na: c\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
        );
        assert!(sent(&wording("PUT", &[], Some("")), false).contains("Content-Length: 0\r\n"));
    }

    #[test]
    fn what_is_told_is_not_told_twice() {
        let fields = ["HOST: x", "content-length: 5", "connection: keep-alive"];
        assert_eq!(
            sent(&wording("GET", &fields, Some("hi")), true),
            "GET /x?y HTTP/1.1\r\nHOST: x\r\ncontent-length: 5\r\nconnection: keep-alive\r\n\r\nhi"
        );
    }

    #[test]
    fn lines_that_would_be_others_are_refused() {
        for line in ["", "foo", ": x", "a b: c", "a: b\r\nc: d", "a: b\nc", "a: \0", "é: x"] {
            assert!(check_field(line).is_err(), "{line:?}");
        }
        assert_eq!(check_field("a:"), Ok(("a".to_owned(), String::new())));
        assert_eq!(check_field("a:  b:c\t"), Ok(("a".to_owned(), "b:c".to_owned())));
        assert!(check_method("GET /").is_err());
        assert!(check_method("CONNECT").is_err());
        assert_eq!(check_method("M-SEARCH"), Ok("M-SEARCH".to_owned()));
    }

    #[test]
    fn heads_are_bounded() {
        let long = wording("GET", &[&format!("a: {}", "b".repeat(LARGEST_HEAD))], None);
        let url = Url::parse("a").expect("a URL");
        assert!(matches!(long.request(&url, false), Err(Outcome::Misused(why)) if why.contains("larger than 65536")));
    }

    #[test]
    fn a_body_that_is_not_there_or_without_end_is_refused() {
        assert!(
            matches!(read_body(Path::new("/nonexistent")), Err(Outcome::Failed(why)) if why.contains("/nonexistent"))
        );
        assert!(matches!(read_body(Path::new("/dev/zero")), Err(Outcome::Failed(why)) if why.contains("larger")));
    }
}
