//! Received syslog data: any stream is split into messages, the parts of a message are within it, and every format can
//! be written.


use wire::syslog::frame::{Frame, next};
use wire::syslog::message::Message;
use wire::syslog::relay::{RelayValues, HostStrategy, write};
use wire::syslog::{Format, Timestamp};

const MOST: usize = 256;

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let Some((first, stream)) = data.split_first() else { return };
    let lines = first & 1 == 1;
    let mut rest = stream;
    loop {
        match next(rest, MOST, lines) {
            Frame::Message(range, taken) => {
                assert!(range.end <= taken && taken <= rest.len() && taken > 0 && taken <= MOST);
                relay(&rest[range], *first);
                rest = &rest[taken..];
            }
            Frame::Incomplete => {
                assert!(rest.len() < MOST);
                break;
            }
            Frame::Broken => break,
        }
    }
    relay(stream, *first);
}

fn relay(bytes: &[u8], choice: u8) {
    let Some(message) = Message::parse(bytes) else { return };
    let strategies = [HostStrategy::Replace, HostStrategy::Fill, HostStrategy::Keep, HostStrategy::Append];
    let strategy = strategies[usize::from(choice >> 1 & 3)];
    let source = (choice & 8 != 0).then_some(&b"192.0.2.1"[..]);
    let given = RelayValues { facility: 16, severity: message.severity(), strategy, source };
    let mut now = Timestamp::default();
    now.set(1_795_182_692, 0, 0);
    let formats = [Format::Rfc3164, Format::Rfc5424, Format::Local, Format::Priority, Format::Short, Format::Timed];
    for format in formats.map(Some).into_iter().chain([Some(Format::Iso), Some(Format::Raw), None]) {
        let mut out = Vec::new();
        write(format, &message, &given, &now, &mut out);
        assert!(out.ends_with(message.text));
        assert!(out.len() <= bytes.len() + 128);
    }
}
