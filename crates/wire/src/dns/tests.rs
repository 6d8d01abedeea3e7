//! Golden messages, malformed ones, and responses that do not match their query.

use super::answer::*;
use super::*;
use proptest::prelude::*;

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

/// Encodes a record.
fn record(name: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = name.to_vec();
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1, 0, 0, 0, 60]);
    bytes.extend((data.len() as u16).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The queried name, as a compression pointer.
const ASKED: &[u8] = &[0xc0, 12];

fn message(flags: u16, asked: (&str, u16), answers: &[Vec<u8>], additional: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [7, flags, 1, answers.len() as u16, 0, additional.len() as u16] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(name(asked.0).bytes());
    for number in [asked.1, 1] {
        bytes.extend(number.to_be_bytes());
    }
    answers.iter().chain(additional).for_each(|record| bytes.extend(record));
    bytes
}

fn found(bytes: &[u8], asked: &str, kind: Kind) -> Result<AnswerRecords, Fault> {
    find(read(bytes).expect("an answer"), &name(asked), kind)
}

#[test]
fn questions_are_those_of_haproxy() {
    let expected = b"\x9a\x5f\x01\x00\0\x01\0\0\0\0\0\x01\x03app\x04test\0\0\x01\0\x01\0\0\x29\x02\0\0\0\0\0\0\0";
    assert_eq!(question(0x9a5f, &name("App.Test."), Kind::A, 512), expected);
}

#[test]
fn names_have_labels_and_bounds() {
    let long = "a".repeat(63);
    for good in ["a", "a.b", "_http._tcp.x", &long, "A.b.", &[&*long, &long, &long, &long[..61]].join(".")] {
        let expected = good.strip_suffix('.').unwrap_or(good).to_ascii_lowercase();
        assert_eq!(name(good).text(), Some(expected), "{good}");
    }
    let too_long = [&*long, &long, &long, &long].join(".");
    for bad in ["", ".", "a..b", ".a", "a b", "a/b", "é", &"a".repeat(64), &too_long] {
        assert_eq!(Name::parse(bad), None, "{bad}");
    }
    assert!(name("_http._tcp.x").is_service() && !name("http._tcp.x").is_service());
}

#[test]
fn addresses_services_and_aliases_are_found() {
    let asked = ("app.test", 1);
    let four = |last| record(ASKED, 1, &[127, 0, 0, last]);
    type Row<'a> = (&'a [Vec<u8>], Result<&'a [&'a str], Fault>);
    let rows: &[Row<'_>] = &[
        (&[four(1), four(2), four(1)], Ok(&["127.0.0.1", "127.0.0.2"])),
        (&[record(ASKED, 1, &[0; 4])], Err(Fault::Empty)),
        (&[record(ASKED, 28, &[1; 16])], Err(Fault::Empty)),
        (&[record(ASKED, 16, b"\x01x"), four(1)], Ok(&["127.0.0.1"])),
        (&[record(ASKED, CNAME, b"\x01b\0"), record(b"\x01B\0", 1, &[10, 0, 0, 1])], Ok(&["10.0.0.1"])),
        // The order of the records does not matter.
        (&[record(b"\x01b\0", 1, &[10, 0, 0, 1]), record(ASKED, CNAME, b"\x01b\0")], Ok(&["10.0.0.1"])),
        (&[record(ASKED, CNAME, b"\x01b\0"), record(b"\x01c\0", 1, &[10, 0, 0, 1])], Err(Fault::BrokenAlias)),
        (&[record(ASKED, CNAME, ASKED), four(1)], Err(Fault::BrokenAlias)),
        // The address of another name.
        (&[record(b"\x01c\0", 1, &[10, 0, 0, 1])], Err(Fault::Empty)),
        (&[], Err(Fault::Empty)),
    ];
    for (records, expected) in rows {
        let got = found(&message(0x8180, asked, records, &[]), "app.test", Kind::A);
        let got = got.map(|found| found.addresses.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(got, expected.map(|list| list.iter().map(ToString::to_string).collect()), "{records:?}");
    }
    let service = |port: u8, target: &[u8]| record(ASKED, 33, &[&[0, 1, 1, 0, 0, port][..], target].concat());
    let extra = [record(b"\x01a\0", 1, &[10, 0, 0, 1]), record(b"\x01x\0", 1, &[10, 0, 0, 9])];
    let bytes = message(0x8180, ("_h._tcp.x", 33), &[service(80, b"\x01a\0"), service(81, b"\x01b\0")], &extra);
    let got = found(&bytes, "_h._tcp.x", Kind::Srv).expect("services");
    let services: Vec<_> = got.services.iter().map(|one| (one.weight, one.port, one.target.text())).collect();
    assert_eq!(services, [(256, 80, Some("a".to_owned())), (256, 81, Some("b".to_owned()))]);
    assert_eq!(got.additional, [Address { host: name("a"), ip: [10, 0, 0, 1].into() }]);
}

#[test]
fn answers_that_say_nothing() {
    let one = [record(ASKED, 1, &[127, 0, 0, 1])];
    let rows: &[(u16, (&str, u16), Fault)] = &[
        (0x8180, ("other.test", 1), Fault::OtherQuestion),
        (0x8180, ("app.test", 28), Fault::OtherQuestion),
        (0x8380, ("app.test", 1), Fault::Truncated),
        (0x8183, ("app.test", 1), Fault::Code(ResponseCode::NoSuchName)),
        (0x8185, ("app.test", 1), Fault::Code(ResponseCode::Refused)),
        (0x8182, ("app.test", 1), Fault::Code(ResponseCode::Other(2))),
    ];
    for (flags, asked, fault) in rows {
        assert_eq!(found(&message(*flags, *asked, &one, &[]), "app.test", Kind::A), Err(*fault), "{flags:x} {asked:?}");
    }
    assert_eq!(read(&message(0x0180, ("app.test", 1), &one, &[])), Err(Malformed), "a question is no answer");
}

#[test]
fn pointers_lead_backwards_only() {
    let rows: &[&[u8]] = &[
        // Pointers to themselves, forwards, into the header and back, beyond the end.
        &[0xc0, 26],
        &[0xc0, 27],
        &[0xff, 0xff],
        &[1, b'a', 0xc0, 26],
        &[0x80, 0],
        &[63],
    ];
    for owner in rows {
        let bytes = message(0x8180, ("app.test", 1), &[record(owner, 1, &[127, 0, 0, 1])], &[]);
        assert_eq!(read(&bytes), Err(Malformed), "{owner:?}");
    }
    // A chain that leads backwards step by step ends, and so does one that exceeds the maximum length of a name.
    let mut bytes = message(0x8180, ("app.test", 1), &[], &[]);
    bytes[7] = 1;
    let mut at = 12;
    let mut owner = Vec::new();
    for _ in 0..40 {
        let here = bytes.len() + owner.len();
        owner.extend([7, b'a', b'a', b'a', b'a', b'a', b'a', b'a', 0xc0 | (at >> 8) as u8, at as u8]);
        at = here;
    }
    bytes.extend(&owner[..owner.len() - 10]);
    let last = bytes.len();
    bytes.extend([0xc0 | (at >> 8) as u8, at as u8]);
    assert!(Name::read(&bytes, last).is_err());
    let records = record(b"\x01a\0", CNAME, b"\x01b\x01c\0\0");
    assert_eq!(read(&message(0x8180, ("x", 1), &[records], &[])), Err(Malformed), "bytes behind a name in a record");
}

#[test]
fn an_answer_cut_anywhere_is_malformed() {
    let records = [record(ASKED, CNAME, b"\x01b\0"), record(b"\x01b\0", 1, &[10, 0, 0, 1])];
    let whole = message(0x8180, ("app.test", 1), &records, &[]);
    for length in 0..whole.len() {
        assert_eq!(read(&whole[..length]), Err(Malformed), "{length}");
    }
    assert!(read(&whole).is_ok());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), flags in 0x8000..=u16::MAX) {
        let _ = read(&bytes);
        let mut likely = message(flags, ("app.test", 1), &[], &[]);
        likely[7] = 3;
        likely.extend(bytes);
        if let Ok(answer) = read(&likely) {
            let _ = find(answer, &name("app.test"), Kind::A);
        }
    }

    #[test]
    fn what_is_asked_is_read(labels in prop::collection::vec("[a-z0-9_-]{1,20}", 1..5), id: u16) {
        let text = labels.join(".");
        let mut bytes = question(id, &name(&text), Kind::Srv, 4096);
        bytes[2] |= 0x80;
        let answer = read(&bytes).expect("an answer");
        prop_assert_eq!(answer.id, id);
        prop_assert_eq!(find(answer, &name(&text), Kind::Srv), Err(Fault::Empty));
    }
}
