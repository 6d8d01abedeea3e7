//! Tests of the conduct of HTTP/3's clients: glitches and faults that end a connection, first gracefully.

use quic::Closed;
use testkit::Service;
use wire::h3::{self, ErrorCode, StreamType};

use crate::http3_client::{Client, tls};
use crate::http3_faults::{CLIENT, QUIC, frame, serving, varint, with};
use crate::messages::*;
use crate::world::*;

/// Returns the code with which Weir has closed the connection.
fn code(client: &Client) -> Option<ErrorCode> {
    match &client.closed {
        Some(Closed::ByPeer { code, .. }) => ErrorCode::of(*code),
        None => None,
        other => panic!("{other:?}"),
    }
}

/// Three quarters of a threshold let requests end, and reject others; the threshold ends the connection at once, unless the worker
/// is idle.
#[test]
fn a_threshold_ends_a_connection() {
    let idle = "\ntune.glitches.kill.cpu-usage 100";
    for (glitches, more, expected) in [
        (5, "", None),
        (6, "", Some(ErrorCode::NoError)),
        (8, "", Some(ErrorCode::ExcessiveLoad)),
        (8, idle, Some(ErrorCode::NoError)),
    ] {
        let worlds = serving().global(&format!("tune.quic.fe.sec.glitches-threshold 8{more}"));
        worlds.run(move |world| async move {
            let mut s1 = Service::at(S1);
            let mut client = Client::connect(CLIENT, QUIC).await;
            let first = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
            let mut one = client.beside(s1.accept()).await;
            client.beside(one.expect(get_at_server("/1"))).await;
            // They arrive together.
            let bad: Vec<_> = (0..glitches).map(|_| client.open_whole(&with("B c"))).collect();
            if expected == Some(ErrorCode::ExcessiveLoad) {
                client.until(|client| client.closed.is_some()).await;
                assert_eq!(code(&client), expected);
                world.forget_log();
                return;
            }
            for id in bad {
                assert_eq!(client.answer(id).await.reset, Some(ErrorCode::MessageError.number()));
            }
            let second = client.request("GET /2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
            if expected.is_some() {
                assert_eq!(client.answer(second).await.reset, Some(ErrorCode::RequestRejected.number()));
            }
            // It has a connection of its own while the first one is used.
            let two = if expected.is_none() { Some(client.beside(s1.accept()).await) } else { None };
            one.send(answer("one")).await;
            assert_eq!(client.answer(first).await.payload, b"one");
            match two {
                None => client.until(|client| client.closed.is_some()).await,
                Some(mut two) => {
                    client.beside(two.expect(get_at_server("/2"))).await;
                    two.send(answer("two")).await;
                    assert_eq!(client.answer(second).await.payload, b"two");
                }
            }
            assert_eq!(code(&client), expected, "{glitches} {more}");
            if expected.is_none() {
                client.close().await;
            }
            world.forget_log();
        });
    }
}

/// A head with too many fields costs more of the budget than another fault, by its size.
#[test]
fn heads_with_many_fields_exhaust_the_budget() {
    serving().run(|world| async move {
        let mut client = Client::connect(CLIENT, QUIC).await;
        let section = [&[0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'][..], &[0xdf; 190]].concat();
        let mut count = 0;
        while client.closed.is_none() {
            let id = client.open_whole(&frame(0x01, &section));
            let answer = client.answer(id).await;
            count += u32::from(answer.ended);
        }
        // 750 points: 2 of a fault, 3 for 198 bytes, and 1 less for a stream.
        assert!((185..192).contains(&count), "{count}");
        assert_eq!(code(&client), Some(ErrorCode::NoError));
        world.forget_log();
    });
}

/// The last stream that a client may open yet can be prioritized (RFC 9218, section 7.2), and each stream that begins adds one.
#[test]
fn streams_within_the_limit_are_prioritized() {
    serving().run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::begin(CLIENT, QUIC, &tls(&["h3"], false));
        client.until(|client| client.is_connected()).await;
        let update = |stream: u64| frame(0xf0700, &[varint(stream), b"u=1".to_vec()].concat());
        let mut bytes = Vec::new();
        h3::push_stream_type(StreamType::Control, &mut bytes);
        bytes.extend([frame(0x04, &[]), update(4 * 23)].concat());
        let control = client.open_uni(&bytes);
        let mut server = None;
        for (number, path) in ["/1", "/2"].into_iter().enumerate() {
            let id = client.request(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            let one = match &mut server {
                Some(one) => one,
                none => none.insert(client.beside(s1.accept()).await),
            };
            client.beside(one.expect(get_at_server(path))).await;
            client.write(control, &update(4 * (24 + number as u64))).await;
            one.send(answer("one")).await;
            assert_eq!(client.answer(id).await.payload, b"one", "{path}");
        }
        client.write(control, &update(4 * 26)).await;
        client.until(|client| client.closed.is_some()).await;
        assert_eq!(code(&client), Some(ErrorCode::IdError));
        world.forget_log();
    });
}
