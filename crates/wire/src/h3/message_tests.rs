//! Request streams: the order of frames, those that are refused, and any pieces of the input.

use proptest::prelude::*;

use super::*;

/// A frame: its type and its payload.
type Frame<'a> = (u64, &'a str);

/// Reads a stream in pieces.
fn read(role: Role, bytes: &[u8], cuts: &[usize]) -> Result<String, Error> {
    let mut text = String::new();
    read_parts(role, bytes, cuts, &mut text)?;
    Ok(text)
}

/// Reads a stream in pieces, and formats its parts; `+` after a head makes it interim, `|` makes it that of a tunnel.
/// Parts of one DATA payload are joined.
fn read_parts(role: Role, bytes: &[u8], cuts: &[usize], text: &mut String) -> Result<(), Error> {
    let mut reader = MessageReader::new(role, 100);
    let (mut from, mut is_data) = (0, false);
    for to in cuts.iter().copied().chain([bytes.len()]) {
        let mut input = &bytes[from..to];
        from = to;
        while let Some(part) = reader.next(&mut input)? {
            let is_next = matches!(part, MessagePart::Data(data) if !data.is_empty());
            let show = |bytes: &[u8]| bytes.escape_ascii().to_string();
            let mut end = 0;
            match part {
                MessagePart::Head(section) => {
                    *text += &format!(" head {}", show(section));
                    end = section.last().copied().unwrap_or_default();
                }
                MessagePart::Trailers(section) => *text += &format!(" trailers {}", show(section)),
                MessagePart::TooLarge { length } => *text += &format!(" large {length}"),
                MessagePart::Data(data) if is_data && is_next => *text += &show(data),
                MessagePart::Data(data) => *text += &format!(" data {}", show(data)),
                MessagePart::StreamOf { session } => *text += &format!(" of {session}"),
                MessagePart::Skipped { length } => *text += &format!(" skipped {length}"),
            }
            is_data = is_next;
            match end {
                b'+' => reader.note_interim(),
                b'|' => reader.become_tunnel(),
                _ => {}
            }
        }
        assert!(input.is_empty());
        assert!(reader.held() <= 100);
    }
    reader.finish()
}

/// Appends a frame.
fn push(kind: u64, payload: &[u8], out: &mut Vec<u8>) {
    varint::push(kind, out);
    varint::push(payload.len() as u64, out);
    out.extend_from_slice(payload);
}

/// Builds a stream of frames, each a number and a payload.
fn stream(frames: &[Frame<'_>]) -> Vec<u8> {
    frames.iter().fold(Vec::new(), |mut out, (kind, payload)| {
        push(*kind, payload.as_bytes(), &mut out);
        out
    })
}

const GREASE: u64 = 0x1f * 7 + 0x21;

#[test]
fn messages_are_read_in_order() {
    let long = "x".repeat(101);
    let rows: &[(Role, &[Frame<'_>], &str)] = &[
        (Role::Server, &[(1, "h")], " head h"),
        (Role::Server, &[(1, "h"), (0, "abc"), (0, ""), (0, "d")], " head h data abc data  data d"),
        (Role::Server, &[(1, "h"), (0, "abc"), (1, "t")], " head h data abc trailers t"),
        (Role::Server, &[(1, "h"), (1, "t")], " head h trailers t"),
        (Role::Client, &[(1, "a+"), (1, "b+"), (1, "h"), (0, "d")], " head a+ head b+ head h data d"),
        (Role::Server, &[(1, "h|"), (0, "d")], " head h| data d"),
        // Reserved and unknown types at any place, also after the trailers and in a tunnel.
        (
            Role::Server,
            &[(GREASE, "xx"), (1, "h"), (0x40, ""), (0, "d"), (1, "t"), (varint::MAX, &long)],
            " skipped 2 head h skipped 0 data d trailers t skipped 101",
        ),
        (Role::Client, &[(1, "h|"), (GREASE, "x"), (0, "d")], " head h| skipped 1 data d"),
        // Field sections that are too long are skipped.
        (Role::Server, &[(1, &long), (0, "d"), (1, &long)], " large 101 data d large 101"),
        (Role::Server, &[(1, &long[1..])], &format!(" head {}", &long[1..])),
        (Role::Server, &[(1, "")], " head "),
    ];
    for (role, frames, expected) in rows {
        let bytes = stream(frames);
        assert_eq!(read(*role, &bytes, &[]).as_deref(), Ok(*expected), "{frames:?}");
        let every: Vec<usize> = (0..bytes.len()).collect();
        assert_eq!(read(*role, &bytes, &every).as_deref(), Ok(*expected), "{frames:?}");
    }
}

/// The signal of a WebTransport session is the first thing on a stream, and a frame without a meaning where there are no sessions.
#[test]
fn streams_of_sessions_are_recognized() {
    let parts = |recognizes, bytes: &[u8]| -> Result<String, Error> {
        let mut reader = MessageReader::with_sessions(Role::Server, 100, recognizes);
        let (mut input, mut text) = (bytes, String::new());
        while let Some(part) = reader.next(&mut input)? {
            match part {
                MessagePart::StreamOf { session } => return Ok(format!("{text} of {session}, {}", input.len())),
                part => text += &format!("{part:?} "),
            }
        }
        Ok(text)
    };
    assert_eq!(parts(true, b"\x40\x41\x08rest"), Ok(" of 8, 4".to_owned()));
    assert_eq!(parts(false, b"\x40\x41\x04rest"), Ok("Skipped { length: 4 } ".to_owned()));
    let error = |bytes: &[u8]| parts(true, bytes).unwrap_err();
    assert_eq!(error(b"\x40\x41\x05"), Error::connection(ErrorCode::IdError));
    // Not after another frame.
    for before in [&[0x21, 0][..], &[1, 1, b'h']] {
        let bytes = [before, b"\x40\x41\x08"].concat();
        assert_eq!(error(&bytes), Error::connection(ErrorCode::FrameError), "{before:x?}");
    }
}

/// The MUSTs of RFC 9114 that concern the frames of a request stream, by section.
#[test]
fn violations_are_refused() {
    let unexpected = Error::connection(ErrorCode::FrameUnexpected);
    let rows: &[(Role, &[Frame<'_>], Error)] = &[
        // 4.1: DATA before the head, after the trailers; a third HEADERS.
        (Role::Server, &[(0, "d")], unexpected),
        (Role::Server, &[(0, "")], unexpected),
        (Role::Client, &[(1, "a+"), (0, "d")], unexpected),
        (Role::Server, &[(1, "h"), (1, "t"), (0, "d")], unexpected),
        (Role::Server, &[(1, "h"), (1, "t"), (1, "t")], unexpected),
        // 4.1: no complete request; 4.1.2: no complete response.
        (Role::Server, &[], Error::stream(ErrorCode::RequestIncomplete)),
        (Role::Server, &[(GREASE, "x")], Error::stream(ErrorCode::RequestIncomplete)),
        (Role::Client, &[], Error::stream(ErrorCode::MessageError)),
        (Role::Client, &[(1, "a+")], Error::stream(ErrorCode::MessageError)),
        // 4.4: other known frames in a tunnel.
        (Role::Server, &[(1, "h|"), (0, "d"), (1, "t")], unexpected),
        // 7.2.3, 7.2.4, 7.2.6, 7.2.7; RFC 9218, 7.2: frames of the control stream.
        (Role::Server, &[(1, "h"), (3, "\0")], unexpected),
        (Role::Server, &[(4, "")], unexpected),
        (Role::Server, &[(1, "h"), (7, "\0")], unexpected),
        (Role::Server, &[(1, "h"), (0xd, "\0")], unexpected),
        (Role::Server, &[(1, "h"), (0xf0700, "\0")], unexpected),
        (Role::Server, &[(1, "h"), (0xf0701, "\0")], unexpected),
        // 7.2.5: pushes.
        (Role::Server, &[(1, "h"), (5, "\0")], unexpected),
        (Role::Client, &[(5, "\0")], Error::connection(ErrorCode::IdError)),
        // 7.2.8: types of HTTP/2.
        (Role::Server, &[(1, "h"), (2, "")], unexpected),
        (Role::Server, &[(1, "h"), (6, "")], unexpected),
        (Role::Server, &[(1, "h"), (8, "")], unexpected),
        (Role::Client, &[(1, "h"), (9, "")], unexpected),
    ];
    for (role, frames, error) in rows {
        let bytes = stream(frames);
        assert_eq!(read(*role, &bytes, &[]), Err(*error), "{frames:?}");
        let every: Vec<usize> = (0..bytes.len()).collect();
        assert_eq!(read(*role, &bytes, &every), Err(*error), "{frames:?}");
    }
}

/// RFC 9114, section 7.1: a stream that ends within a frame.
#[test]
fn streams_do_not_end_within_a_frame() {
    let bytes = stream(&[(1, "head"), (0, "data"), (0x4000, "unknown"), (1, "trailers")]);
    let ends = [6, 12, 24, bytes.len()];
    for end in 1..bytes.len() {
        let read = read(Role::Server, &bytes[..end], &[]);
        if ends.contains(&end) {
            assert!(read.is_ok(), "{end}");
        } else {
            assert_eq!(read, Err(Error::connection(ErrorCode::FrameError)), "{end}");
        }
    }
}

/// A length beyond the input holds no memory for it.
#[test]
fn a_long_frame_holds_what_was_received() {
    let mut reader = MessageReader::new(Role::Server, 1 << 20);
    let mut input = &[1, 0x80, 0x0f, 0xff, 0xff, b'a', b'b'][..];
    assert_eq!(reader.next(&mut input), Ok(None));
    assert_eq!(reader.held(), 2);
    assert!(std::mem::size_of::<MessageReader>() <= 88, "{}", std::mem::size_of::<MessageReader>());
}

fn frame_strategy() -> impl Strategy<Value = (u64, Vec<u8>)> {
    let kind = prop_oneof![4 => Just(0), 3 => Just(1), 1 => Just(GREASE), 1 => 0_u64..16, 1 => 0..=varint::MAX];
    (kind, proptest::collection::vec(any::<u8>(), 0..120))
}

proptest! {
    #[test]
    fn any_pieces_have_the_same_meaning(
        frames in proptest::collection::vec(frame_strategy(), 0..6),
        cut in 0_usize..100,
        more in proptest::collection::vec(any::<u8>(), 0..12),
        cuts in proptest::collection::vec(0_usize..300, 0..20),
        is_server: bool,
    ) {
        let mut bytes = stream(&[(1, "the first head")]);
        for (kind, payload) in frames {
            push(kind, &payload, &mut bytes);
        }
        bytes.truncate(bytes.len().saturating_sub(cut % 50));
        bytes.extend_from_slice(&more);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let role = if is_server { Role::Server } else { Role::Client };
        let (mut pieces, mut whole) = (String::new(), String::new());
        let result = read_parts(role, &bytes, &cuts, &mut pieces);
        prop_assert_eq!(result, read_parts(role, &bytes, &[], &mut whole));
        prop_assert_eq!(pieces, whole);
    }
}
