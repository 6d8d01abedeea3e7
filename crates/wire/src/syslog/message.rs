//! Parses received syslog messages: RFC 5424, RFC 3164 as used in practice, and any other text (configuration manual,
//! section 12.6). Must never copy a byte, and never reject a message: one without a known format is text.

/// A parsed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Message<'a> {
    /// The priority: facility times eight, plus severity; at most 999.
    pub priority: Option<u16>,
    /// The format of the parts after the priority.
    pub form: Form,
    /// The timestamp, in that format.
    pub timestamp: Option<&'a [u8]>,
    /// The sender's HOSTNAME.
    pub hostname: Option<&'a [u8]>,
    /// The program (APP-NAME of RFC 5424, TAG of RFC 3164).
    pub tag: Option<&'a [u8]>,
    /// The process ID.
    pub process: Option<&'a [u8]>,
    /// MSGID of RFC 5424.
    pub id: Option<&'a [u8]>,
    /// STRUCTURED-DATA of RFC 5424.
    pub structured_data: Option<&'a [u8]>,
    /// The rest of the message.
    pub text: &'a [u8],
}

/// The format of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Unknown: everything after the priority is text.
    #[default]
    None,
    /// RFC 3164.
    Bsd,
    /// RFC 5424.
    Ietf,
}

impl<'a> Message<'a> {
    /// Creates a message without parsing it. `None` if it is empty.
    pub fn opaque(bytes: &'a [u8]) -> Option<Self> {
        let text = without_newlines(bytes);
        (!text.is_empty()).then_some(Self { text, ..Self::default() })
    }

    /// Parses a message. `None` if it has neither text nor structured data.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let bytes = without_newlines(bytes);
        let (priority, rest) = match priority(bytes) {
            Some((number, rest)) => (Some(number), rest),
            None => (None, bytes),
        };
        let message = match priority {
            // Both formats begin with a priority.
            None => None,
            Some(_) => ietf(rest).or_else(|| bsd(rest)),
        };
        let message = Self { priority, ..message.unwrap_or(Self { text: rest, ..Self::default() }) };
        (!message.text.is_empty() || message.structured_data.is_some()).then_some(message)
    }

    /// The facility; `None` without a priority.
    pub fn facility(&self) -> Option<u8> {
        self.priority.and_then(|number| u8::try_from(number / 8).ok())
    }

    /// The severity; without a priority the most severe one, as in HAProxy.
    pub fn severity(&self) -> u8 {
        self.priority.map_or(0, |number| (number % 8) as u8)
    }
}

fn without_newlines(mut bytes: &[u8]) -> &[u8] {
    while let Some(shorter) = bytes.strip_suffix(b"\n") {
        bytes = shorter;
    }
    bytes
}

/// Parses a priority such as `<13>`; returns it and the rest. Without digits it is 0.
fn priority(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let rest = bytes.strip_prefix(b"<")?;
    let end = rest.iter().take(4).position(|byte| *byte == b'>')?;
    let digits = &rest[..end];
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    Some((number, &rest[end + 1..]))
}

/// Splits at the next space; returns the bytes before and after it.
fn word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b' ')?;
    (end > 0).then(|| (&bytes[..end], &bytes[end + 1..]))
}

/// Parses a field of RFC 5424; `-` is the nil value.
fn field(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    word(bytes).map(|(word, rest)| (Some(word).filter(|word| *word != b"-"), rest))
}

fn ietf(bytes: &[u8]) -> Option<Message<'_>> {
    let rest = bytes.strip_prefix(b"1 ")?;
    let (timestamp, rest) = field(rest)?;
    if timestamp.is_some_and(|timestamp| !is_iso(timestamp)) {
        return None;
    }
    let (hostname, rest) = field(rest)?;
    let (tag, rest) = field(rest)?;
    let (process, rest) = field(rest)?;
    let (id, rest) = field(rest)?;
    let (structured_data, text) = structured_data(rest)?;
    Some(Message { priority: None, form: Form::Ietf, timestamp, hostname, tag, process, id, structured_data, text })
}

/// Parses STRUCTURED-DATA; returns it and the text after it.
fn structured_data(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let end = if bytes.starts_with(b"-") { 1 } else { elements(bytes)? };
    let text = match bytes.get(end) {
        None => &[][..],
        Some(b' ') => &bytes[end + 1..],
        Some(_) => return None,
    };
    Some((Some(&bytes[..end]).filter(|data| *data != b"-"), text))
}

/// Returns the length of the consecutive elements in brackets at the start of a text; brackets in quoted values are
/// ignored.
fn elements(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut open, mut quoted) = (0, false, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if quoted => at += 1,
            b'"' if open => quoted = !quoted,
            b'[' if !open => open = true,
            b']' if open && !quoted => open = false,
            _ if !open => break,
            _ => {}
        }
        at += 1;
    }
    (at > 0 && !open && at <= bytes.len()).then_some(at)
}

/// Whether a text has the form `2003-10-11T22:14:15.003Z`. The numbers are not validated, since they are passed on
/// unchanged.
pub(super) fn is_iso(text: &[u8]) -> bool {
    let Some((date, rest)) = text.split_at_checked(19) else { return false };
    let rest = match rest.strip_prefix(b".") {
        None => rest,
        Some(fraction) => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
    };
    let zone = rest == b"Z" || looks_like(rest, b"+00:00") || looks_like(rest, b"-00:00");
    looks_like(date, b"0000-00-00T00:00:00") && zone
}

/// Whether a text matches a pattern in which `0` is any digit.
fn looks_like(text: &[u8], pattern: &[u8]) -> bool {
    let same = |(byte, wanted): (&u8, &u8)| if *wanted == b'0' { byte.is_ascii_digit() } else { byte == wanted };
    text.len() == pattern.len() && text.iter().zip(pattern).all(same)
}

/// Abbreviations of the months in RFC 3164.
pub(super) const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Length of a timestamp such as `Oct 11 22:14:15`, in bytes.
const STAMP: usize = 15;

fn bsd(bytes: &[u8]) -> Option<Message<'_>> {
    let (stamp, rest) = bytes.split_at_checked(STAMP)?;
    let (month, rest_of_stamp) = stamp.split_at(3);
    let is_day = looks_like(&rest_of_stamp[..4], b" 00 ") || looks_like(&rest_of_stamp[..4], b"  0 ");
    let is_stamp = MONTHS.iter().any(|name| month == *name) && is_day && looks_like(&rest_of_stamp[4..], b"00:00:00");
    let rest = rest.strip_prefix(b" ").filter(|_| is_stamp)?;
    let (hostname, rest) = word(rest)?;
    let (tag, process, text) = tag(rest);
    let (timestamp, hostname) = (Some(stamp), Some(hostname));
    Some(Message { form: Form::Bsd, timestamp, hostname, tag, process, text, ..Message::default() })
}

/// Parses `su[123]: text` into program, process ID and text; everything is text if it has no such prefix.
fn tag(bytes: &[u8]) -> (Option<&[u8]>, Option<&[u8]>, &[u8]) {
    let none = (None, None, bytes);
    let Some((word, text)) = word(bytes) else { return none };
    let Some(word) = word.strip_suffix(b":") else { return none };
    let end = word.iter().position(|byte| matches!(byte, b'[' | b':')).unwrap_or(word.len());
    let (name, process) = word.split_at(end);
    let process = match process {
        [] => None,
        [b'[', inside @ .., b']'] if !inside.iter().any(|byte| matches!(byte, b'[' | b']' | b':')) => Some(inside),
        // The bracket is not closed.
        [b'[', inside @ ..] if !inside.iter().any(|byte| matches!(byte, b'[' | b']' | b':')) => None,
        _ => return none,
    };
    if name.is_empty() && process.is_some() {
        return none;
    }
    (Some(name).filter(|name| !name.is_empty()), process.filter(|process| !process.is_empty()), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats the parts: format, priority, timestamp, hostname, tag, process, ID, structured data, text.
    fn parts(bytes: &str) -> String {
        let Some(message) = Message::parse(bytes.as_bytes()) else { return "nothing".to_owned() };
        let show = |part: Option<&[u8]>| part.map_or("~".to_owned(), |part| String::from_utf8_lossy(part).into_owned());
        let priority = message.priority.map_or("~".to_owned(), |number| number.to_string());
        let Message { form, timestamp, hostname, tag, process, id, structured_data, text, .. } = message;
        let fields = [timestamp, hostname, tag, process, id, structured_data, Some(text)].map(show);
        format!("{form:?}|{priority}|{}", fields.join("|"))
    }

    /// As HAProxy 3.5 relays them, except where a comment states a difference.
    #[test]
    fn messages_come_apart() {
        let rows = [
            ("<13>Oct 11 22:14:15 host su[123]: hello", "Bsd|13|Oct 11 22:14:15|host|su|123|~|~|hello"),
            ("<13>Oct  1 22:14:15 host su: hello", "Bsd|13|Oct  1 22:14:15|host|su|~|~|~|hello"),
            ("<13>Oct 11 22:14:15 su: hello", "Bsd|13|Oct 11 22:14:15|su:|~|~|~|~|hello"),
            ("<13>Oct 11 22:14:15 host su hello", "Bsd|13|Oct 11 22:14:15|host|~|~|~|~|su hello"),
            ("<13>Oct 11 22:14:15 host su[1]:hello", "Bsd|13|Oct 11 22:14:15|host|~|~|~|~|su[1]:hello"),
            ("<13>Oct 11 22:14:15 host su[1] hello", "Bsd|13|Oct 11 22:14:15|host|~|~|~|~|su[1] hello"),
            ("<13>Oct 11 22:14:15 host su[]: hello", "Bsd|13|Oct 11 22:14:15|host|su|~|~|~|hello"),
            ("<13>Oct 11 22:14:15 host su[1: hello", "Bsd|13|Oct 11 22:14:15|host|su|~|~|~|hello"),
            ("<13>Oct 11 22:14:15 host su]: hello", "Bsd|13|Oct 11 22:14:15|host|su]|~|~|~|hello"),
            ("<13>Oct 11 22:14:15 host a:b: hello", "Bsd|13|Oct 11 22:14:15|host|~|~|~|~|a:b: hello"),
            ("<13>Oct 11 22:14:15 host : hello", "Bsd|13|Oct 11 22:14:15|host|~|~|~|~|hello"),
            ("<13>Oct 11 22:14:15 host su:", "Bsd|13|Oct 11 22:14:15|host|~|~|~|~|su:"),
            ("<13>Oct 11 22:14:15 host  su: hello", "Bsd|13|Oct 11 22:14:15|host|~|~|~|~| su: hello"),
            ("<13>Oct 99 99:14:15 host su: hello", "Bsd|13|Oct 99 99:14:15|host|su|~|~|~|hello"),
            ("<13>Oct 11 22:14:15 host su: ", "nothing"),
            // HAProxy treats the brackets as both name and process, or the text before them as the name.
            ("<13>Oct 11 22:14:15 host [12]: hello", "Bsd|13|Oct 11 22:14:15|host|~|~|~|~|[12]: hello"),
            ("<13>Oct 11 22:14:15 host su[1][2]: hello", "Bsd|13|Oct 11 22:14:15|host|~|~|~|~|su[1][2]: hello"),
            ("<13>Oct 11 22:14:15 host", "None|13|~|~|~|~|~|~|Oct 11 22:14:15 host"),
            ("<13>Oct 11 22:14:15  host su: hello", "None|13|~|~|~|~|~|~|Oct 11 22:14:15  host su: hello"),
            ("<13>oct 11 22:14:15 host su: x", "None|13|~|~|~|~|~|~|oct 11 22:14:15 host su: x"),
            ("<13>Oct 11 22:14:15.1 host su: x", "None|13|~|~|~|~|~|~|Oct 11 22:14:15.1 host su: x"),
            ("<13>2003-10-11T22:14:15Z host su: x", "None|13|~|~|~|~|~|~|2003-10-11T22:14:15Z host su: x"),
            ("<13>hello", "None|13|~|~|~|~|~|~|hello"),
            ("<>hello", "None|0|~|~|~|~|~|~|hello"),
            ("<013>hello", "None|13|~|~|~|~|~|~|hello"),
            ("<999>hello", "None|999|~|~|~|~|~|~|hello"),
            // HAProxy uses the last three digits.
            ("<1234>hello", "None|~|~|~|~|~|~|~|<1234>hello"),
            ("<a>hello", "None|~|~|~|~|~|~|~|<a>hello"),
            ("<13", "None|~|~|~|~|~|~|~|<13"),
            ("hello\nthere\n\n", "None|~|~|~|~|~|~|~|hello\nthere"),
            ("Oct 11 22:14:15 host su: x", "None|~|~|~|~|~|~|~|Oct 11 22:14:15 host su: x"),
            ("<13>", "nothing"),
            ("", "nothing"),
            // HAProxy relays these as a header only.
            ("<13>\n", "nothing"),
            ("\n", "nothing"),
            (
                "<165>1 2003-10-11T22:14:15.003Z host app 77 ID47 [a@1 b=\"\\]\\\"]\"][c] hello",
                "Ietf|165|2003-10-11T22:14:15.003Z|host|app|77|ID47|[a@1 b=\"\\]\\\"]\"][c]|hello",
            ),
            ("<165>1 2003-10-11T22:14:15-07:00 - - - - - x", "Ietf|165|2003-10-11T22:14:15-07:00|~|~|~|~|~|x"),
            ("<165>1 - h a p m - some words", "Ietf|165|~|h|a|p|m|~|some words"),
            ("<165>1 - h a p m [a] [b] x", "Ietf|165|~|h|a|p|m|[a]|[b] x"),
            ("<165>1 - h a p m [] x", "Ietf|165|~|h|a|p|m|[]|x"),
            ("<165>1 2003-13-45T22:14:15Z h a p m - x", "Ietf|165|2003-13-45T22:14:15Z|h|a|p|m|~|x"),
            ("<165>1 - h a p m - ", "nothing"),
            ("<165>1 - h a p m -", "nothing"),
            // HAProxy does not parse these, and truncates what it cannot parse by two bytes.
            ("<165>1 - h a p m [a b=\"c\"]", "Ietf|165|~|h|a|p|m|[a b=\"c\"]|"),
            ("<165>1 - h a p m [a]x", "None|165|~|~|~|~|~|~|1 - h a p m [a]x"),
            ("<165>1 - h a p m [a x", "None|165|~|~|~|~|~|~|1 - h a p m [a x"),
            ("<165>1 - h a p m [a b=\"]\\", "None|165|~|~|~|~|~|~|1 - h a p m [a b=\"]\\"),
            ("<165>1 2003-10-11T22:14:15 h a p m - x", "None|165|~|~|~|~|~|~|1 2003-10-11T22:14:15 h a p m - x"),
            ("<165>1 2003-10-11T22:14:15.Z h a p m - x", "None|165|~|~|~|~|~|~|1 2003-10-11T22:14:15.Z h a p m - x"),
            ("<165>1 garbage h a p m - x", "None|165|~|~|~|~|~|~|1 garbage h a p m - x"),
            ("<165>1 -  a p m - x", "None|165|~|~|~|~|~|~|1 -  a p m - x"),
            ("<165>1 - h a p m", "None|165|~|~|~|~|~|~|1 - h a p m"),
            ("<165>2 - h a p m - x", "None|165|~|~|~|~|~|~|2 - h a p m - x"),
        ];
        for (bytes, expected) in rows {
            assert_eq!(parts(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn an_opaque_message_is_all_text() {
        let message = Message::opaque(b"<13>Oct 11 22:14:15 host su: x\n").unwrap();
        assert_eq!(
            (message.priority, message.form, message.text),
            (None, Form::None, &b"<13>Oct 11 22:14:15 host su: x"[..])
        );
        assert_eq!(Message::opaque(b"\n"), None);
    }
}
