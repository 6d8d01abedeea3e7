//! UDP in batches on the simulated network: what arrives, and each fault of a path.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::task::Poll;
use std::time::Duration;

use crate::rt;
use crate::support::*;
use base::Moment;
use rt::net::{
    BindOptions, ConnectOptions, DatagramSocket, Ecn, PeerRejected, ReceiveBatch, Transmit, steer_by_connection_id,
    steered_index,
};
use rt::sim::{DatagramFaults, DatagramPath, network};

const SERVER: &str = "10.0.0.1:443";
const CLIENT: &str = "10.0.9.9:5000";

/// A datagram, when it arrived and what was received with it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReceivedDatagram {
    bytes: Vec<u8>,
    peer: SocketAddr,
    local_ip: Option<IpAddr>,
    ecn: Option<Ecn>,
    at: Moment,
}

fn bind(address: &str) -> DatagramSocket {
    DatagramSocket::bind(address.parse().unwrap(), &BindOptions::default()).unwrap()
}

fn transmit<'a>(destination: &str, contents: &'a [u8]) -> Transmit<'a> {
    let destination = destination.parse().unwrap();
    Transmit { destination, source: None, ecn: None, contents, segment_size: None }
}

async fn send(socket: &DatagramSocket, mut transmits: &mut [Transmit<'_>]) {
    while !transmits.is_empty() {
        let done = poll_fn(|context| socket.poll_send(context, transmits)).await.unwrap();
        transmits = &mut transmits[done..];
    }
}

/// Sends numbered datagrams of that size, each by itself.
async fn send_numbers(socket: &DatagramSocket, to: &str, count: u32, size: usize) {
    for number in 0..count {
        let mut contents = vec![0; size];
        contents[..4].copy_from_slice(&number.to_be_bytes());
        send(socket, &mut [Transmit { ecn: Some(Ecn::Ect0), ..transmit(to, &contents) }]).await;
    }
}

/// Receives what arrives within ten seconds.
async fn receive(socket: &DatagramSocket) -> Vec<ReceivedDatagram> {
    let (mut arrived, mut batch) = (Vec::new(), ReceiveBatch::new());
    let mut end = std::pin::pin!(rt::sleep(Duration::from_secs(10)));
    poll_fn(|context| {
        while let Poll::Ready(result) = socket.poll_receive(context, &mut batch) {
            result.unwrap();
            for message in batch.iter() {
                let (peer, local_ip, ecn, at) = (message.peer, message.local_ip, message.ecn, rt::now());
                arrived.extend(message.iter().map(|bytes| ReceivedDatagram {
                    bytes: bytes.to_vec(),
                    peer,
                    local_ip,
                    ecn,
                    at,
                }));
            }
        }
        end.as_mut().poll(context)
    })
    .await;
    arrived
}

fn numbers(arrived: &[ReceivedDatagram]) -> Vec<u32> {
    arrived.iter().map(|datagram| u32::from_be_bytes(datagram.bytes[..4].try_into().unwrap())).collect()
}

/// Sends a hundred datagrams over a path to the server; returns what arrives, and what the path did.
async fn hundred_over(path: DatagramPath) -> (Vec<ReceivedDatagram>, DatagramFaults) {
    let (server, client) = (bind(SERVER), bind(CLIENT));
    network().set_path_to(&address(SERVER), path);
    send_numbers(&client, SERVER, 100, 100).await;
    (receive(&server).await, network().datagram_faults())
}

#[test]
fn addresses_marks_and_segments_arrive() {
    under_seeds(|| async {
        let (server, client) = (bind("0.0.0.0:443"), bind("0.0.0.0:0"));
        let contents: Vec<u8> = (0..250).collect();
        let ecn = Some(Ecn::Ect0);
        let source = Some("10.0.9.9".parse().unwrap());
        send(&client, &mut [Transmit { ecn, source, segment_size: Some(60), ..transmit(SERVER, &contents) }]).await;
        let arrived = receive(&server).await;
        let chunks: Vec<&[u8]> = arrived.iter().map(|datagram| &datagram.bytes[..]).collect();
        assert_eq!(chunks, contents.chunks(60).collect::<Vec<_>>(), "in order");
        let port = client.local_address().port();
        for ReceivedDatagram { peer, local_ip, ecn, .. } in &arrived {
            assert_eq!(*peer, SocketAddr::new("10.0.9.9".parse().unwrap(), port));
            assert_eq!((*local_ip, *ecn), (Some("10.0.0.1".parse().unwrap()), Some(Ecn::Ect0)));
        }
        let (destination, source) = (arrived[0].peer, arrived[0].local_ip);
        send(&server, &mut [Transmit { destination, source, ..transmit(SERVER, b"reply") }]).await;
        let replies = receive(&client).await;
        assert_eq!((replies.len(), replies[0].peer), (1, SERVER.parse().unwrap()));
        assert_eq!((replies[0].local_ip, replies[0].ecn), (Some("10.0.9.9".parse().unwrap()), None));
        let captured = network().take_datagrams();
        assert_eq!((captured.len(), captured[0].ecn, &captured[5].to), (6, Some(Ecn::Ect0), &destination.into()));
    });
}

/// Datagrams are joined like those of the kernel: of one peer, of one length, with one mark.
#[test]
fn only_what_is_alike_is_joined() {
    under_seeds(|| async {
        let (server, client, other) = (bind(SERVER), bind(CLIENT), bind("10.0.9.8:5000"));
        let mut joined = 0;
        for _ in 0..20 {
            for (sender, length, ecn) in [(&client, 9, None), (&client, 9, None), (&client, 9, Some(Ecn::Ce))] {
                send(sender, &mut [Transmit { ecn, ..transmit(SERVER, &[1; 9][..length]) }]).await;
            }
            send(&other, &mut [transmit(SERVER, &[2; 9]), transmit(SERVER, &[2; 5]), transmit(SERVER, &[2; 5])]).await;
        }
        let mut batch = ReceiveBatch::new();
        let mut count = 0;
        while count < 120 {
            poll_fn(|context| server.poll_receive(context, &mut batch)).await.unwrap();
            for message in batch.iter() {
                let datagrams: Vec<&[u8]> = message.iter().collect();
                count += datagrams.len();
                joined += usize::from(datagrams.len() > 1);
                assert!(message.bytes.iter().all(|byte| *byte == message.bytes[0]), "of one peer");
                let (last, others) = datagrams.split_last().unwrap();
                assert!(others.iter().all(|datagram| datagram.len() == message.stride));
                assert!(last.len() <= message.stride);
            }
        }
        assert_eq!(count, 120);
        assert!(joined > 0);
    });
}

#[test]
fn a_path_loses_some_and_keeps_the_order_of_the_others() {
    under_seeds(|| async {
        let (arrived, faults) = hundred_over(DatagramPath { loss: 200, ..DatagramPath::default() }).await;
        let arrived = numbers(&arrived);
        assert!(arrived.is_sorted() && (50..95).contains(&arrived.len()), "{arrived:?}");
        assert_eq!(faults, DatagramFaults { lost: 100 - arrived.len() as u64, ..DatagramFaults::default() });
    });
}

#[test]
fn a_path_duplicates_some() {
    under_seeds(|| async {
        let (arrived, faults) = hundred_over(DatagramPath { duplicates: 200, ..DatagramPath::default() }).await;
        let mut arrived = numbers(&arrived);
        assert_eq!(arrived.len() as u64, 100 + faults.duplicated);
        assert!((5..50).contains(&faults.duplicated), "{faults:?}");
        arrived.sort_unstable();
        arrived.dedup();
        assert_eq!(arrived, (0..100).collect::<Vec<_>>());
    });
}

#[test]
fn jitter_reorders_where_the_order_is_not_kept() {
    under_seeds(|| async {
        let (latency, jitter) = (Duration::from_millis(10), Duration::from_millis(5));
        let path = DatagramPath { latency, jitter, keeps_order: false, ..DatagramPath::default() };
        let begun = rt::now();
        let (arrived, _) = hundred_over(path).await;
        let times: Vec<u64> = arrived.iter().map(|datagram| datagram.at.millis_since(begun)).collect();
        assert!(times.iter().all(|time| (10..=15).contains(time)), "{times:?}");
        let mut arrived = numbers(&arrived);
        assert!(!arrived.is_sorted());
        arrived.sort_unstable();
        assert_eq!(arrived, (0..100).collect::<Vec<_>>());
    });
}

#[test]
fn a_path_inverts_one_bit_of_some() {
    under_seeds(|| async {
        let (arrived, faults) = hundred_over(DatagramPath { corruption: 200, ..DatagramPath::default() }).await;
        let wrong = arrived.iter().zip(0_u32..).filter(|(datagram, number)| {
            let mut sent = [0; 100];
            sent[..4].copy_from_slice(&number.to_be_bytes());
            let bits: u32 = sent.iter().zip(&datagram.bytes).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert!(bits <= 1 && datagram.bytes.len() == 100);
            bits == 1
        });
        assert_eq!(wrong.count() as u64, faults.corrupted);
        assert!((5..50).contains(&faults.corrupted) && arrived.len() == 100, "{faults:?}");
    });
}

#[test]
fn a_congested_path_marks_what_supports_it() {
    under_seeds(|| async {
        let (arrived, faults) = hundred_over(DatagramPath { marks: 200, ..DatagramPath::default() }).await;
        let marked = arrived.iter().filter(|datagram| datagram.ecn == Some(Ecn::Ce)).count() as u64;
        let unmarked = arrived.iter().filter(|datagram| datagram.ecn == Some(Ecn::Ect0)).count() as u64;
        assert_eq!((marked, marked + unmarked), (faults.marked, 100));
        assert!((5..50).contains(&marked));
        // What does not support ECN is not marked.
        let (server, client) = (bind("10.0.0.2:443"), bind("10.0.9.9:5001"));
        network().set_path_to(&address("10.0.0.2:443"), DatagramPath { marks: 1000, ..DatagramPath::default() });
        send(&client, &mut [transmit("10.0.0.2:443", b"x")]).await;
        assert_eq!(receive(&server).await[0].ecn, None);
    });
}

#[test]
fn a_path_may_clear_the_marks() {
    under_seeds(|| async {
        let path = DatagramPath { bleaches_ecn: true, marks: 500, ..DatagramPath::default() };
        let (arrived, _) = hundred_over(path).await;
        assert!(arrived.len() == 100 && arrived.iter().all(|datagram| datagram.ecn.is_none()));
    });
}

#[test]
fn what_is_larger_than_the_path_permits_is_dropped() {
    under_seeds(|| async {
        let (server, client) = (bind(SERVER), bind(CLIENT));
        network().set_path_to(&address(SERVER), DatagramPath { mtu: 1200, ..DatagramPath::default() });
        let contents = [0; 1201];
        let mut transmits = [
            transmit(SERVER, &contents),
            transmit(SERVER, &contents[..1200]),
            Transmit { segment_size: Some(700), ..transmit(SERVER, &contents) },
        ];
        send(&client, &mut transmits).await;
        let lengths: Vec<usize> = receive(&server).await.iter().map(|datagram| datagram.bytes.len()).collect();
        assert_eq!(lengths, [1200, 700, 501]);
        assert_eq!(network().datagram_faults().too_large, 1);
        assert_eq!(client.counts().too_large, 0, "the path drops it silently");
        // What no packet can carry does not leave the host.
        send(&client, &mut [transmit(SERVER, &[0; 65_508])]).await;
        assert_eq!(client.counts().too_large, 1);
    });
}

#[test]
fn a_limited_rate_delays_and_its_queue_overflows() {
    under_seeds(|| async {
        let (latency, jitter) = (Duration::from_millis(10), Duration::ZERO);
        // A datagram each millisecond, and twenty that wait.
        let path = DatagramPath { latency, jitter, rate: Some(100_000), queue: 2000, ..DatagramPath::default() };
        let begun = rt::now();
        let (server, client) = (bind(SERVER), bind(CLIENT));
        network().set_path_to(&address(SERVER), path);
        let contents = [0; 3000];
        send(&client, &mut [Transmit { segment_size: Some(100), ..transmit(SERVER, &contents) }]).await;
        let arrived = receive(&server).await;
        let times: Vec<u64> = arrived.iter().map(|datagram| datagram.at.millis_since(begun)).collect();
        assert_eq!(times, (11..31).collect::<Vec<_>>());
        assert_eq!(network().datagram_faults().overflowed, 10);
        // The queue is empty again.
        send(&client, &mut [transmit(SERVER, b"x")]).await;
        assert_eq!(receive(&server).await.len(), 1);
    });
}

#[test]
fn each_direction_has_a_path_of_its_own() {
    under_seeds(|| async {
        let (server, client) = (bind(SERVER), bind(CLIENT));
        let path = |millis| DatagramPath { latency: Duration::from_millis(millis), ..DatagramPath::default() };
        network().set_datagram_path(path(500));
        network().set_path_to(&address(SERVER), path(20));
        network().set_path_from(&address(SERVER), path(70));
        let took = async |from: &DatagramSocket, to: &DatagramSocket| {
            let (begun, destination) = (rt::now(), to.local_address());
            send(from, &mut [Transmit { destination, ..transmit(SERVER, b"x") }]).await;
            receive(to).await[0].at.millis_since(begun)
        };
        assert_eq!([took(&client, &server).await, took(&server, &client).await], [20, 70]);
        let other = bind("10.0.9.8:5000");
        network().set_path_from(&address("10.0.9.8:5000"), path(90));
        assert_eq!([took(&other, &server).await, took(&client, &other).await], [20, 500]);
    });
}

#[test]
fn a_translator_moves_a_client_to_another_address() {
    under_seeds(|| async {
        let (server, client) = (bind(SERVER), bind(CLIENT));
        let moved = "192.0.2.1:7777";
        send(&client, &mut [transmit(SERVER, b"before")]).await;
        assert_eq!(receive(&server).await[0].peer, CLIENT.parse().unwrap());
        // In transit to the former address when the client is moved.
        send(&server, &mut [transmit(CLIENT, b"late")]).await;
        network().rebind(&address(CLIENT), &address(moved));
        send(&client, &mut [transmit(SERVER, b"after")]).await;
        assert_eq!(receive(&server).await[0].peer, moved.parse().unwrap());
        send(&server, &mut [transmit(CLIENT, b"lost"), transmit(moved, b"arrives")]).await;
        let arrived = receive(&client).await;
        assert_eq!(arrived.iter().map(|datagram| &datagram.bytes[..]).collect::<Vec<_>>(), [b"arrives"]);
        assert_eq!(arrived[0].peer, SERVER.parse().unwrap());
        // Only the port, and back.
        for outside in ["192.0.2.1:7778", CLIENT] {
            network().rebind(&address(CLIENT), &address(outside));
            send(&client, &mut [transmit(SERVER, b"again")]).await;
            assert_eq!(receive(&server).await[0].peer, outside.parse().unwrap());
            send(&server, &mut [transmit(outside, b"reply")]).await;
            assert_eq!(receive(&client).await[0].bytes, b"reply");
        }
    });
}

#[test]
fn a_full_send_buffer_makes_a_sender_wait() {
    under_seeds(|| async {
        let (server, client) = (bind(SERVER), bind(CLIENT));
        network().fill_send_buffer(&address(CLIENT), true);
        assert_eq!(client.try_send(&mut [transmit(SERVER, b"dropped")]), 0);
        let emptied = rt::now() + Duration::from_secs(1);
        rt::spawn(rt::Class::Normal, 0, async move {
            rt::sleep_until(emptied).await;
            network().fill_send_buffer(&address(CLIENT), false);
        });
        for _ in 0..2 {
            send(&client, &mut [transmit(SERVER, b"waits")]).await;
            assert!(rt::now() >= emptied);
        }
        assert_eq!(receive(&server).await.len(), 2);
    });
}

#[test]
fn a_group_is_steered_by_connection_ids() {
    under_seeds(|| async {
        let group = DatagramSocket::bind_group(SERVER.parse().unwrap(), &BindOptions::default(), 3).unwrap();
        let alone = DatagramSocket::bind(SERVER.parse().unwrap(), &BindOptions::default());
        assert_eq!(alone.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
        steer_by_connection_id(&group).unwrap();
        let client = bind(CLIENT);
        for id in 0..30 {
            send(&client, &mut [transmit(SERVER, &[0x40, id, 0, 0, 0, 0, 0, 0, 0])]).await;
        }
        for (at, socket) in group.iter().enumerate() {
            let arrived = receive(socket).await;
            assert!(arrived.len() == 10 && arrived.iter().all(|datagram| steered_index(&datagram.bytes, 3) == at));
        }
    });
}

#[test]
fn a_black_hole_swallows_both_directions() {
    under_seeds(|| async {
        let (server, client) = (bind(SERVER), bind(CLIENT));
        network().black_hole(&address(SERVER), true);
        send(&client, &mut [transmit(SERVER, b"x")]).await;
        send(&server, &mut [transmit(CLIENT, b"x")]).await;
        assert_eq!((receive(&server).await.len(), receive(&client).await.len()), (0, 0));
        network().black_hole(&address(SERVER), false);
        send(&server, &mut [transmit(CLIENT, b"x")]).await;
        assert_eq!(receive(&client).await.len(), 1);
    });
}

#[test]
fn the_seed_determines_every_fault() {
    let run = |seed| {
        rt::sim::run(seed, 1, idle(), async {
            let (latency, jitter) = (Duration::from_millis(1), Duration::from_millis(1));
            let path = DatagramPath {
                latency,
                jitter,
                keeps_order: false,
                loss: 100,
                duplicates: 100,
                corruption: 100,
                marks: 100,
                rate: Some(10_000_000),
                ..DatagramPath::default()
            };
            let (arrived, faults) = hundred_over(path).await;
            (arrived, faults, network().fingerprint())
        })
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}

/// A rejection ends sending to a peer: what was sent before it is known, and nothing is sent after it.
#[test]
fn sending_to_a_peer_stops_at_a_rejection() {
    under_seeds(|| async {
        for most_segments in [1, 64] {
            let server = bind(SERVER);
            let socket =
                DatagramSocket::connect(SERVER.parse().unwrap(), &ConnectOptions::default(), most_segments).unwrap();
            // A message has one datagram, or 64 of them.
            let contents: Vec<_> = (0..100).flat_map(|number| [number; 10]).collect();
            let mut batch = Transmit { segment_size: Some(10), ..transmit(SERVER, &contents) };
            network().reject_after(&address(SERVER), 1);
            assert_eq!(socket.try_send_to_peer(&mut batch), Err(PeerRejected));
            assert_eq!(batch.contents, &contents[10 * most_segments..]);
            let mut sent: Vec<_> = receive(&server).await.iter().map(|found| found.bytes[0]).collect();
            sent.sort_unstable();
            assert_eq!(sent, (0..most_segments as u8).collect::<Vec<_>>());
            assert_eq!(socket.try_send_to_peer(&mut batch), Ok(true));
            assert_eq!(
                receive(&server).await.iter().map(|found| found.bytes.len()).sum::<usize>(),
                1_000 - 10 * most_segments
            );
            // `try_send` loses what was rejected, and goes on.
            network().reject_after(&address(SERVER), 0);
            let mut transmits = [transmit(SERVER, b"0"), transmit(SERVER, b"1")];
            assert_eq!((socket.try_send(&mut transmits), socket.counts().unsent), (2, 1));
            assert_eq!(receive(&server).await.len(), 1);
        }
    });
}
