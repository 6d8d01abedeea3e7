//! Lines on their way over the kernel's own sockets and pipes.

use super::targets::Targets;
use super::*;
use crate::routes::sinks::OpenPhase;
use crate::routes::{LogRoute, LogRoutes, Plan};
use config::spec::{LogFormatSpec, LogLevel, LogProtocol, Mode, SyslogFormat};
use expression::log_format::LogFormat;
use expression::record::{Endpoint, Record};
use policy::program::{LogAddress, LogLines, LogMoment, LogTarget, Ring, RingServer, Sample};
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

fn target(address: LogAddress) -> LogTarget {
    LogTarget {
        address,
        length: 1024,
        format: SyslogFormat::Raw,
        profile: None,
        sample: None,
        facility: 16,
        max_level: LogLevel::Debug,
        min_level: LogLevel::Emerg,
    }
}

fn udp() -> (UdpSocket, LogTarget) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let target = target(LogAddress::Inet(socket.local_addr().unwrap()));
    (socket, target)
}

pub(super) fn received(socket: &UdpSocket) -> String {
    let mut buffer = [0; 70_000];
    let count = socket.recv(&mut buffer).unwrap();
    String::from_utf8(buffer[..count].to_vec()).unwrap()
}

/// Whether no datagram is pending: over loopback, it is received when the sending call returns.
pub(super) fn is_empty(socket: &UdpSocket) -> bool {
    socket.set_nonblocking(true).unwrap();
    let empty = socket.recv(&mut [0; 10]).is_err();
    socket.set_nonblocking(false).unwrap();
    empty
}

/// One proxy, number 0, with its targets and a format; the process logs to the same targets.
fn targets(logs: &[LogTarget], format: &str) -> Arc<Targets> {
    let lines = LogLines { separate_errors: true, ..LogLines::of(LogFormat::compile(format).unwrap()) };
    targets_with(logs, lines, &[])
}

/// The same with all options of lines, and rings.
fn targets_with(logs: &[LogTarget], lines: LogLines, rings: &[Ring]) -> Arc<Targets> {
    assembled(logs, lines, rings).0
}

fn assembled(logs: &[LogTarget], lines: LogLines, rings: &[Ring]) -> (Arc<Targets>, Vec<SinkError>) {
    let plan = |owner, lines| Plan { owner, targets: logs, tag: "weir", lines };
    let (targets, _) = Targets::assemble(rings, "weir");
    let mut opening = targets.opening(OpenPhase::Start);
    let process = plan(None, LogLines::of(LogFormat::predefined(&LogFormatSpec::Default, Mode::Tcp)));
    let routes = LogRoutes::assemble(process, plan(Some(0), lines), &mut opening);
    let errors = opening.errors;
    targets.follow(Arc::new(routes));
    (Arc::new(targets), errors)
}

fn route(logger: &Logger, proxy: usize) -> Arc<LogRoute> {
    logger.newest(Some(proxy)).unwrap()
}

/// Runs `script` on a worker, with a logger that lives as long.
pub(super) fn on_worker<S, F>(targets: &Arc<Targets>, script: S)
where
    S: Fn(Logger, Record<'static>) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + 'static,
{
    /// Ends the runtime also when the script panics.
    struct Stop;
    impl Drop for Stop {
        fn drop(&mut self) {
            rt::stop();
        }
    }
    let targets = Arc::clone(targets);
    let finished = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&finished);
    let main = move |_| -> rt::MainFuture {
        let told = Arc::clone(&told);
        let client = Endpoint::Inet(([10, 0, 1, 2], 33317).into());
        let pid = std::process::id();
        let record = Record { client, frontend: "fe", method: b"GET", pid, ..Record::default() };
        let played = script(Logger::new(Arc::clone(&targets)), record);
        Box::pin(async move {
            let _stop = Stop;
            played.await;
            told.store(true, Ordering::Release);
        })
    };
    rt::run(&rt::Config::default(), Arc::new(main)).unwrap();
    assert!(finished.load(Ordering::Acquire), "the script panicked");
}

async fn log_once(logger: Logger, record: Record<'static>) {
    logger.traffic(&route(&logger, 0), Verdict::Normal, &record, LineSettings::default());
}

#[test]
fn each_target_gets_its_own_header() {
    let (plain, raw) = udp();
    let (tagged, mut local) = udp();
    local.format = SyslogFormat::Local;
    on_worker(&targets(&[raw, local], "%ci:%cp %pid"), log_once);
    let pid = std::process::id();
    assert_eq!(received(&plain), format!("10.0.1.2:33317 {pid}\n"));
    let line = received(&tagged);
    assert!(line.starts_with("<134>"), "{line}");
    assert!(line.ends_with(&format!(" weir[{pid}]: 10.0.1.2:33317 {pid}\n")), "{line}");
}

#[test]
fn lines_wait_for_the_end_of_the_turn_and_keep_their_order() {
    let (socket, target) = udp();
    let targets = targets(&[target], "%lc");
    on_worker(&targets, |logger, record| async move {
        for _ in 0..150 {
            logger.traffic(&route(&logger, 0), Verdict::Normal, &record, LineSettings::default());
        }
        // The flushing task runs in the next iteration, this one after it.
        rt::yield_now().await;
        rt::yield_now().await;
        std::mem::forget(logger);
    });
    let numbers: Vec<String> = (0..150).map(|_| received(&socket)).collect();
    assert_eq!(numbers, (0..150).map(|number| format!("{number}\n")).collect::<Vec<_>>());
    assert_eq!(targets.dropped(), 0);
}

#[test]
fn levels_filter_and_cap() {
    let (important, mut notice) = udp();
    notice.max_level = LogLevel::Notice;
    let (capped, mut at_most) = udp();
    at_most.format = SyslogFormat::Priority;
    at_most.min_level = LogLevel::Warning;
    on_worker(&targets(&[notice, at_most], "traffic"), |logger, record| async move {
        logger.traffic(&route(&logger, 0), Verdict::Normal, &record, LineSettings::default());
        logger.traffic(&route(&logger, 0), Verdict::Failed, &record, LineSettings::default());
        logger.message(None, LogLevel::Alert, "process");
        logger.message(Some(0), LogLevel::Warning, "proxy");
        logger.message(Some(1), LogLevel::Warning, "nobody");
    });
    let stopped = "proxy\n";
    assert_eq!([(); 3].map(|()| received(&important)), ["traffic\n", "process\n", stopped]);
    assert!(is_empty(&important));
    for wanted in ["<134>traffic\n", "<132>traffic\n", "<132>process\n", &format!("<132>{stopped}")] {
        assert_eq!(received(&capped), wanted);
    }
}

#[test]
fn samples_and_lengths_are_a_matter_of_each_target() {
    let (sampled, mut half) = udp();
    half.sample = Some(Sample { ranges: vec![(2, 2)], size: 2 });
    let (short, mut cut) = udp();
    cut.length = 80;
    on_worker(&targets(&[half, cut], &format!("%lc {}", "a".repeat(200))), |logger, record| async move {
        for _ in 0..4 {
            logger.traffic(&route(&logger, 0), Verdict::Normal, &record, LineSettings::default());
        }
    });
    assert!(received(&sampled).starts_with("1 a"));
    assert_eq!(received(&sampled).len(), 203);
    assert!(is_empty(&sampled));
    let line = received(&short);
    assert_eq!((line.len(), line.ends_with("a\n")), (80, true));
}

#[test]
fn nobody_is_asked_to_render_what_nobody_wants() {
    let (socket, mut target) = udp();
    target.max_level = LogLevel::Err;
    let targets = targets(&[target], "%lc");
    on_worker(&targets, |logger, record| async move {
        assert!(route(&logger, 0).is_wanted() && !logger.has_targets(Some(1)));
        assert_eq!(route(&logger, 0).moment(), LogMoment::Answer);
        assert!(!route(&logger, 0).tells_destination());
        logger.traffic(&route(&logger, 0), Verdict::Normal, &record, LineSettings::default());
        logger.traffic(&route(&logger, 0), Verdict::Failed, &record, LineSettings::default());
        logger.flush();
    });
    assert_eq!(received(&socket), "0\n");
    assert!(is_empty(&socket));
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("weir-log-{}-{name}", std::process::id()))
}

#[test]
fn a_log_daemon_may_come_back_with_another_socket() {
    let path = path("comes-back");
    let targets = targets(&[target(LogAddress::Unix(path.clone()))], "line");
    on_worker(&targets, log_once);
    assert_eq!(targets.dropped(), 0, "nothing lacked room");
    for _ in 0..2 {
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        on_worker(&targets, log_once);
        let mut got = [0; 10];
        assert_eq!(socket.recv(&mut got).unwrap(), 5);
        std::fs::remove_file(&path).unwrap();
    }
    assert_eq!(targets.dropped(), 0, "nothing lacked room");
}

#[test]
fn what_a_full_socket_does_not_take_is_counted() {
    let path = path("full");
    let socket = UnixDatagram::bind(&path).unwrap();
    let targets = targets(&[target(LogAddress::Unix(path.clone()))], "line");
    on_worker(&targets, |logger, record| async move {
        for _ in 0..5_000 {
            logger.traffic(&route(&logger, 0), Verdict::Normal, &record, LineSettings::default());
        }
    });
    std::fs::remove_file(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let arrived = std::iter::from_fn(|| socket.recv(&mut [0; 10]).ok()).count() as u64;
    assert!(arrived > 0);
    assert_eq!(arrived + targets.dropped(), 5_000);
}

#[test]
fn a_line_too_long_for_a_datagram_does_not_take_others_along() {
    let (socket, mut target) = udp();
    target.length = 100_000;
    let targets = targets(&[target], "%b");
    on_worker(&targets, |logger, record| async move {
        let long = "x".repeat(70_000);
        logger.traffic(
            &route(&logger, 0),
            Verdict::Normal,
            &Record { backend: "first", ..record },
            LineSettings::default(),
        );
        logger.traffic(
            &route(&logger, 0),
            Verdict::Normal,
            &Record { backend: &long, ..record },
            LineSettings::default(),
        );
        logger.traffic(
            &route(&logger, 0),
            Verdict::Normal,
            &Record { backend: "last", ..record },
            LineSettings::default(),
        );
    });
    assert_eq!([received(&socket), received(&socket)], ["first\n", "last\n"]);
    assert_eq!(targets.dropped(), 0, "nothing lacked room");
}

#[test]
fn descriptors_get_whole_lines_and_the_rest_is_dropped() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let targets = targets(&[target(LogAddress::Descriptor(writer.as_raw_fd()))], &format!("%lc {}", "z".repeat(600)));
    on_worker(&targets, |logger, record| async move {
        for _ in 0..1_000 {
            logger.traffic(&route(&logger, 0), Verdict::Normal, &record, LineSettings::default());
        }
    });
    let dropped = targets.dropped() as usize;
    assert!((1..1_000).contains(&dropped), "{dropped}");
    drop((writer, targets));
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text.lines().count(), 1_000 - dropped);
    for (number, line) in text.lines().enumerate() {
        assert_eq!(line, format!("{number} {}", "z".repeat(600)));
    }
}

#[test]
fn the_rest_of_a_long_line_follows_when_there_is_room() {
    const LINE: usize = 200_000;
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut long = target(LogAddress::Descriptor(writer.as_raw_fd()));
    long.length = LINE;
    let targets = targets(&[long], &"l".repeat(LINE));
    let all_read = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&all_read);
    let reading = std::thread::spawn(move || {
        let mut got = vec![0; LINE];
        reader.read_exact(&mut got).unwrap();
        told.store(true, Ordering::Release);
        got
    });
    on_worker(&targets, move |logger, record| {
        let all_read = Arc::clone(&all_read);
        async move {
            logger.traffic(&route(&logger, 0), Verdict::Normal, &record, LineSettings::default());
            for _ in 0..1_000 {
                rt::sleep(Duration::from_millis(10)).await;
                if all_read.load(Ordering::Acquire) {
                    return;
                }
            }
            panic!("the rest never came");
        }
    });
    assert_eq!(targets.dropped(), 0);
    let got = reading.join().unwrap();
    assert!(got[..LINE - 1].iter().all(|&byte| byte == b'l') && got[LINE - 1] == b'\n');
    drop(writer);
}

#[test]
fn a_closed_descriptor_is_told_and_its_lines_are_counted() {
    let logs = [target(LogAddress::Descriptor(1_000_000))];
    let (targets, errors) = assembled(&logs, LogLines::of(LogFormat::compile("x").unwrap()), &[]);
    assert!(matches!(&errors[..], [SinkError::Descriptor(1_000_000, _)]), "{errors:?}");
    on_worker(&targets, log_once);
    assert_eq!(targets.dropped(), 1);
}

#[test]
fn sinks_are_shared_by_those_who_log_there() {
    let (_socket, one) = udp();
    let (_other, two) = udp();
    assert_eq!(targets(&[one.clone(), two, one], "x").sinks.most(), 2);
}

#[test]
fn the_destination_is_asked_for_where_a_format_tells_it() {
    let (_socket, target) = udp();
    for (format, wanted) in [("%fi", true), ("%ci %fp", true), (LogFormat::HTTP, false)] {
        on_worker(&targets(std::slice::from_ref(&target), format), move |logger, _| async move {
            assert_eq!(route(&logger, 0).tells_destination(), wanted);
        });
    }
    let default = LogLines::of(LogFormat::predefined(&LogFormatSpec::Default, Mode::Http));
    on_worker(&targets_with(&[target], default, &[]), |logger, _| async move {
        assert_eq!(route(&logger, 0).moment(), LogMoment::Request);
        assert!(route(&logger, 0).tells_destination());
    });
}

#[test]
fn the_options_say_which_lines_are_written_and_how() {
    let format = |text: &str| LogFormat::compile(text).unwrap();
    let plain = LogLines::of(format("line %B"));
    let rows: [(LogLines, [&str; 3]); 5] = [
        (plain.clone(), ["<134>line 0", "<134>line 0", "<134>line 0"]),
        (LogLines { dontlog_normal: true, ..plain.clone() }, ["", "<134>line 0", "<134>line 0"]),
        (LogLines { separate_errors: true, ..plain.clone() }, ["<134>line 0", "<131>line 0", "<131>line 0"]),
        (
            LogLines { error: Some(format("bad")), as_soon_as_possible: true, ..plain },
            ["<134>line +0", "<134>line +0", "<134>bad"],
        ),
        (
            LogLines::of(LogFormat::predefined(&LogFormatSpec::Default, Mode::Http)),
            ["<134>Connect from", "<134>Connect from", ""],
        ),
    ];
    for (lines, wanted) in rows {
        let (socket, mut target) = udp();
        target.format = SyslogFormat::Priority;
        on_worker(&targets_with(&[target], lines, &[]), |logger, record| async move {
            for verdict in [Verdict::Normal, Verdict::Failed, Verdict::Invalid] {
                logger.traffic(&route(&logger, 0), verdict, &record, LineSettings::default());
            }
        });
        for line in wanted.iter().filter(|line| !line.is_empty()) {
            let found = received(&socket);
            assert!(found.starts_with(line), "{found} {line}");
        }
        assert!(is_empty(&socket));
    }
}

#[test]
fn structured_data_goes_into_headers_that_have_a_place_for_it() {
    let (modern, mut one) = udp();
    one.format = SyslogFormat::Rfc5424;
    let (old, mut two) = udp();
    two.format = SyslogFormat::Short;
    let lines = LogLines {
        structured_data: Some(LogFormat::compile("[weir@1 status=\"%ST\"]").unwrap()),
        ..LogLines::of(LogFormat::compile("text").unwrap())
    };
    on_worker(&targets_with(&[one, two], lines, &[]), log_once);
    let line = received(&modern);
    assert!(line.ends_with(" - [weir@1 status=\"0\"] text\n"), "{line}");
    assert_eq!(received(&old), "<6>text\n");
}

/// A ring with a server that receives its lines; `accept` handles its connections.
fn ring(
    protocol: LogProtocol,
    size: usize,
    accept: impl FnOnce(TcpListener) -> String + Send + 'static,
) -> (Ring, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = RingServer { name: "s".into(), address: listener.local_addr().unwrap(), protocol, tls: None };
    let ring = Ring {
        description: "".into(),
        name: "r".into(),
        format: None,
        maxlen: 1024,
        size,
        backing_file: None,
        connect_timeout: Duration::from_secs(9),
        server_timeout: Duration::from_secs(9),
        servers: vec![server],
    };
    (ring, std::thread::spawn(move || accept(listener)))
}

fn read_all(listener: &TcpListener) -> String {
    let mut text = String::new();
    listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
    text
}

/// Logs `count` numbered lines to a ring, and waits until its server has received what the ring still has.
fn log_to_ring(ring: &Ring, count: usize) -> Arc<Targets> {
    let lines = LogLines::of(LogFormat::compile("number %lc").unwrap());
    let targets = targets_with(&[target(LogAddress::Ring(0))], lines, std::slice::from_ref(ring));
    let known = Arc::clone(&targets);
    on_worker(&targets, move |logger, record| {
        let known = Arc::clone(&known);
        async move {
            for _ in 0..count {
                logger.traffic(&route(&logger, 0), Verdict::Normal, &record, LineSettings::default());
            }
            logger.flush();
            while known.is_behind() {
                rt::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    targets
}

#[test]
fn a_ring_sends_its_lines_over_a_connection() {
    for (protocol, wanted) in [
        (LogProtocol::Legacy, "number 0\nnumber 1\nnumber 2\n"),
        (LogProtocol::OctetCount, "8 number 08 number 18 number 2"),
    ] {
        let (ring, heard) = ring(protocol, 16_384, |listener| read_all(&listener));
        assert_eq!(log_to_ring(&ring, 3).dropped(), 0);
        assert_eq!(heard.join().unwrap(), wanted);
    }
}

#[test]
fn a_ring_that_is_too_small_keeps_the_latest_lines_and_counts_the_others() {
    let (ring, heard) = ring(LogProtocol::Legacy, 100, |listener| read_all(&listener));
    assert_eq!(log_to_ring(&ring, 20).dropped(), 13);
    let wanted: String = (13..20).map(|number| format!("number {number}\n")).collect();
    assert_eq!(heard.join().unwrap(), wanted);
}

#[test]
fn a_ring_connects_again_where_its_server_closes() {
    let (ring, heard) = ring(LogProtocol::Legacy, 1_000_000, |listener| {
        // A reset, with most of the lines unread.
        let (mut first, _) = listener.accept().unwrap();
        first.read_exact(&mut [0; 10]).unwrap();
        drop(first);
        read_all(&listener)
    });
    let targets = log_to_ring(&ring, 60_000);
    let text = heard.join().unwrap();
    assert!(text.starts_with("number ") && text.ends_with("number 59999\n"));
    let numbers: Vec<u32> = text.lines().map(|line| line.strip_prefix("number ").unwrap().parse().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "whole lines in order");
    assert!(targets.dropped() < 60_000);
}
