//! Tests of stick tables with exact times (configuration manual, section 11): rates, expiry of entries, the end of
//! tracking, and shared bandwidth limits.

use config::spec::DataKind;
use live::table::TableKey;
use testkit::{Peer, Service, Stopwatch, both, sleep};

use crate::messages::*;
use crate::world::*;

/// Sends a request for a path; the answer has to contain this text in its field `a`.
async fn asks(peer: &mut Peer, path: &str, value: &str) {
    peer.send(get(path)).await;
    peer.expect(format!("HTTP/1.1 200 OK\r\na: {value}\r\ncontent-length: 0\r\n\r\n")).await;
}

/// A value in an entry of the only table; `None`: there is no such entry.
fn held(world: &World, key: &str, kind: DataKind) -> Option<u64> {
    let table = world.shared().live.tables.get(0).unwrap();
    table.find(&TableKey::Long(key.as_bytes()), rt::now(), |entry| entry.get(kind, 0).unwrap())
}

#[test]
fn a_rate_fades_over_the_period_behind_its_events() {
    let rules = "stick-table type string size 100 expire 1h store http_req_rate(1s)\n http-request track-sc0 path\n \
                 http-request return status 200 hdr a %[sc_http_req_rate(0)]";
    listen(rules).run(|_| async move {
        let mut client = Peer::connect(WEIR).await;
        for number in 1..5 {
            asks(&mut client, "/", &number.to_string()).await;
        }
        sleep(1_500).await;
        // Half of the four, and the current one. A millisecond may have passed.
        client.send(get("/")).await;
        let head = client.receive_head().await.unwrap();
        assert!(head.contains("a: 2\r\n") || head.contains("a: 3\r\n"), "{head}");
        sleep(2_000).await;
        asks(&mut client, "/", "1").await;
    });
}

#[test]
fn an_entry_ends_when_nobody_has_asked_for_it() {
    let rules = "stick-table type string size 100 expire 2s store http_req_cnt\n http-request track-sc0 path\n \
                 http-request return status 200 hdr a %[sc_http_req_cnt(0)]";
    listen(rules).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        asks(&mut client, "/", "1").await;
        sleep(1_900).await;
        asks(&mut client, "/", "2").await;
        sleep(1_900).await;
        assert_eq!(held(&world, "/", DataKind::HttpReqCnt), Some(2), "looking does not refresh it");
        sleep(200).await;
        assert_eq!(held(&world, "/", DataKind::HttpReqCnt), None);
        asks(&mut client, "/", "1").await;
    });
}

#[test]
fn a_connection_counts_until_it_ends_and_keeps_its_entry() {
    let rules = "stick-table type string size 100 expire 1s store conn_cur,conn_cnt\n \
                 tcp-request connection track-sc0 str(a)\n http-request return status 200 hdr a %[sc_conn_cur(0)]";
    listen(rules).run(|world| async move {
        let mut one = Peer::connect(WEIR).await;
        asks(&mut one, "/", "1").await;
        sleep(5_000).await;
        let mut two = Peer::connect(WEIR).await;
        asks(&mut two, "/", "2").await;
        two.reset();
        sleep(10).await;
        asks(&mut one, "/", "1").await;
        drop(one);
        sleep(10).await;
        assert_eq!((held(&world, "a", DataKind::ConnCur), held(&world, "a", DataKind::ConnCnt)), (Some(0), Some(2)));
        sleep(1_000).await;
        assert_eq!(held(&world, "a", DataKind::ConnCur), None);
    });
}

#[test]
fn a_stream_tracks_until_it_is_over_however_that_comes() {
    let rules = "stick-table type string size 100 expire 1h store conn_cur,http_fail_cnt\n \
                 timeout server 1s\n http-request track-sc0 path\n server s1 10.0.1.1:80";
    listen(rules).run(|world| async move {
        let mut s1 = Service::at(S1);
        // A missing answer, a client that disconnects, a server that disconnects.
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/late")).await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/late")).await;
        assert_eq!(held(&world, "/late", DataKind::ConnCur), Some(1));
        client.expect(page(504)).await;
        assert_eq!(held(&world, "/late", DataKind::ConnCur), Some(0));
        assert_eq!(held(&world, "/late", DataKind::HttpFailCnt), Some(1));
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/left")).await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/left")).await;
        client.reset();
        sleep(1_500).await;
        assert_eq!(held(&world, "/left", DataKind::ConnCur), Some(0));
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/gone")).await;
        let server = s1.accept().await;
        drop(server);
        client.expect(page(502)).await;
        assert_eq!(held(&world, "/gone", DataKind::ConnCur), Some(0));
        assert_eq!(held(&world, "/gone", DataKind::HttpFailCnt), Some(1));
    });
}

/// Two downloads with one key: together they get the limit at once, and the same amount in every following period.
#[test]
fn streams_of_a_key_share_a_limit_of_bandwidth() {
    let rules = "stick-table type string size 100 expire 1h store bytes_out_rate(1s)\n \
                 filter bwlim-out all limit 10000 key str(all)\n http-request set-bandwidth-limit all\n \
                 server s1 10.0.1.1:80";
    listen(rules).run(|_| async move {
        let mut s1 = Service::at(S1);
        let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
        one.send(GET).await;
        let mut first = s1.accept().await;
        first.expect(GET_AT_SERVER).await;
        two.send(GET).await;
        let mut second = s1.accept().await;
        second.expect(GET_AT_SERVER).await;
        const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-length: 25000\r\n\r\n";
        let watch = Stopwatch::start();
        let sends = async {
            first.send(HEAD).await;
            first.send(vec![b'x'; 25_000]).await;
            second.send(HEAD).await;
            second.send(vec![b'x'; 25_000]).await;
        };
        let receives = async {
            let receive = async |peer: &mut Peer| {
                peer.expect(HEAD).await;
                peer.receive(25_000).await;
            };
            both(receive(&mut one), receive(&mut two)).await;
        };
        both(sends, receives).await;
        let millis = watch.elapsed().as_millis();
        assert!((4_900..5_500).contains(&millis), "50,000 bytes in {millis} ms");
    });
}
