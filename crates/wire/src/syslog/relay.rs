//! Rewrites received messages in the format of their destination (configuration manual, section 12.6). Missing parts
//! are generated; existing ones are passed on unchanged. Must never know where a message is sent.

use super::message::{Form, MONTHS, Message};
use super::{Format, Timestamp, decimal, two};

/// The treatment of the sender's host name: `option host`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostStrategy {
    /// Replace it with the sender's address.
    Replace,
    /// Use the sender's address if there is none.
    #[default]
    Fill,
    /// Keep it unchanged.
    Keep,
    /// Append the sender's address.
    Append,
}

/// The values added to a message.
#[derive(Debug, Clone, Copy)]
pub struct RelayValues<'a> {
    /// Facility for messages without one.
    pub facility: u8,
    /// Severity of the relayed message.
    pub severity: u8,
    pub strategy: HostStrategy,
    /// The sender's address; `None` if it has none, so that host names are kept.
    pub source: Option<&'a [u8]>,
}

/// Appends a message in a format; with `None`, in its own.
pub fn write(
    format: Option<Format>,
    message: &Message<'_>,
    given: &RelayValues<'_>,
    now: &Timestamp,
    out: &mut Vec<u8>,
) {
    let relayed = Relayed { message, given, now };
    match format.unwrap_or_else(|| relayed.own_format()) {
        Format::Rfc3164 => {
            relayed.priority(true, out);
            relayed.short_date(out);
            out.push(b' ');
            relayed.hostname(b"localhost", out);
            out.push(b' ');
            relayed.tag(out);
        }
        Format::Local => {
            relayed.priority(true, out);
            relayed.short_date(out);
            out.push(b' ');
            relayed.tag(out);
        }
        Format::Rfc5424 => {
            relayed.priority(true, out);
            out.extend_from_slice(b"1 ");
            relayed.long_date(true, out);
            out.push(b' ');
            relayed.hostname(b"-", out);
            for part in [message.tag, message.process, message.id, message.structured_data] {
                out.push(b' ');
                out.extend_from_slice(part.unwrap_or(b"-"));
            }
            out.push(b' ');
        }
        Format::Priority => relayed.priority(true, out),
        Format::Short => relayed.priority(false, out),
        Format::Timed => {
            relayed.priority(false, out);
            relayed.long_date(false, out);
            out.push(b' ');
        }
        Format::Iso => {
            relayed.long_date(false, out);
            out.push(b' ');
        }
        Format::Raw => {}
    }
    out.extend_from_slice(message.text);
}

/// A message to be relayed.
struct Relayed<'a> {
    message: &'a Message<'a>,
    given: &'a RelayValues<'a>,
    now: &'a Timestamp,
}

impl Relayed<'_> {
    /// Returns the format that keeps all parts of the message and needs no generated part except the timestamp.
    fn own_format(&self) -> Format {
        let Message { form, priority, tag, timestamp, .. } = self.message;
        match (form, self.has_hostname()) {
            (Form::Ietf, true) => Format::Rfc5424,
            (_, true) => Format::Rfc3164,
            (_, false) if tag.is_some() || timestamp.is_some() => Format::Local,
            (_, false) if priority.is_some() => Format::Priority,
            (_, false) => Format::Raw,
        }
    }

    fn has_hostname(&self) -> bool {
        let is_told = self.given.strategy != HostStrategy::Keep && self.given.source.is_some();
        self.message.hostname.is_some() || is_told
    }

    fn hostname(&self, none: &[u8], out: &mut Vec<u8>) {
        let own = self.message.hostname;
        let Some(source) = self.given.source.filter(|_| self.given.strategy != HostStrategy::Keep) else {
            return out.extend_from_slice(own.unwrap_or(none));
        };
        match (self.given.strategy, own) {
            (HostStrategy::Append, Some(own)) => {
                out.extend_from_slice(own);
                out.push(b',');
                out.extend_from_slice(source);
            }
            (HostStrategy::Fill | HostStrategy::Keep, Some(own)) => out.extend_from_slice(own),
            (HostStrategy::Replace, _) | (_, None) => out.extend_from_slice(source),
        }
    }

    fn priority(&self, with_facility: bool, out: &mut Vec<u8>) {
        let facility = if with_facility { self.message.facility().unwrap_or(self.given.facility) } else { 0 };
        super::priority(out, facility, self.given.severity);
    }

    fn tag(&self, out: &mut Vec<u8>) {
        let Some(tag) = self.message.tag else { return };
        out.extend_from_slice(tag);
        if let Some(process) = self.message.process {
            out.push(b'[');
            out.extend_from_slice(process);
            out.push(b']');
        }
        out.extend_from_slice(b": ");
    }

    /// Writes a timestamp such as `Oct 11 22:14:15`.
    fn short_date(&self, out: &mut Vec<u8>) {
        match (self.message.form, self.message.timestamp) {
            (Form::Bsd, Some(stamp)) => out.extend_from_slice(stamp),
            (Form::Ietf, Some(stamp)) => match month(stamp) {
                Some(month) => {
                    out.extend_from_slice(month);
                    out.push(b' ');
                    // The format was validated when the message was parsed.
                    let day = &stamp[8..10];
                    out.extend_from_slice(&if day[0] == b'0' { [b' ', day[1]] } else { [day[0], day[1]] });
                    out.push(b' ');
                    out.extend_from_slice(&stamp[11..19]);
                }
                None => out.extend_from_slice(&self.now.rfc3164),
            },
            _ => out.extend_from_slice(&self.now.rfc3164),
        }
    }

    /// Writes a timestamp such as `2003-10-11T22:14:15.003Z`. `keeps_none`: an RFC 5424 message without a timestamp
    /// keeps the nil value.
    fn long_date(&self, keeps_none: bool, out: &mut Vec<u8>) {
        match (self.message.form, self.message.timestamp) {
            (Form::Ietf, Some(stamp)) => out.extend_from_slice(stamp),
            (Form::Ietf, None) if keeps_none => out.push(b'-'),
            (Form::Bsd, Some(stamp)) => {
                let month =
                    MONTHS.iter().zip(1..).find(|(name, _)| stamp.starts_with(&name[..])).map_or(1, |found| found.1);
                // The year and the zone are unknown; "-00:00" denotes an unknown offset (RFC 3339, section 4.3).
                decimal(out, u32::try_from(self.now.year.clamp(0, 9_999)).unwrap_or(0));
                out.push(b'-');
                out.extend_from_slice(&two(month));
                out.push(b'-');
                out.extend_from_slice(&[if stamp[4] == b' ' { b'0' } else { stamp[4] }, stamp[5], b'T']);
                out.extend_from_slice(&stamp[7..15]);
                out.extend_from_slice(b"-00:00");
            }
            _ => self.now.iso(out),
        }
    }
}

/// Returns the abbreviation of the month of an RFC 5424 timestamp; `None` if it is invalid.
fn month(stamp: &[u8]) -> Option<&'static [u8]> {
    let number = usize::from(stamp[5] - b'0') * 10 + usize::from(stamp[6] - b'0');
    number.checked_sub(1).and_then(|index| MONTHS.get(index)).map(|name| &name[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relayed(format: Option<Format>, bytes: &str, strategy: HostStrategy, source: Option<&str>) -> String {
        let message = Message::parse(bytes.as_bytes()).unwrap();
        written(format, &message, strategy, source)
    }

    fn written(format: Option<Format>, message: &Message<'_>, strategy: HostStrategy, source: Option<&str>) -> String {
        let mut now = Timestamp::default();
        now.set(1_795_182_692, 918_587_999, 0);
        let given =
            RelayValues { facility: 21, severity: message.severity(), strategy, source: source.map(str::as_bytes) };
        let mut out = Vec::new();
        write(format, message, &given, &now, &mut out);
        String::from_utf8(out).unwrap()
    }

    const FORMATS: [Option<Format>; 9] = [
        None,
        Some(Format::Raw),
        Some(Format::Rfc3164),
        Some(Format::Rfc5424),
        Some(Format::Local),
        Some(Format::Priority),
        Some(Format::Short),
        Some(Format::Timed),
        Some(Format::Iso),
    ];

    /// As HAProxy 3.5 relays them.
    #[test]
    fn every_form_becomes_every_other() {
        let rows = [
            (
                "<13>Oct  1 22:14:15 host su[12]: hello",
                [
                    "<13>Oct  1 22:14:15 host su[12]: hello",
                    "hello",
                    "<13>Oct  1 22:14:15 host su[12]: hello",
                    "<13>1 2026-10-01T22:14:15-00:00 host su 12 - - hello",
                    "<13>Oct  1 22:14:15 su[12]: hello",
                    "<13>hello",
                    "<5>hello",
                    "<5>2026-10-01T22:14:15-00:00 hello",
                    "2026-10-01T22:14:15-00:00 hello",
                ],
            ),
            (
                "<165>1 2003-10-01T22:14:15.003Z h a 7 m [x y=\"z\"] hello",
                [
                    "<165>1 2003-10-01T22:14:15.003Z h a 7 m [x y=\"z\"] hello",
                    "hello",
                    "<165>Oct  1 22:14:15 h a[7]: hello",
                    "<165>1 2003-10-01T22:14:15.003Z h a 7 m [x y=\"z\"] hello",
                    "<165>Oct  1 22:14:15 a[7]: hello",
                    "<165>hello",
                    "<5>hello",
                    "<5>2003-10-01T22:14:15.003Z hello",
                    "2003-10-01T22:14:15.003Z hello",
                ],
            ),
            (
                "<165>1 - - - - - - hello",
                [
                    "<165>1 - 10.1.1.1 - - - - hello",
                    "hello",
                    "<165>Nov 20 13:51:32 10.1.1.1 hello",
                    "<165>1 - 10.1.1.1 - - - - hello",
                    "<165>Nov 20 13:51:32 hello",
                    "<165>hello",
                    "<5>hello",
                    "<5>2026-11-20T13:51:32.918587+00:00 hello",
                    "2026-11-20T13:51:32.918587+00:00 hello",
                ],
            ),
            (
                "hello",
                [
                    "<168>Nov 20 13:51:32 10.1.1.1 hello",
                    "hello",
                    "<168>Nov 20 13:51:32 10.1.1.1 hello",
                    "<168>1 2026-11-20T13:51:32.918587+00:00 10.1.1.1 - - - - hello",
                    "<168>Nov 20 13:51:32 hello",
                    "<168>hello",
                    "<0>hello",
                    "<0>2026-11-20T13:51:32.918587+00:00 hello",
                    "2026-11-20T13:51:32.918587+00:00 hello",
                ],
            ),
        ];
        for (bytes, expected) in rows {
            for (format, expected) in FORMATS.into_iter().zip(expected) {
                let found = relayed(format, bytes, HostStrategy::Fill, Some("10.1.1.1"));
                assert_eq!(found, expected, "{bytes:?} {format:?}");
            }
        }
        let bad_month = "<13>1 2003-13-45T22:14:15Z h a p m - x";
        let found = relayed(Some(Format::Rfc3164), bad_month, HostStrategy::Keep, None);
        assert_eq!(found, "<13>Nov 20 13:51:32 h a[p]: x");
    }

    /// As HAProxy 3.5 relays them: format `None`, RFC 3164, RFC 5424.
    #[test]
    fn names_of_senders() {
        use HostStrategy::{Append, Fill, Keep, Replace};
        let source = Some("10.1.1.1");
        let rows = [
            (Replace, source, "<13>1 - h a p m - x", "<13>1 - 10.1.1.1 a p m - x", "10.1.1.1"),
            (Fill, source, "<13>1 - h a p m - x", "<13>1 - h a p m - x", "h"),
            (Fill, source, "<13>1 - - a p m - x", "<13>1 - 10.1.1.1 a p m - x", "10.1.1.1"),
            (Keep, source, "<13>1 - - a p m - x", "<13>Nov 20 13:51:32 a[p]: x", "localhost"),
            (Append, source, "<13>1 - h a p m - x", "<13>1 - h,10.1.1.1 a p m - x", "h,10.1.1.1"),
            (Append, source, "<13>1 - - a p m - x", "<13>1 - 10.1.1.1 a p m - x", "10.1.1.1"),
            (Replace, None, "<13>1 - h a p m - x", "<13>1 - h a p m - x", "h"),
            (Append, None, "<13>1 - - a p m - x", "<13>Nov 20 13:51:32 a[p]: x", "localhost"),
        ];
        for (strategy, source, bytes, own, host) in rows {
            assert_eq!(relayed(None, bytes, strategy, source), own, "{strategy:?}");
            let bsd = relayed(Some(Format::Rfc3164), bytes, strategy, source);
            assert_eq!(bsd, format!("<13>Nov 20 13:51:32 {host} a[p]: x"), "{strategy:?}");
        }
        assert_eq!(relayed(None, "<13>x", Keep, source), "<13>x");
        assert_eq!(relayed(None, "x", Keep, source), "x");
        let keep = relayed(Some(Format::Rfc5424), "<13>1 - - a p m - x", Keep, source);
        assert_eq!(keep, "<13>1 - - a p m - x");
        let opaque = Message::opaque(b"<13>x").unwrap();
        assert_eq!(written(None, &opaque, Keep, source), "<13>x");
        assert_eq!(written(Some(Format::Priority), &opaque, Keep, source), "<168><13>x");
    }
}
