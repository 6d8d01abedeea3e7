//! Responses as golden bytes: whole, in single bytes, and split in two at every position.

use super::*;

/// Result of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ReadOutcome {
    /// Complete: its status, and whether the connection can be reused.
    Whole(u16, bool),
    /// More bytes were expected at the end.
    Cut,
    /// Not HTTP.
    Bad,
}

/// Feeds pieces, dropping those that are entirely body and may be dropped; then the end, if `closed` is set.
fn take(pieces: &[&[u8]], head_only: bool, closed: bool, scratch: &mut Scratch) -> ReadOutcome {
    let mut answer = Answer::new();
    answer.begin(0, head_only);
    let mut step = NextRead::Read;
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        step = match step {
            NextRead::Drop(count) if count >= piece.len() as u64 => answer.dropped(piece.len() as u64),
            _ => match answer.feed(&mut piece.to_vec(), scratch) {
                Ok(step) => step,
                Err(NoHttp) => return ReadOutcome::Bad,
            },
        };
    }
    if step == NextRead::End || (closed && answer.closed()) {
        ReadOutcome::Whole(answer.status(), answer.keeps_alive())
    } else {
        ReadOutcome::Cut
    }
}

#[track_caller]
fn check(bytes: &[u8], head_only: bool, closed: bool, expected: &ReadOutcome) {
    let text = bytes.escape_ascii().to_string();
    // One scratch without heads, and one that has already parsed this response.
    let (mut fresh, mut used) = (Scratch::new(1), Scratch::new(1));
    for _ in 0..2 {
        assert_eq!(take(&[bytes], head_only, closed, &mut used), *expected, "{text}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(take(&single, head_only, closed, &mut fresh), *expected, "{text} byte by byte");
    for scratch in [&mut fresh, &mut used] {
        for cut in 0..bytes.len() {
            let (one, other) = bytes.split_at(cut);
            assert_eq!(take(&[one, other], head_only, closed, scratch), *expected, "{text} cut at {cut}");
        }
    }
}

#[test]
fn every_framing_ends_where_it_should() {
    let kept = |status| ReadOutcome::Whole(status, true);
    for (text, status) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200),
        ("HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx", 200),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 700\r\n\r\n", 304),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n", 200),
        ("HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\nTrailer: 1\r\n\r\n", 500),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No\r\n\r\n", 204),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 200),
    ] {
        check(text.as_bytes(), false, false, &kept(status));
        check(&text.as_bytes()[..text.len() - 1], false, true, &ReadOutcome::Cut);
        check(format!("{text}x").as_bytes(), false, false, &ReadOutcome::Bad);
    }
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 700\r\n\r\n", true, false, &kept(200));
    check(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true, false, &kept(200));
}

#[test]
fn connections_that_close_are_not_used_on() {
    let closed = |status| ReadOutcome::Whole(status, false);
    check(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", false, false, &closed(200));
    check(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", false, false, &closed(200));
    check(b"HTTP/1.1 200 OK\r\n\r\nup to the end", false, true, &closed(200));
    check(b"HTTP/1.1 200 OK\r\n\r\nup to the end", false, false, &ReadOutcome::Cut);
}

#[test]
fn what_is_no_http_is_refused() {
    for text in [
        "220 mail.example.com ESMTP\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
    ] {
        check(text.as_bytes(), false, false, &ReadOutcome::Bad);
    }
}

#[test]
fn a_head_and_interim_answers_without_end_are_refused() {
    let endless = ["HTTP/1.1 200 OK\r\nX: ".as_bytes(), &[b'a'; LARGEST_HEAD]].concat();
    let pieces: Vec<&[u8]> = endless.chunks(1_000).collect();
    assert_eq!(take(&pieces, false, false, &mut Scratch::new(1)), ReadOutcome::Bad);
    let interim = "HTTP/1.1 102 Processing\r\n\r\n".repeat(1 + MOST_INTERIM as usize);
    assert_eq!(take(&[interim.as_bytes()], false, false, &mut Scratch::new(1)), ReadOutcome::Bad);
}

#[test]
fn a_body_is_dropped_without_being_read() {
    let mut scratch = Scratch::new(1);
    let mut answer = Answer::new();
    answer.begin(0, false);
    let mut head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nabc".to_vec();
    assert_eq!(answer.feed(&mut head, &mut scratch), Ok(NextRead::Drop(999_997)));
    assert_eq!(answer.dropped(999_990), NextRead::Drop(7));
    assert_eq!(answer.dropped(7), NextRead::End);
    answer.begin(0, false);
    let mut head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\nabc".to_vec();
    assert_eq!(answer.feed(&mut head, &mut scratch), Ok(NextRead::Drop(0xf_fffc)));
    assert_eq!(answer.dropped(0xf_fffc), NextRead::Read);
    assert_eq!(answer.feed(&mut b"\r\n0\r\n\r\n".to_vec(), &mut scratch), Ok(NextRead::End));
}

#[test]
fn a_head_that_is_known_is_another_one_for_another_target() {
    let mut scratch = Scratch::new(2);
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(take(&[text, b"hello"], false, false, &mut scratch), ReadOutcome::Whole(200, true));
    let mut answer = Answer::new();
    answer.begin(1, true);
    assert_eq!(answer.feed(&mut text.to_vec(), &mut scratch), Ok(NextRead::End), "the answer to HEAD has no body");
}
