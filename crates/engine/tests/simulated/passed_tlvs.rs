//! Tests of the TLVs of a client's PROXY header that are sent to a server (`proxy-v2-options pass-tlv`).

use base::buffer::Buffer;
use testkit::{Peer, Service, sleep};
use wire::proxy_protocol::{EncoderV2, Header, ParsedHeader, decode, kind};

use crate::messages::*;
use crate::world::*;

/// The header of a client at 192.0.2.1:1000 with these TLVs.
fn header(tlvs: &[(u8, &[u8])], checksum: bool) -> Vec<u8> {
    let mut out = Buffer::with_capacity(60_000);
    let ends = Some(("192.0.2.1:1000".parse().unwrap(), "203.0.113.9:80".parse().unwrap()));
    let mut encoder = EncoderV2::begin(ends, &mut out);
    tlvs.iter().for_each(|(kind, value)| encoder.field(*kind, value));
    encoder.finish(checksum, |_| {}).unwrap();
    out.data().to_vec()
}

/// The header at the beginning of a server's connection.
async fn received(server: &mut Peer) -> Header {
    let mut bytes = server.receive(16).await;
    bytes.extend(server.receive(usize::from(u16::from_be_bytes([bytes[14], bytes[15]]))).await);
    match decode(&bytes, 60_000).unwrap() {
        ParsedHeader::Complete { header, .. } => header,
        ParsedHeader::Partial => panic!("{bytes:?}"),
    }
}

/// The TLVs of a header, without the value of the checksum, which the decoder verifies.
fn shown(header: &Header) -> Vec<(u8, String)> {
    let text = |tlv: wire::proxy_protocol::Tlv<'_>| match tlv.kind {
        kind::CRC32C => String::new(),
        _ => String::from_utf8_lossy(tlv.value).into_owned(),
    };
    header.tlvs.iter().map(|tlv| (tlv.kind, text(tlv))).collect()
}

/// A configuration whose server has these options.
fn served(options: &str) -> Worlds {
    config(&format!("listen l\n mode tcp\n bind {WEIR} accept-proxy\n server s {S1} send-proxy-v2 {options}\n"))
}

const SENT: &[(u8, &[u8])] = &[
    (kind::ALPN, b"h2"),
    (kind::NOOP, b"filling"),
    (0xea, b"\x01vpce-1"),
    (kind::AUTHORITY, b"a.example"),
    (kind::UNIQUE_ID, b"theirs"),
    (0xe1, b"first"),
    (0xe1, b"second"),
    (kind::SSL, b"\x01\0\0\0\0"),
];

#[test]
fn tlvs_of_the_client_are_passed_on() {
    let all = [
        (kind::ALPN, "h2"),
        (0xea, "\x01vpce-1"),
        (kind::AUTHORITY, "a.example"),
        (kind::UNIQUE_ID, "theirs"),
        (0xe1, "first"),
        (0xe1, "second"),
        (kind::SSL, "\x01\0\0\0\0"),
    ];
    let with_checksum: Vec<(u8, &str)> = all.into_iter().chain([(kind::CRC32C, "")]).collect();
    let own = [
        (0xe1, "own"),
        (kind::ALPN, "h2"),
        (0xea, "\x01vpce-1"),
        (kind::AUTHORITY, "a.example"),
        (kind::CRC32C, ""),
        (kind::UNIQUE_ID, "ours"),
        (kind::SSL, "\0\0\0\0\0"),
    ];
    type Row<'a> = (&'static str, bool, &'a [(u8, &'static str)]);
    let rows: [Row<'_>; 5] = [
        ("", true, &[]),
        ("proxy-v2-options pass-tlv", false, &all),
        ("proxy-v2-options pass-tlv", true, &with_checksum),
        ("proxy-v2-options crc32c,pass-tlv", false, &with_checksum),
        ("proxy-v2-options pass-tlv,crc32c,unique-id,authority,ssl set-proxy-v2-tlv-fmt(0xe1) own", false, &own),
    ];
    for (options, checksum, expected) in rows {
        let expected: Vec<(u8, String)> = expected.iter().map(|(kind, text)| (*kind, (*text).to_owned())).collect();
        let text = format!(
            "listen l\n mode tcp\n unique-id-format ours\n bind {WEIR} accept-proxy\n server s {S1} send-proxy-v2 {options}\n"
        );
        config(&text).run(move |_| {
            let expected = expected.clone();
            async move {
                let mut service = Service::at(S1);
                let mut client = Peer::connect(WEIR).await;
                client.send(header(SENT, checksum)).await;
                let mut server = service.accept().await;
                let header = received(&mut server).await;
                assert_eq!(shown(&header), expected, "{options}");
                assert_eq!(header.inet().unwrap().0.to_string(), "192.0.2.1:1000");
                client.send("hello").await;
                server.expect("hello").await;
                // The other ones have none: no header, and a header without them.
                for sent in [header_of_version_1().to_vec(), self::header(&[], false)] {
                    let mut client = Peer::connect(WEIR).await;
                    client.send(sent).await;
                    let mut server = service.accept().await;
                    let header = received(&mut server).await;
                    assert!(!header.tlvs.iter().any(|tlv| matches!(tlv.kind, 0xea | kind::ALPN)), "{options}");
                }
            }
        });
    }
}

fn header_of_version_1() -> &'static [u8] {
    b"PROXY TCP4 192.0.2.1 203.0.113.9 1000 80\r\n"
}

#[test]
fn a_connection_is_reused_only_with_the_same_tlvs() {
    let text = format!(
        "listen l\n http-reuse always\n bind {WEIR} accept-proxy\n server s {S1} send-proxy-v2 proxy-v2-options pass-tlv\n"
    );
    config(&text).run(|world| async move {
        let (mut service, mut kept) = (Service::at(S1), Vec::new());
        // Clients with the same addresses, as a load balancer in front of Weir may send them.
        for (value, is_fresh) in [(&b"one"[..], true), (b"one", false), (b"two", true), (b"one", false)] {
            let mut client = Peer::connect(WEIR).await;
            client.send([header(&[(0xe1, value)], false), GET.into()].concat()).await;
            if is_fresh {
                let mut server = service.accept().await;
                assert_eq!(received(&mut server).await.tlvs.first(0xe1), Some(value));
                server.expect(GET_AT_SERVER).await;
                server.send(OK).await;
                client.expect(OK_AT_CLIENT).await;
                kept.push((value, server));
            } else {
                let (_, server) = kept.iter_mut().find(|(known, _)| *known == value).unwrap();
                server.expect(GET_AT_SERVER).await;
                server.send(OK).await;
                client.expect(OK_AT_CLIENT).await;
            }
            client.close();
            sleep(1).await;
        }
        world.forget_log();
    });
}

#[test]
fn tlvs_that_do_not_fit_beside_those_of_weir_fail_the_connection() {
    // The client's header fits into a buffer; with a further field it does not.
    let options = format!("proxy-v2-options pass-tlv set-proxy-v2-tlv-fmt(0xe2) {}", "x".repeat(200));
    served(&options).run(|world| async move {
        let mut service = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(header(&[(0xe1, &[b'y'; 16_200])], false)).await;
        client.expect_end().await;
        service.is_left_alone();
        world.forget_log();
    });
}
