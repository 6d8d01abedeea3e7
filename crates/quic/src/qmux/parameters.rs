//! Transport parameters (RFC 9000, section 18): those that QMux permits, and its own.

use std::time::Duration;

use super::error::ErrorCode;
use super::varint;

const IDLE_TIMEOUT: u64 = 0x1;
const MAX_DATA: u64 = 0x4;
const BIDIRECTIONAL_LOCAL: u64 = 0x5;
const BIDIRECTIONAL_REMOTE: u64 = 0x6;
const UNIDIRECTIONAL: u64 = 0x7;
const STREAMS_BIDIRECTIONAL: u64 = 0x8;
const STREAMS_UNIDIRECTIONAL: u64 = 0x9;
/// The last parameter of RFC 9000. Those before that are not named here are prohibited.
const LAST_OF_QUIC: u64 = 0x10;
/// `max_record_size`.
const RECORD: u64 = 0x0571_c594_29cd_0845;

/// The smallest maximum of a record's frames in bytes, which needs no announcement.
pub(super) const RECORD_SIZE: u64 = 16_382;

/// The largest number of streams of a direction (RFC 9000, section 19.11).
pub(super) const MOST_STREAMS: u64 = 1 << 60;

/// The settings of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Time without a byte in either direction after which a connection without streams ends. Zero: never.
    pub idle_timeout: Duration,
    /// Maximum number of bidirectional streams of the peer at a time.
    pub max_bidirectional: u32,
    /// Maximum number of unidirectional streams of the peer at a time.
    pub max_unidirectional: u32,
    /// Maximum number of unread bytes of a connection; the peer is informed of it.
    pub window: u32,
    /// Maximum number of unread bytes of a stream.
    pub stream_window: u32,
}

/// The parameters of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameters {
    /// In milliseconds; 0: none.
    pub(super) idle_timeout: u64,
    pub(super) max_data: u64,
    /// Bytes of a stream of both directions that the sender of the parameters has opened.
    pub(super) bidirectional_local: u64,
    /// Bytes of one that their receiver has opened.
    pub(super) bidirectional_remote: u64,
    pub(super) unidirectional: u64,
    pub(super) streams_bidirectional: u64,
    pub(super) streams_unidirectional: u64,
    pub(super) record: u64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            idle_timeout: 0,
            max_data: 0,
            bidirectional_local: 0,
            bidirectional_remote: 0,
            unidirectional: 0,
            streams_bidirectional: 0,
            streams_unidirectional: 0,
            record: RECORD_SIZE,
        }
    }
}

impl Parameters {
    pub(super) fn of(settings: &Settings) -> Self {
        let window = u64::from(settings.stream_window);
        Self {
            idle_timeout: u64::try_from(settings.idle_timeout.as_millis()).unwrap_or(0),
            max_data: settings.window.into(),
            bidirectional_local: window,
            bidirectional_remote: window,
            unidirectional: window,
            streams_bidirectional: settings.max_bidirectional.into(),
            streams_unidirectional: settings.max_unidirectional.into(),
            record: RECORD_SIZE,
        }
    }

    /// Returns the parameter with that number.
    fn field(&mut self, number: u64) -> Option<&mut u64> {
        Some(match number {
            IDLE_TIMEOUT => &mut self.idle_timeout,
            MAX_DATA => &mut self.max_data,
            BIDIRECTIONAL_LOCAL => &mut self.bidirectional_local,
            BIDIRECTIONAL_REMOTE => &mut self.bidirectional_remote,
            UNIDIRECTIONAL => &mut self.unidirectional,
            STREAMS_BIDIRECTIONAL => &mut self.streams_bidirectional,
            STREAMS_UNIDIRECTIONAL => &mut self.streams_unidirectional,
            RECORD => &mut self.record,
            _ => return None,
        })
    }

    /// Reads the contents of a frame. Parameters that are not known are ignored.
    pub(super) fn read(mut input: &[u8]) -> Result<Self, ErrorCode> {
        const INVALID: ErrorCode = ErrorCode::TransportParameter;
        let mut parameters = Self::default();
        let mut seen = 0_u32;
        while !input.is_empty() {
            let number = varint::take(&mut input).ok_or(INVALID)?;
            let length = varint::take(&mut input).and_then(|length| usize::try_from(length).ok()).ok_or(INVALID)?;
            let mut value = input.get(..length).ok_or(INVALID)?;
            input = &input[length..];
            let Some(field) = parameters.field(number) else {
                if number <= LAST_OF_QUIC {
                    return Err(INVALID);
                }
                continue;
            };
            *field = varint::take(&mut value).filter(|_| value.is_empty()).ok_or(INVALID)?;
            let bit = 1 << number.min(LAST_OF_QUIC + 1);
            if seen & bit != 0 {
                return Err(INVALID);
            }
            seen |= bit;
        }
        let streams = parameters.streams_bidirectional.max(parameters.streams_unidirectional);
        if parameters.record < RECORD_SIZE || streams > MOST_STREAMS {
            return Err(INVALID);
        }
        Ok(parameters)
    }

    /// Appends the contents of a frame. Those that are 0, and the smallest size of a record, need no announcement.
    pub(super) fn push(mut self, out: &mut Vec<u8>) {
        let numbers = [
            IDLE_TIMEOUT,
            MAX_DATA,
            BIDIRECTIONAL_LOCAL,
            BIDIRECTIONAL_REMOTE,
            UNIDIRECTIONAL,
            STREAMS_BIDIRECTIONAL,
            STREAMS_UNIDIRECTIONAL,
        ];
        for number in numbers {
            let value = self.field(number).map_or(0, |value| *value);
            if value > 0 {
                let mut bytes = Vec::with_capacity(8);
                varint::push(value, &mut bytes);
                varint::push(number, out);
                out.push(bytes.len() as u8);
                out.extend_from_slice(&bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_survive() {
        let settings = Settings {
            idle_timeout: Duration::from_secs(30),
            max_bidirectional: 100,
            max_unidirectional: 3,
            window: 1_638_400,
            stream_window: 16_380,
        };
        let mut bytes = Vec::new();
        Parameters::of(&settings).push(&mut bytes);
        // As HAProxy sends them, but for the time, which is in milliseconds.
        let expected = b"\x01\x04\x80\0\x75\x30\x04\x04\x80\x19\0\0\x05\x02\x7f\xfc\x06\x02\x7f\xfc\x07\x02\x7f\xfc\x08\x02\x40\x64\x09\x01\x03";
        assert_eq!(bytes, expected);
        assert_eq!(Parameters::read(&bytes), Ok(Parameters::of(&settings)));
    }

    #[test]
    fn prohibited_repeated_and_malformed_parameters_are_refused() {
        let record = |value: &[u8]| [&b"\xc5\x71\xc5\x94\x29\xcd\x08\x45"[..], value].concat();
        let rows: [(&[u8], bool); 13] = [
            (b"", true),
            (b"\x04\x01\x05", true),
            // max_ack_delay, active_connection_id_limit, original_destination_connection_id.
            (b"\x0b\x01\x05", false),
            (b"\x0e\x01\x02", false),
            (b"\x00\x00", false),
            // Greased and unknown ones.
            (b"\x1b\x02\x01\x01", true),
            (b"\x20\x01\x40", true),
            (b"\x04\x01\x05\x04\x01\x05", false),
            (b"\x04\x02\x05\x05", false),
            (b"\x04\x00", false),
            (b"\x04\x02\x05", false),
            (b"\x08\x08\xd0\0\0\0\0\0\0\x01", false),
            (b"\x04", false),
        ];
        for (bytes, is_valid) in rows {
            assert_eq!(Parameters::read(bytes).is_ok(), is_valid, "{bytes:x?}");
        }
        assert_eq!(Parameters::read(&record(b"\x02\x7f\xfd")), Err(ErrorCode::TransportParameter));
        assert_eq!(Parameters::read(&record(b"\x04\x80\0\x40\0")).map(|read| read.record), Ok(16_384));
        assert_eq!(Parameters::read(&[record(b"\x02\x7f\xfe"), record(b"\x02\x7f\xfe")].concat()).ok(), None);
    }
}
