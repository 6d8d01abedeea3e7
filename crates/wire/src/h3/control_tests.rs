//! Control streams: the frames that are read, those that are refused, and any pieces of the input.

use proptest::prelude::*;

use super::*;

/// A frame: its type and its payload.
type Frame = (u64, &'static [u8]);

/// Reads a control stream in pieces, and formats its frames.
fn read(role: Role, bytes: &[u8], cuts: &[usize]) -> Result<String, Error> {
    let (mut reader, mut text, mut from) = (ControlReader::new(role), String::new(), 0);
    for to in cuts.iter().copied().chain([bytes.len()]) {
        let mut input = &bytes[from..to];
        from = to;
        while let Some(frame) = reader.next(&mut input)? {
            text += &match frame {
                ControlFrame::Settings(settings) => format!(" settings {}", settings.table_capacity),
                ControlFrame::GoAway(id) => format!(" goaway {id}"),
                ControlFrame::MaxPushId(id) => format!(" push {id}"),
                ControlFrame::PriorityUpdate { stream, value } => {
                    format!(" priority {stream} {}", String::from_utf8_lossy(value))
                }
                ControlFrame::Skipped { length } => format!(" skipped {length}"),
            };
        }
        assert!(input.is_empty());
    }
    Ok(text)
}

/// Builds a stream of frames, each a number and a payload.
fn stream(frames: &[(u64, &[u8])]) -> Vec<u8> {
    frames.iter().fold(Vec::new(), |mut out, (kind, payload)| {
        varint::push(*kind, &mut out);
        varint::push(payload.len() as u64, &mut out);
        out.extend_from_slice(payload);
        out
    })
}

const NONE: Frame = (4, &[]);

#[test]
fn frames_are_read() {
    let rows: &[(Role, &[Frame], &str)] = &[
        (Role::Server, &[], ""),
        (Role::Server, &[(4, &[1, 0x50, 0])], " settings 4096"),
        (Role::Server, &[NONE, (0x21, &[0; 2000]), (0x7fff, &[])], " settings 0 skipped 2000 skipped 0"),
        // A client's GOAWAY has a push ID, and a server's a stream ID.
        (Role::Server, &[NONE, (7, &[7]), (7, &[0x40, 7]), (7, &[0])], " settings 0 goaway 7 goaway 7 goaway 0"),
        (Role::Client, &[NONE, (7, &[8]), (7, &[4])], " settings 0 goaway 8 goaway 4"),
        (Role::Server, &[NONE, (0xd, &[3]), (0xd, &[3]), (0xd, &[9])], " settings 0 push 3 push 3 push 9"),
        (Role::Server, &[NONE, (0xf0700, b"\x04u=1,i")], " settings 0 priority 4 u=1,i"),
        (Role::Server, &[NONE, (0xf0700, b"\x00")], " settings 0 priority 0 "),
    ];
    for (role, frames, expected) in rows {
        let bytes = stream(frames);
        assert_eq!(read(*role, &bytes, &[]).as_deref(), Ok(*expected), "{frames:?}");
        let every: Vec<usize> = (0..bytes.len()).collect();
        assert_eq!(read(*role, &bytes, &every).as_deref(), Ok(*expected), "{frames:?}");
    }
}

/// The MUSTs of RFC 9114 and RFC 9218 that concern the control stream, by section.
#[test]
fn violations_are_refused() {
    let rows: &[(Role, &[Frame], ErrorCode)] = &[
        // 6.2.1: the first frame is SETTINGS.
        (Role::Server, &[(7, &[0])], ErrorCode::MissingSettings),
        (Role::Client, &[(0x21, &[])], ErrorCode::MissingSettings),
        (Role::Server, &[(0, &[])], ErrorCode::MissingSettings),
        // 7.2.4: there is one.
        (Role::Server, &[NONE, NONE], ErrorCode::FrameUnexpected),
        (Role::Server, &[(4, &[2, 0])], ErrorCode::SettingsError),
        // 7.2.1, 7.2.2, 7.2.5, 7.2.8: frames of other streams, and of HTTP/2.
        (Role::Server, &[NONE, (0, &[])], ErrorCode::FrameUnexpected),
        (Role::Server, &[NONE, (1, &[])], ErrorCode::FrameUnexpected),
        (Role::Client, &[NONE, (5, &[0])], ErrorCode::FrameUnexpected),
        (Role::Server, &[NONE, (2, &[])], ErrorCode::FrameUnexpected),
        (Role::Server, &[NONE, (6, &[])], ErrorCode::FrameUnexpected),
        (Role::Server, &[NONE, (8, &[])], ErrorCode::FrameUnexpected),
        (Role::Server, &[NONE, (9, &[])], ErrorCode::FrameUnexpected),
        // 7.2.3: there are no pushes to be cancelled.
        (Role::Server, &[NONE, (3, &[0])], ErrorCode::IdError),
        (Role::Client, &[NONE, (3, &[0])], ErrorCode::IdError),
        // 7.2.6, 5.2: a stream ID that is not one of a request, and IDs that grow.
        (Role::Client, &[NONE, (7, &[1])], ErrorCode::IdError),
        (Role::Client, &[NONE, (7, &[2])], ErrorCode::IdError),
        (Role::Client, &[NONE, (7, &[4]), (7, &[8])], ErrorCode::IdError),
        (Role::Server, &[NONE, (7, &[4]), (7, &[5])], ErrorCode::IdError),
        // 7.2.7: a server sends no MAX_PUSH_ID, and the ID does not shrink.
        (Role::Client, &[NONE, (0xd, &[0])], ErrorCode::FrameUnexpected),
        (Role::Server, &[NONE, (0xd, &[3]), (0xd, &[2])], ErrorCode::IdError),
        // RFC 9218, 7.2: of a server, of another stream, of a push that was not promised.
        (Role::Client, &[NONE, (0xf0700, &[0])], ErrorCode::FrameUnexpected),
        (Role::Client, &[NONE, (0xf0701, &[0])], ErrorCode::FrameUnexpected),
        (Role::Server, &[NONE, (0xf0700, &[1])], ErrorCode::IdError),
        (Role::Server, &[NONE, (0xf0700, &[2])], ErrorCode::IdError),
        (Role::Server, &[NONE, (0xf0701, &[0])], ErrorCode::IdError),
        // 7.1: payloads that end before their fields, or after them.
        (Role::Server, &[NONE, (7, &[])], ErrorCode::FrameError),
        (Role::Server, &[NONE, (7, &[0x40])], ErrorCode::FrameError),
        (Role::Server, &[NONE, (7, &[0, 0])], ErrorCode::FrameError),
        (Role::Server, &[NONE, (7, &[0; 9])], ErrorCode::FrameError),
        (Role::Server, &[NONE, (0xd, &[0, 0])], ErrorCode::FrameError),
        (Role::Server, &[NONE, (3, &[0, 0])], ErrorCode::FrameError),
        (Role::Server, &[NONE, (0xf0700, &[])], ErrorCode::FrameError),
        (Role::Server, &[NONE, (0xf0700, &[0x80, 0])], ErrorCode::FrameError),
        // 10.5: more than any use needs.
        (Role::Server, &[(4, &[0; 1025])], ErrorCode::ExcessiveLoad),
        (Role::Server, &[NONE, (0xf0700, &[0; 1025])], ErrorCode::ExcessiveLoad),
    ];
    for (role, frames, code) in rows {
        let (bytes, error) = (stream(frames), Err(Error::connection(*code)));
        assert_eq!(read(*role, &bytes, &[]), error, "{role:?} {frames:?}");
        let every: Vec<usize> = (0..bytes.len()).collect();
        assert_eq!(read(*role, &bytes, &every), error, "{role:?} {frames:?}");
    }
}

#[test]
fn what_is_written_can_be_read() {
    let mut bytes = Vec::new();
    push_settings(&Settings { table_capacity: 4096, ..Settings::default() }, &mut bytes);
    push_priority_update(400, b"u=3", &mut bytes);
    push_go_away(1 << 20, &mut bytes);
    let expected = " settings 4096 priority 400 u=3 goaway 1048576";
    assert_eq!(read(Role::Server, &bytes, &[]).as_deref(), Ok(expected));
}

proptest! {
    #[test]
    fn any_pieces_have_the_same_meaning(
        frames in proptest::collection::vec((0_usize..9, proptest::collection::vec(0_u8..65, 0..20)), 0..6),
        cuts in proptest::collection::vec(0_usize..200, 0..20),
        is_server: bool,
    ) {
        let kinds = [3, 4, 7, 7, 0xd, 0xd, 0xf0700, 0xf0701, 0x21];
        let mut all = vec![(4, &[][..])];
        all.extend(frames.iter().map(|(kind, payload)| (kinds[*kind], &payload[..])));
        let bytes = stream(&all);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let role = if is_server { Role::Server } else { Role::Client };
        prop_assert_eq!(read(role, &bytes, &cuts), read(role, &bytes, &[]));
    }
}
