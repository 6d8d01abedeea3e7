//! Tests of the times of one connection's streams in the log (configuration manual, section 8.4): handshakes count for
//! the first one, and the idle time of each begins with the end of the previous stream.

use testkit::{Peer, sleep};
use wire::h2::{Kind, PREFACE, flag, push_frame};

use crate::h2::block;
use crate::world::*;

const HEADER: &str = "PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n";

fn request(stream: u32, path: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let block = block("GET", path, &[]);
    push_frame(&mut out, Kind::Headers, flag::END_HEADERS | flag::END_STREAM, stream, &block);
    out
}

#[test]
fn clients_wait_since_the_stream_before() {
    let lines = "listen l\n bind 10.0.0.1:80 accept-proxy\n timeout client 5s\n http-request pause 300 if { path /pause }\n \
                 http-request return status 200\n log-format \"[1] %HPO %Th/%Ti/%TR/%Tq/%Tu/%Tt\"\n";
    config(lines).run(|world| async move {
        let mut client = Peer::connect(WEIR).await;
        sleep(150).await;
        client.send(HEADER).await;
        sleep(100).await;
        let mut begin = PREFACE.to_vec();
        push_frame(&mut begin, Kind::Settings, 0, 0, &[]);
        client.send(begin).await;
        sleep(50).await;
        client.send(request(1, "/one")).await;
        sleep(400).await;
        client.send(request(3, "/two")).await;
        sleep(350).await;
        client.send([request(5, "/pause"), request(7, "/three")].concat()).await;
        sleep(500).await;
        client.send(request(9, "/four")).await;
        let expected = [
            ("/one", [150, 150, 0, 300, 150, 300]),
            ("/two", [0, 400, 0, 400, 0, 400]),
            ("/three", [0, 0, 0, 0, 0, 0]),
            ("/pause", [0, 350, 300, 650, 300, 650]),
            ("/four", [0, 500, 0, 500, 0, 500]),
        ];
        let lines = world.lines(expected.len()).await;
        for (line, (path, times)) in lines.iter().zip(expected) {
            let (found, shown) = line.rsplit_once(' ').unwrap();
            let shown: Vec<u64> = shown.split('/').map(|time| time.parse().unwrap()).collect();
            // Bytes take some microseconds, and times are truncated to milliseconds.
            let fits = shown.iter().zip(times).all(|(shown, time)| shown.abs_diff(time) <= 2);
            assert!(found.ends_with(path) && shown.len() == times.len() && fits, "{path} {times:?}: {line}");
        }
        assert_eq!(lines.len(), expected.len());
        client.close();
    });
}
