//! Changes of a head with given texts, for scripts. Must never read a configuration.

use super::{Bounded, Unfit, append, check, each_replaced, set, set_parts, split_replaced};
use expression::pattern::{Regex, Steps};
use wire::http::Head;

/// A change of a head. Names are in lower case.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// Appends a field.
    Add(&'a [u8], &'a [u8]),
    /// Replaces all fields with a name.
    Set(&'a [u8], &'a [u8]),
    /// Removes all fields with a name.
    Delete(&'a [u8]),
    /// Replaces the first match in the value of every field with a name. `\1` is the first group.
    Replace(&'a [u8], &'a Regex, &'a [u8]),
    /// Replaces the first match in each comma-separated value of every field with a name.
    ReplaceParts(&'a [u8], &'a Regex, &'a [u8]),
    /// Sets the method.
    Method(&'a [u8]),
    /// Sets the path; keeps the query.
    Path(&'a [u8]),
    /// Sets the query; keeps the path.
    Query(&'a [u8]),
    /// Sets the complete target.
    Uri(&'a [u8]),
    /// Sets the status, with the given reason phrase or the default one.
    Status(u16, Option<&'a [u8]>),
}

fn is_token(name: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(fits)
}

fn is_line(text: &[u8]) -> bool {
    !text.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'))
}

fn is_target(text: &[u8]) -> bool {
    text.iter().all(|byte| *byte > b' ' && *byte != 0x7f)
}

impl Change<'_> {
    /// Whether the change may affect method or target of a request.
    pub fn is_about_the_line(&self, head: &Head) -> bool {
        match self {
            Self::Method(_) | Self::Path(_) | Self::Query(_) | Self::Uri(_) => true,
            Self::Add(name, _) | Self::Set(name, _) | Self::Replace(name, ..) | Self::ReplaceParts(name, ..) => {
                *name == b"host" && head.target().first() != Some(&b'/')
            }
            Self::Delete(_) | Self::Status(..) => false,
        }
    }

    /// Whether the inserted text is valid HTTP: invalid text could start another line.
    fn is_sound(&self) -> bool {
        match self {
            Self::Add(name, value) | Self::Set(name, value) => is_token(name) && is_line(value),
            Self::Delete(name) => is_token(name),
            Self::Replace(name, _, text) | Self::ReplaceParts(name, _, text) => is_token(name) && is_line(text),
            Self::Method(text) => is_token(text),
            Self::Path(text) | Self::Query(text) | Self::Uri(text) => is_target(text),
            Self::Status(status, reason) => (100..=999).contains(status) && reason.is_none_or(is_line),
        }
    }

    /// Changes the head. `room` is its maximum size in bytes.
    ///
    /// # Errors
    /// The head cannot be changed.
    pub fn apply(&self, head: &mut Head, room: usize) -> Result<(), Unfit> {
        if !self.is_sound() {
            return Err(Unfit::Malformed);
        }
        let steps = &Steps::for_text(room);
        match *self {
            Self::Add(name, value) => append(head, name, value, room),
            Self::Set(name, value) => set(head, name, value, room),
            Self::Delete(name) => {
                head.remove_all(name);
                Ok(())
            }
            Self::Replace(name, regex, text) => super::replace(head, name, room, |value, out: &mut Bounded<'_>| {
                each_replaced(regex, value, text, steps, out)
            }),
            Self::ReplaceParts(name, regex, text) => {
                super::replace(head, name, room, |value, out: &mut Bounded<'_>| {
                    split_replaced(regex, value, text, steps, out)
                })
            }
            Self::Method(text) => {
                check(head, head.method().len(), text.len(), room)?;
                head.set_method(text);
                Ok(())
            }
            Self::Path(text) => set_parts(head, Some(text), None, room),
            Self::Query(text) => set_parts(head, None, Some(text), room),
            Self::Uri(text) => super::set_uri(head, text, room),
            Self::Status(status, reason) => {
                let reason = reason.unwrap_or(wire::http::reason(status).as_bytes());
                check(head, head.reason().len(), reason.len(), room)?;
                head.set_status(status, reason);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::h1::{HeadLimits, Parse, Scan, parse_request};

    fn request(text: &str) -> Head {
        let mut head = Head::new();
        let parsed = parse_request(text.as_bytes(), &HeadLimits::default(), &mut Scan::default(), &mut head);
        assert!(matches!(parsed, Ok(Parse::Complete { .. })));
        head
    }

    #[test]
    fn what_could_begin_another_line_is_refused() {
        let changes = [
            Change::Add(b"a b", b"c"),
            Change::Set(b"a", b"b\r\nc: d"),
            Change::Delete(b""),
            Change::Method(b"GE T"),
            Change::Path(b"/a b"),
            Change::Query(b"a\nb"),
            Change::Uri(b"/\0"),
            Change::Status(200, Some(b"a\rb")),
            Change::Status(1000, None),
        ];
        for change in changes {
            let mut head = request("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
            assert_eq!(change.apply(&mut head, 16_384), Err(Unfit::Malformed), "{change:?}");
        }
    }

    #[test]
    fn heads_are_changed() {
        let mut head = request("GET /a?b HTTP/1.1\r\nhost: a\r\nx: 1\r\nx: 2\r\n\r\n");
        let regex = Regex::new("(.)", false).expect("an expression");
        let changes = [
            Change::Set(b"x", b"3,4"),
            Change::Add(b"y", b"5"),
            Change::Replace(b"y", &regex, b"\\1\\1"),
            Change::ReplaceParts(b"x", &regex, b"<\\1>"),
            Change::Method(b"PUT"),
            Change::Path(b"/c"),
            Change::Query(b"d"),
        ];
        for change in changes {
            assert_eq!(change.apply(&mut head, 16_384), Ok(()), "{change:?}");
        }
        assert_eq!((head.method(), head.target()), (&b"PUT"[..], &b"/c?d"[..]));
        assert_eq!((head.first(b"x"), head.first(b"y")), (Some(&b"<3>,<4>"[..]), Some(&b"55"[..])));
        assert_eq!(Change::Add(b"z", &[b'a'; 99]).apply(&mut head, 64), Err(Unfit::Full));
    }
}
