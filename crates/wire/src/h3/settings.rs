//! Settings (RFC 9114, section 7.2.4; RFC 9204, section 5; RFC 9220, section 3; RFC 9297, section 2.1.1). Must never
//! decide what is advertised.

use super::error::{Error, ErrorCode};
use super::frame::{FrameType, frame_header};
use super::varint;

/// Maximum number of settings in a frame.
const MOST_SETTINGS: usize = 64;

const TABLE_CAPACITY: u64 = 0x01;
const MAX_SECTION: u64 = 0x06;
const BLOCKED_STREAMS: u64 = 0x07;
const CONNECT_PROTOCOL: u64 = 0x08;
const DATAGRAM: u64 = 0x33;
/// SETTINGS_ENABLE_WEBTRANSPORT of draft-ietf-webtrans-http3-02.
const ENABLE_WEBTRANSPORT: u64 = 0x2b60_3742;
/// SETTINGS_WEBTRANSPORT_MAX_SESSIONS of draft-ietf-webtrans-http3-07.
const MAX_SESSIONS: u64 = 0xc671_706a;

/// The settings of an endpoint. The default values are those of an endpoint that sends none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY: the largest dynamic table of its decoder, in bytes.
    pub table_capacity: u64,
    /// SETTINGS_MAX_FIELD_SECTION_SIZE: the largest field section that it accepts, in bytes with 32 for each field; `None`
    /// if it has no limit.
    pub max_section: Option<u64>,
    /// SETTINGS_QPACK_BLOCKED_STREAMS: the number of streams that may wait for its decoder.
    pub blocked_streams: u64,
    /// SETTINGS_ENABLE_CONNECT_PROTOCOL: it accepts extended CONNECT.
    pub extended_connect: bool,
    /// SETTINGS_H3_DATAGRAM: it accepts HTTP Datagrams.
    pub datagrams: bool,
    /// The number of WebTransport sessions that it accepts at a time, in both settings that drafts have for it; 0: none.
    pub sessions: u64,
}

impl Settings {
    /// Parses the payload of a SETTINGS frame. Unknown settings are ignored.
    ///
    /// # Errors
    /// A setting is truncated, invalid, one of HTTP/2, or sent twice; or there are too many.
    pub(super) fn parse(mut payload: &[u8]) -> Result<Self, Error> {
        let invalid = Error::connection(ErrorCode::SettingsError);
        let truncated = Error::connection(ErrorCode::FrameError);
        let mut settings = Self::default();
        let (mut seen, mut count) = ([0; MOST_SETTINGS], 0);
        while !payload.is_empty() {
            let number = varint::read(&mut payload).ok_or(truncated)?;
            let value = varint::read(&mut payload).ok_or(truncated)?;
            let before = seen.get(..count).unwrap_or_default();
            if before.contains(&number) {
                return Err(invalid);
            }
            *seen.get_mut(count).ok_or(Error::connection(ErrorCode::ExcessiveLoad))? = number;
            count += 1;
            match (number, value) {
                (TABLE_CAPACITY, _) => settings.table_capacity = value,
                (MAX_SECTION, _) => settings.max_section = Some(value),
                (BLOCKED_STREAMS, _) => settings.blocked_streams = value,
                (CONNECT_PROTOCOL, 0 | 1) => settings.extended_connect = value == 1,
                (DATAGRAM, 0 | 1) => settings.datagrams = value == 1,
                // Settings of HTTP/2 without a counterpart (RFC 9114, section 11.2.2), and values that are no boolean.
                (0 | 2..=5 | CONNECT_PROTOCOL | DATAGRAM, _) => return Err(invalid),
                (ENABLE_WEBTRANSPORT, _) => settings.sessions = settings.sessions.max(u64::from(value > 0)),
                (MAX_SESSIONS, _) => settings.sessions = settings.sessions.max(value),
                _ => {}
            }
        }
        Ok(settings)
    }

    /// Appends the settings that differ from their default values, as pairs.
    fn push_pairs(&self, out: &mut Vec<u8>) {
        let pairs = [
            (TABLE_CAPACITY, Some(self.table_capacity).filter(|value| *value > 0)),
            (MAX_SECTION, self.max_section),
            (BLOCKED_STREAMS, Some(self.blocked_streams).filter(|value| *value > 0)),
            (CONNECT_PROTOCOL, self.extended_connect.then_some(1)),
            (DATAGRAM, self.datagrams.then_some(1)),
            (ENABLE_WEBTRANSPORT, (self.sessions > 0).then_some(1)),
            (MAX_SESSIONS, Some(self.sessions).filter(|sessions| *sessions > 0)),
        ];
        for (number, value) in pairs {
            if let Some(value) = value {
                varint::push(number, out);
                varint::push(value.min(varint::MAX), out);
            }
        }
    }
}

/// Appends a SETTINGS frame.
pub fn push_settings(settings: &Settings, out: &mut Vec<u8>) {
    let mut payload = Vec::with_capacity(64);
    settings.push_pairs(&mut payload);
    out.extend_from_slice(frame_header(FrameType::Settings, payload.len() as u64).as_slice());
    out.extend_from_slice(&payload);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn settings_are_read() {
        let none = Settings::default();
        let rows: &[(&[u8], Settings)] = &[
            (&[], none),
            (&[0x01, 0x50, 0x00], Settings { table_capacity: 4096, ..none }),
            (&[0x06, 0x80, 0x01, 0x00, 0x00], Settings { max_section: Some(65_536), ..none }),
            (&[0x07, 0x10], Settings { blocked_streams: 16, ..none }),
            (&[0x08, 0x01], Settings { extended_connect: true, ..none }),
            (&[0x08, 0x00], none),
            (&[0x33, 0x01], Settings { datagrams: true, ..none }),
            (&[0xab, 0x60, 0x37, 0x42, 0x01], Settings { sessions: 1, ..none }),
            (
                &[0xc0, 0, 0, 0, 0xc6, 0x71, 0x70, 0x6a, 0x10, 0xab, 0x60, 0x37, 0x42, 0x01],
                Settings { sessions: 16, ..none },
            ),
            // Reserved and unknown ones are ignored, with any value.
            (
                &[0x21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x07, 0x01],
                Settings { blocked_streams: 1, ..none },
            ),
            (&[0x40, 0x40, 0x02], none),
        ];
        for (payload, expected) in rows {
            assert_eq!(Settings::parse(payload), Ok(*expected), "{payload:x?}");
        }
    }

    #[test]
    fn invalid_settings_are_refused() {
        let many: Vec<u8> = (64..128).chain([5_000]).fold(Vec::new(), |mut out, number| {
            varint::push(number, &mut out);
            varint::push(0, &mut out);
            out
        });
        let rows: &[(&[u8], ErrorCode)] = &[
            // Those of HTTP/2 (RFC 9114, section 7.2.4.1).
            (&[0x00, 0x00], ErrorCode::SettingsError),
            (&[0x02, 0x00], ErrorCode::SettingsError),
            (&[0x03, 0x00], ErrorCode::SettingsError),
            (&[0x04, 0x00], ErrorCode::SettingsError),
            (&[0x05, 0x00], ErrorCode::SettingsError),
            // Sent twice, also in another encoding.
            (&[0x06, 0x01, 0x06, 0x01], ErrorCode::SettingsError),
            (&[0x06, 0x01, 0x40, 0x06, 0x02], ErrorCode::SettingsError),
            (&[0x21, 0x01, 0x21, 0x01], ErrorCode::SettingsError),
            // No boolean (RFC 8441, section 3; RFC 9297, section 2.1.1).
            (&[0x08, 0x02], ErrorCode::SettingsError),
            (&[0x33, 0x02], ErrorCode::SettingsError),
            // Truncated (RFC 9114, section 7.1).
            (&[0x06], ErrorCode::FrameError),
            (&[0x06, 0x40], ErrorCode::FrameError),
            (&[0x06, 0x01, 0x80], ErrorCode::FrameError),
            (&many, ErrorCode::ExcessiveLoad),
        ];
        for (payload, code) in rows {
            assert_eq!(Settings::parse(payload), Err(Error::connection(*code)), "{payload:x?}");
        }
        assert_eq!(Settings::parse(&many[..many.len() - 3]), Ok(Settings::default()));
    }

    proptest! {
        #[test]
        fn settings_come_back(
            table_capacity in 0..=varint::MAX,
            max_section in proptest::option::of(0..=varint::MAX),
            blocked_streams in 0..=varint::MAX,
            extended_connect: bool,
            datagrams: bool,
            sessions in 0..=varint::MAX,
        ) {
            let settings =
                Settings { table_capacity, max_section, blocked_streams, extended_connect, datagrams, sessions };
            let mut out = Vec::new();
            push_settings(&settings, &mut out);
            let mut input = &out[..];
            let mut header = super::super::frame::HeaderReader::default();
            let header = header.read(&mut input).unwrap();
            prop_assert_eq!((header.kind, header.length), (FrameType::Settings, input.len() as u64));
            prop_assert_eq!(Settings::parse(input), Ok(settings));
        }
    }
}
