//! Requests of protocol checks and evaluation of responses, compared with HAProxy.

use super::*;
use config::spec::MysqlVersion;

fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn sent(check: &ProtocolCheck) -> Vec<Vec<u8>> {
    let steps = script(check, "b", 16_384);
    let payloads = steps.iter().filter_map(|step| match step {
        CheckStep::Send(Payload { content: Content::Bytes(bytes), .. }) => Some(bytes.to_vec()),
        _ => None,
    });
    payloads.collect()
}

#[test]
fn requests_are_those_of_haproxy() {
    let mysql = |version| ProtocolCheck::Mysql { user: Some(("user".to_owned(), version)), query: None };
    let asks = ProtocolCheck::Mysql {
        user: Some(("user".to_owned(), MysqlVersion::Pre41)),
        query: Some("SELECT 1".to_owned()),
    };
    let post41 = "2600000100820000008000012100000000000000000000000000000000000000000000007573657200000100000001";
    let post80 = "3c00000100820800008000012100000000000000000000000000000000000000000000007573657200006d7973716c5f6e\
                  61746976655f70617373776f7264000100000001";
    let hello = "0000004e0100000001000012737570706f727465642d76657273696f6e730803322e300e6d61782d6672616d652d73697a65\
                 03fcf0060c6361706162696c697469657308000b6865616c7468636865636b11";
    let rows = [
        (ProtocolCheck::Redis, vec![b"*1\r\n$4\r\nPING\r\n".to_vec()]),
        (
            ProtocolCheck::Smtp { hello: "EHLO".to_owned(), domain: "a.b".to_owned() },
            vec![b"EHLO a.b\r\n".to_vec(), b"QUIT\r\n".to_vec()],
        ),
        (
            ProtocolCheck::Postgres { user: "postgres".to_owned() },
            vec![bytes("00000017000300007573657200706f7374677265730000")],
        ),
        (ProtocolCheck::Ldap, vec![bytes("300c020101600702010304008000")]),
        (ProtocolCheck::Mysql { user: None, query: None }, vec![]),
        (asks, vec![bytes("0b0000010080000001757365720000 09000000 0353454c4543542031 0100000001")]),
        (mysql(MysqlVersion::Pre41), vec![bytes("0b00000100800000017573657200000100000001")]),
        (mysql(MysqlVersion::Post41), vec![bytes(post41)]),
        (mysql(MysqlVersion::Post80), vec![bytes(post80)]),
        (ProtocolCheck::Spop, vec![bytes(hello)]),
    ];
    for (check, expected) in rows {
        assert_eq!(sent(&check), expected, "{check:?}");
    }
    let tls = &sent(&ProtocolCheck::SslHello)[0];
    assert_eq!((tls.len(), &tls[..11]), (126, &bytes("16030000790100007503 00")[..]));
}

/// Evaluates a complete response.
fn judged(answer: Answer, received: &[u8]) -> String {
    match answer.judge(received, true) {
        Judgement::Wait => "wait".to_owned(),
        Judgement::Nothing => "nothing".to_owned(),
        Judgement::Passed { code, info } => format!("passed {code} {}", info.unwrap_or_default()),
        Judgement::Failed { status, code, info } => format!("{} {code} {info}", status.name()),
    }
}

#[test]
fn answers_mean_what_haproxy_makes_of_them() {
    let greeting = bytes("150000000a382e302e313900").iter().copied().chain([b'x'; 14]).collect::<Vec<_>>();
    let refused = [&bytes("0f000000ff6a04")[..], b"Host refused"].concat();
    let spop = Answer::Spop { largest: 16_380 };
    let agent = bytes(
        "00000036 65 00000001 0000 0776657273696F6E 0803322E30 0E6D61782D6672616D652D73697A65 03FCF0 06\
         0C6361706162696C6974696573 0800",
    );
    let left = bytes("0000000b 66 00000001 0000 03616263 00".replace("0000000b", "0000000c").as_str());
    let rows: &[(Answer, &[u8], &str)] = &[
        (Answer::Redis, b"+PONG\r\n", "passed 0 Redis server is ok"),
        (Answer::Redis, b"-ERR max\r\n", "L7STS 0 -ERR max"),
        (Answer::Redis, b"+PO", "L7STS 0 +PO"),
        (Answer::SmtpGreeting, b"220 hi\r\n", "passed 220 "),
        (Answer::SmtpGreeting, b"421 Try again later\r\n", "L7STS 421 Try again later"),
        (Answer::SmtpGreeting, b"I'm not\r\n", "L7RSP 0 I'm not"),
        (Answer::SmtpGreeting, b"220-multi\r\n", "L7RSP 0 220-multi"),
        (Answer::SmtpGreeting, b"", "L7RSP 0 "),
        (Answer::SmtpReply, b"250-a\r\n250 b\r\n", "passed 250 "),
        (Answer::SmtpReply, b"502 no\r\n", "L7STS 502 no"),
        (Answer::SmtpReply, b"25", "L7STS 0 "),
        (Answer::SmtpLast, b"221 bye\r\n", "passed 221 bye"),
        (Answer::SmtpLast, b"", "L7STS 0 "),
        (Answer::Postgres, b"R\0\0\0\x08\0\0\0\0", "passed 0 PostgreSQL server is ok"),
        (Answer::Postgres, b"R\0\0\0\x17\0\0\0\x0aSCRAM", "passed 0 PostgreSQL server is ok"),
        (Answer::Postgres, b"E\0\0\0\x5cSFATAL\0C28P01\0", "L7RSP 0 FATAL"),
        (Answer::Postgres, b"R", "L7STS 0 PostgreSQL unknown error"),
        (Answer::Ldap, &bytes("300c02010161070a010004000400"), "passed 0 Success"),
        (Answer::Ldap, &bytes("30840000001002010161840000000 70a010004000400"), "passed 0 Success"),
        (
            Answer::Ldap,
            &bytes("300c02010161070a013104000400"),
            "L7STS 49 See RFC: http://tools.ietf.org/html/rfc4511#section-4.1.9",
        ),
        (Answer::Ldap, b"junkjunk", "L7RSP 0 Not LDAPv3 protocol"),
        (Answer::Ldap, b"", "L7RSP 0 Not LDAPv3 protocol"),
        (Answer::MysqlGreeting, &greeting, "passed 0 8.0.19"),
        (Answer::MysqlGreeting, &refused, "L7STS 1130 Host refused"),
        (Answer::MysqlGreeting, b"\x01", "L7RSP 0 "),
        (Answer::MysqlGreeting, b"", "nothing"),
        (Answer::MysqlReply, &bytes("02000000 0a00 0700000200000002000000"), "passed 0 "),
        (Answer::MysqlReply, &bytes("0700000200000002000000"), "passed 0 "),
        (Answer::MysqlReply, &[&bytes("02000000 0a00")[..], &refused].concat(), "L7STS 1130 Host refused"),
        (Answer::MysqlReply, &bytes("02000000 0a00"), "L7RSP 0 "),
        (Answer::MysqlResult, &bytes("02000000 0a00 0700000200000002000000 01000001 01"), "passed 0 "),
        (Answer::MysqlResult, &bytes("0700000200000002000000 0700000100000002000000"), "passed 0 "),
        (Answer::MysqlResult, &[&bytes("0700000200000002000000")[..], &refused].concat(), "L7STS 1130 Host refused"),
        (Answer::MysqlResult, &[&bytes("02000000 0a00")[..], &refused].concat(), "L7STS 1130 Host refused"),
        (Answer::MysqlResult, &bytes("0700000200000002000000"), "L7RSP 0 No answer to the statement"),
        (Answer::MysqlResult, &bytes("02000000 0a00"), "L7RSP 0 "),
        (
            Answer::MysqlResult,
            &bytes("02000002 fe00 0700000100000002000000"),
            "L7STS 0 The server asks for another authentication method",
        ),
        (Answer::Tls, &bytes("1603000005"), "passed 0 "),
        (Answer::Tls, &bytes("15030000020228"), "passed 0 "),
        (Answer::Tls, b"HTTP/1.0 400", "L6RSP 0 "),
        (Answer::Tls, b"", "nothing"),
        (spop, &agent, "passed 0 SPOA server is ok"),
        (spop, &left, "L7RSP 0 version value not found"),
        (spop, b"\0\0\0\x07junkkkk", "L7RSP 0 invalid frame received"),
        (spop, b"", "nothing"),
    ];
    for (answer, received, expected) in rows {
        assert_eq!(judged(*answer, received), *expected, "{answer:?} {received:?}");
    }
}

#[test]
fn half_an_answer_is_waited_for() {
    let rows: &[(Answer, &[u8])] = &[
        (Answer::Redis, b"+PONG"),
        (Answer::SmtpGreeting, b"220 h"),
        (Answer::SmtpReply, b"250-a\r\n"),
        (Answer::Postgres, b"R\0\0"),
        (Answer::Postgres, b"E\0\0\0\x5cSFAT"),
        (Answer::Ldap, b"0\x84\0"),
        (Answer::MysqlGreeting, b"\x4a\0\0\0\n8.0"),
        (Answer::MysqlReply, b"\x02\0\0\0\x0a\0\x07"),
        (Answer::MysqlResult, b"\x02\0\0\0\x0a\0\x07"),
        (Answer::MysqlResult, b"\x01\0\0\x02\0\x01\0"),
        (Answer::Tls, b"\x16\x03"),
        (Answer::Spop { largest: 16_380 }, b"\0\0\0\x36\x65"),
    ];
    for (answer, received) in rows {
        assert_eq!(answer.judge(received, false), Judgement::Wait, "{answer:?}");
    }
}

#[test]
fn users_of_mysql_say_who_they_are_before_they_are_asked() {
    let user = Some(("user".to_owned(), MysqlVersion::Post41));
    let steps = script(&ProtocolCheck::Mysql { user, query: None }, "b", 16_384);
    let answers = steps.iter().filter_map(|step| match step {
        CheckStep::Expect(expect) => match expect.wanted {
            ExpectMatch::Protocol(answer) => Some(answer),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), [Answer::MysqlGreeting, Answer::MysqlReply]);
    let sent = steps.iter().position(|step| matches!(step, CheckStep::Send(_)));
    assert!(sent < steps.iter().position(|step| matches!(step, CheckStep::Expect(_))), "{sent:?}");
}

/// A name and its encoded value.
type Item<'a> = (&'a str, &'a [u8]);

/// An agent's frame: its start in hexadecimal digits, then names and encoded values.
fn frame(begins: &str, items: &[Item<'_>]) -> Vec<u8> {
    let mut frame = bytes(begins);
    for (name, value) in items {
        frame.push(name.len() as u8);
        frame.extend_from_slice(name.as_bytes());
        frame.extend_from_slice(value);
    }
    [&(frame.len() as u32).to_be_bytes()[..], &frame].concat()
}

const HELLO: &str = "65 00000001 00 00";
const VERSION: Item<'static> = ("version", b"\x08\x032.0");
const SIZE: Item<'static> = ("max-frame-size", b"\x03\xfc\xf0\x06");
const CAPABILITIES: Item<'static> = ("capabilities", b"\x08\x00");

fn spop(received: &[u8]) -> String {
    judged(Answer::Spop { largest: 16_380 }, received)
}

#[test]
fn an_agents_greeting_names_a_version_a_size_and_what_it_can() {
    let ok = "passed 0 SPOA server is ok";
    let invalid = "L7RSP 0 invalid frame received";
    let unsupported = "L7RSP 0 unsupported version";
    let size = "L7RSP 0 max-frame-size too big or too small";
    let rows: &[(&[Item<'_>], &str)] = &[
        (&[VERSION, SIZE, CAPABILITIES], ok),
        (&[CAPABILITIES, SIZE, VERSION, VERSION, ("x", b"\x06abcd"), ("y", b"\x11"), ("z", b"\x00")], ok),
        (&[SIZE, CAPABILITIES], "L7RSP 0 version value not found"),
        (&[VERSION, CAPABILITIES], "L7RSP 0 max-frame-size value not found"),
        (&[VERSION, SIZE], "L7RSP 0 capabilities value not found"),
        (&[], "L7RSP 0 version value not found"),
        (&[("Version", VERSION.1), SIZE, CAPABILITIES], "L7RSP 0 version value not found"),
        (&[VERSION, SIZE, CAPABILITIES, ("", b"\x00")], invalid),
        (&[VERSION, SIZE, CAPABILITIES, ("x", b"\x0f")], invalid),
        (&[VERSION, SIZE, CAPABILITIES, ("x", b"\x08\x20abc")], invalid),
        (&[VERSION, SIZE, CAPABILITIES, ("x", b"")], invalid),
        // Wrong types.
        (&[("version", b"\x03\x02"), SIZE, CAPABILITIES], invalid),
        (&[("version", b"\x09\x032.0"), SIZE, CAPABILITIES], invalid),
        (&[VERSION, ("max-frame-size", b"\x08\x05256.0"), CAPABILITIES], invalid),
        (&[VERSION, SIZE, ("capabilities", b"\x09\x00")], invalid),
        (&[VERSION, SIZE, ("capabilities", b"\x00")], invalid),
        // The first error is reported.
        (&[("version", b"\x08\x033.0"), VERSION, SIZE, CAPABILITIES], unsupported),
        (&[("max-frame-size", b"\x03\x01"), ("version", b"\x08\x033.0")], size),
        (&[("version", b"\x08\x033.0"), ("", b"")], unsupported),
    ];
    for (items, expected) in rows {
        assert_eq!(spop(&frame(HELLO, items)), *expected, "{items:?}");
        // A disconnect instead of a hello is evaluated in the same way.
        assert_eq!(spop(&frame("66 00000001 00 00", items)), *expected, "{items:?}");
    }
    let versions = [
        (ok, &[" 2.0", "2.0 ", "\t\u{b}2.0\r\n", "02.00"][..]),
        (unsupported, &["1.0", "3.0", "2.1", "2.256", "1.999", "20.0", "99999999999.0"]),
        (invalid, &["", "2", "2.", ".0", "abc", "2.x", "2.0x", "-2.0", "+2.0", "2 .0", "2. 0", "2.0.1", "2.0,3.0"]),
        (invalid, &["2.1000", "0.0", "2.0\0"]),
    ];
    for (expected, versions) in versions {
        for version in versions {
            let value = [&[8, version.len() as u8], version.as_bytes()].concat();
            let items = [("version", &value[..]), SIZE, CAPABILITIES];
            assert_eq!(spop(&frame(HELLO, &items)), expected, "{version:?}");
        }
    }
    let sizes: &[(&str, &str)] = &[
        ("0300", size),
        ("03ff00", size),
        ("03f001", ok),
        ("02fcf006", ok),
        ("04fcf006", ok),
        ("05fcf006", ok),
        ("13fcf006", ok),
        ("03fdf006", size),
        ("03fff0fefefefefefefe0e", size),
        ("03f0ffffffffffffffff7f", invalid),
        ("03ffffffffffffffffffffff01", invalid),
    ];
    for (value, expected) in sizes {
        let value = bytes(value);
        let items = [VERSION, ("max-frame-size", &value[..]), CAPABILITIES];
        assert_eq!(spop(&frame(HELLO, &items)), *expected, "{value:x?}");
    }
}

#[test]
fn an_agents_frame_is_a_greeting_of_no_stream_in_one_piece() {
    let items = [VERSION, SIZE, CAPABILITIES];
    let invalid = "L7RSP 0 invalid frame received";
    for kind in ["00", "01", "02", "03", "64", "67", "68", "ff"] {
        assert_eq!(spop(&frame(&format!("{kind} 00000001 00 00"), &items)), invalid, "{kind}");
    }
    for flags in ["00000000", "00000002", "00000003", "80000001", "01000000"] {
        assert_eq!(spop(&frame(&format!("65 {flags} 00 00"), &items)), invalid, "{flags}");
    }
    for numbers in ["01 00", "00 01"] {
        assert_eq!(spop(&frame(&format!("65 00000001 {numbers}"), &items)), invalid, "{numbers}");
    }
    let whole = frame(HELLO, &items);
    let judge = |received: &[u8]| Answer::Spop { largest: 16_380 }.judge(received, false);
    for cut in 0..whole.len() {
        assert_eq!(judge(&whole[..cut]), Judgement::Wait, "{cut}");
        assert_eq!(spop(&whole[..cut]), if cut == 0 { "nothing" } else { invalid }, "{cut}");
    }
    // Bytes that cannot be the start of such a frame fail at once.
    assert!(matches!(judge(b"HTTP/1.1 40"), Judgement::Failed { .. }));
    assert_eq!(judge(b"HTTP/1.1 4"), Judgement::Wait);
    // Bytes after the frame are part of it.
    assert_eq!(spop(&[&whole[..], b"x"].concat()), invalid);
    assert_eq!(spop(&[&whole[..], &whole[..]].concat()), invalid);
    // Its length is the minimum number of bytes.
    assert_eq!(spop(&[b"\0\0\0\x14", &whole[4..]].concat()), "passed 0 SPOA server is ok");
    assert_eq!(spop(&[b"\0\0\0\xff", &whole[4..]].concat()), invalid);
}
