//! Hashes select the same servers as HAProxy: 10,000 keys, ten sets of weights, by map and by ring. Compared with
//! HAProxy itself if it is installed, and with recorded results in the repository.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use base::hash::crc32;
use config::spec::{BalanceSpec, HashFunction, HashMethod, HashSpec, UriSpec};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use weir_balance::{Candidate, Change, Load, Loads, Pick, Recogniser, Subject, find};
use wire::http::Head;

const KEYS: usize = 10_000;

const WEIGHTS: [&[u32]; 10] = [
    &[1, 1, 1],
    &[1, 2, 3],
    &[256, 1],
    &[10, 0, 20, 7],
    &[7, 5, 3, 2],
    &[1; 20],
    &[100, 100, 50],
    &[13; 7],
    &[64; 4],
    &[1, 1, 2, 3, 5, 8, 13],
];

/// The checksums of the selections of HAProxy 2.6 and 3.5, one letter per key, by map with `sdbm` and by ring.
const ANSWERS: [(u32, u32); 10] = [
    (1_413_451_424, 3_288_204_635),
    (355_601_032, 1_207_014_138),
    (1_238_274_992, 1_317_858_489),
    (816_303_049, 2_765_253_753),
    (2_147_841_820, 2_577_106_765),
    (3_832_470_223, 3_386_556_182),
    (3_200_096_471, 4_068_711_055),
    (3_108_318_886, 2_583_346_855),
    (3_071_288_597, 2_934_706_657),
    (703_698_297, 3_780_963_348),
];

fn key(number: usize) -> String {
    format!("/k{number}/{:x}", (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (number % 60))
}

fn hash(method: HashMethod) -> HashSpec {
    HashSpec { method, ..HashSpec::default() }
}

/// Returns the selected servers, one letter per key.
fn picks(method: HashMethod, function: Option<HashFunction>, weights: &[u32]) -> String {
    let hash = HashSpec { function, ..hash(method) };
    let by = BalanceSpec::Uri(UriSpec::default());
    let (_, mut state) = find(&by, &hash);
    let candidates: Vec<Candidate> = (0..)
        .zip(weights)
        .filter(|(_, weight)| **weight > 0)
        .map(|(server, &weight)| {
            let id = server as u32 + 1;
            Candidate { server, weight, scale: 1, id, place: id * 4_096 }
        })
        .collect();
    state.rebuild(&candidates, weights.len());
    for candidate in &candidates {
        state.on_load(candidate.server, Change { load: Load::IDLE, turned: true });
    }
    let recogniser = Recogniser::new(&by, &hash).unwrap();
    let loads = Loads::new(weights.len());
    let mut head = Head::new();
    (0..KEYS)
        .map(|number| {
            head.set_target(key(number).as_bytes());
            let hash = recogniser.hash(&Subject { request: Some(&head), ..Subject::default() });
            letter(state.pick(&Pick { hash, ..Pick::default() }, &loads).unwrap())
        })
        .collect()
}

fn letter(server: usize) -> char {
    char::from(b'a' + server as u8)
}

#[test]
fn picks_are_those_that_haproxy_made() {
    let found = WEIGHTS.map(|weights| {
        let checksum = |method| crc32(picks(method, None, weights).as_bytes());
        (checksum(HashMethod::MapBased), checksum(HashMethod::Consistent))
    });
    assert_eq!(found, ANSWERS);
}

#[test]
fn as_many_keys_move_as_in_haproxy_when_the_second_server_leaves() {
    // Number of keys of the second server, and of keys that move when its weight becomes zero, counted with HAProxy 2.6
    // and 3.5: by map, then by ring.
    type LocalRc = [(usize, usize); 2];
    let rows: &[(&[u32], LocalRc)] = &[
        (&[1, 1, 1], [(3_420, 6_670), (2_944, 2_944)]),
        (&[1, 2, 3], [(3_251, 4_042), (3_171, 3_171)]),
        (&[7, 5, 3, 2], [(2_966, 6_920), (2_896, 2_896)]),
        (&[1; 20], [(507, 9_555), (441, 441)]),
        (&[13; 7], [(1_414, 8_579), (1_488, 1_488)]),
        (&[64; 4], [(2_586, 7_463), (2_702, 2_702)]),
    ];
    for (weights, counted) in rows {
        let mut without = weights.to_vec();
        without[1] = 0;
        let found = [HashMethod::MapBased, HashMethod::Consistent].map(|method| {
            let (before, after) = (picks(method, None, weights), picks(method, None, &without));
            (before.matches('b').count(), before.chars().zip(after.chars()).filter(|(one, other)| one != other).count())
        });
        assert_eq!(found, *counted, "{weights:?}");
    }
}

/// A HAProxy process with a directory of its own; both are removed together.
struct HaProxy {
    child: Child,
    directory: PathBuf,
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl HaProxy {
    /// Starts it with a backend for each name and its lines; `None`, with a message, if HAProxy is not installed.
    fn start(program: &str, backends: &[(String, String)]) -> Option<Self> {
        if !Path::new(program).exists() {
            eprintln!("skipped: there is no {program}");
            return None;
        }
        let name = Path::new(program).parent()?.to_string_lossy().replace('/', "-");
        let directory = std::env::temp_dir().join(format!("weir-picks{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let at = directory.display();
        let mut text = format!(
            "defaults\n mode http\n timeout client 60s\n timeout server 60s\n timeout connect 5s\nfrontend origin\n bind \
             unix@{at}/origin\n http-request return status 200\nfrontend entry\n bind unix@{at}/entry\n http-response \
             set-header x-server %s\n use_backend %[req.hdr(x-backend)]\n"
        );
        for (name, lines) in backends {
            let _ = write!(text, "backend {name}\n{}", lines.replace("@ORIGIN@", &format!("unix@{at}/origin")));
        }
        let file = directory.join("haproxy.cfg");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(program);
        let child = command.arg("-f").arg(&file).arg("-db").stderr(Stdio::null()).spawn().unwrap();
        Some(Self { child, directory })
    }

    /// Connects as soon as it listens.
    fn connect(&mut self) -> UnixStream {
        loop {
            if let Ok(stream) = UnixStream::connect(self.directory.join("entry")) {
                return stream;
            }
            assert!(self.child.try_wait().unwrap().is_none(), "HAProxy refuses the configuration");
            std::thread::yield_now();
        }
    }

    fn picks(&mut self, backend: &str) -> String {
        const AT_ONCE: usize = 50;
        let stream = self.connect();
        let (mut writer, mut reader) = (stream.try_clone().unwrap(), BufReader::new(stream));
        let mut picks = String::new();
        for start in (0..KEYS).step_by(AT_ONCE) {
            let numbers = start..start + AT_ONCE;
            let requests: String = numbers
                .clone()
                .map(|number| format!("GET {} HTTP/1.1\r\nhost: h\r\nx-backend: {backend}\r\n\r\n", key(number)))
                .collect();
            writer.write_all(requests.as_bytes()).unwrap();
            for _ in numbers {
                picks.push(letter(answer(&mut reader)));
            }
        }
        picks
    }
}

/// Returns the server's index from its response.
fn answer(reader: &mut BufReader<UnixStream>) -> usize {
    let (mut server, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "an answer ends early");
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            if line == "\r\n" {
                break;
            }
            continue;
        };
        match name {
            "x-server" => server = value.strip_prefix('s').and_then(|index| index.parse().ok()),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).unwrap();
    server.unwrap()
}

const FUNCTIONS: [(&str, Option<HashFunction>); 5] = [
    ("", None),
    (" sdbm", Some(HashFunction::Sdbm)),
    (" djb2", Some(HashFunction::Djb2)),
    (" wt6", Some(HashFunction::Wt6)),
    (" crc32", Some(HashFunction::Crc32)),
];

fn compare(program: &str) {
    let methods = [("map-based", HashMethod::MapBased), ("consistent", HashMethod::Consistent)];
    let mut backends = Vec::new();
    let mut expected = Vec::new();
    for (set, weights) in WEIGHTS.iter().enumerate() {
        for (word, method) in methods {
            // The functions alternate: all of them with all weights would take a minute.
            for (text, function) in [FUNCTIONS[0], FUNCTIONS[1 + set % 4]] {
                let mut lines = format!(" balance uri\n hash-type {word}{text}\n");
                for (server, weight) in weights.iter().enumerate() {
                    let _ = writeln!(lines, " server s{server} @ORIGIN@ weight {weight}");
                }
                backends.push((format!("b{}", backends.len()), lines));
                expected.push(picks(method, function, weights));
            }
        }
    }
    let Some(mut haproxy) = HaProxy::start(program, &backends) else { return };
    for ((name, lines), expected) in backends.iter().zip(&expected) {
        let found = haproxy.picks(name);
        let differences = found.chars().zip(expected.chars()).filter(|(found, expected)| found != expected).count();
        assert_eq!(differences, 0, "{program} with\n{lines}");
    }
}

#[test]
fn picks_are_those_of_the_installed_haproxy() {
    compare("/usr/sbin/haproxy");
}

#[test]
fn picks_are_those_of_another_haproxy() {
    match std::env::var("HAPROXY") {
        Ok(program) => compare(&program),
        Err(_) => eprintln!("skipped: HAPROXY names no other program"),
    }
}
