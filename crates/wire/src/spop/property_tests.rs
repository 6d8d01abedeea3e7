//! Encoded frames decode to the same values, and decoding never panics. Must never hold examples: these are next to the
//! code.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum OwnedValue {
    Null,
    Bool(bool),
    Int32(i32),
    Uint32(u32),
    Int64(i64),
    Uint64(u64),
    Ipv4([u8; 4]),
    Ipv6([u8; 16]),
    Str(Vec<u8>),
    Bin(Vec<u8>),
}

impl OwnedValue {
    fn data(&self) -> Data<'_> {
        match self {
            Self::Null => Data::Null,
            Self::Bool(flag) => Data::Bool(*flag),
            Self::Int32(number) => Data::Int32(*number),
            Self::Uint32(number) => Data::Uint32(*number),
            Self::Int64(number) => Data::Int64(*number),
            Self::Uint64(number) => Data::Uint64(*number),
            Self::Ipv4(octets) => Data::Ipv4((*octets).into()),
            Self::Ipv6(octets) => Data::Ipv6((*octets).into()),
            Self::Str(text) => Data::Str(text),
            Self::Bin(bytes) => Data::Bin(bytes),
        }
    }
}

fn value() -> impl Strategy<Value = OwnedValue> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..300);
    prop_oneof![
        Just(OwnedValue::Null),
        any::<bool>().prop_map(OwnedValue::Bool),
        any::<i32>().prop_map(OwnedValue::Int32),
        any::<u32>().prop_map(OwnedValue::Uint32),
        any::<i64>().prop_map(OwnedValue::Int64),
        any::<u64>().prop_map(OwnedValue::Uint64),
        any::<[u8; 4]>().prop_map(OwnedValue::Ipv4),
        any::<[u8; 16]>().prop_map(OwnedValue::Ipv6),
        bytes().prop_map(OwnedValue::Str),
        bytes().prop_map(OwnedValue::Bin),
    ]
}

proptest! {
    #[test]
    fn messages_come_back(stream: u64, id: u64, arguments in prop::collection::vec((".{0,8}", value()), 0..6)) {
        let mut notify = Notify::default();
        notify.message(b"m");
        for (name, value) in &arguments {
            prop_assert!(notify.argument(name.as_bytes(), value.data()));
        }
        let mut out = Vec::new();
        prop_assert!(notify.encode(stream, id, u32::MAX, &mut out));
        let found = next_frame(&out, u32::MAX).unwrap().unwrap();
        prop_assert_eq!(found.1, out.len());
        prop_assert_eq!((found.0.kind, found.0.stream, found.0.id), (kind::NOTIFY, stream, id));
        let mut rest = found.0.payload;
        prop_assert_eq!(take_string(&mut rest), Ok(&b"m"[..]));
        prop_assert_eq!(usize::from(rest[0]), arguments.len());
        rest = &rest[1..];
        for (name, value) in &arguments {
            prop_assert_eq!(take_string(&mut rest), Ok(name.as_bytes()));
            prop_assert_eq!(Data::take(&mut rest), Ok(value.data()));
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = next_frame(&bytes, 300);
        let _ = agent_hello(&bytes, 300);
        let _ = agent_disconnect(&bytes);
        prop_assert!(Actions::new(&bytes).count() <= bytes.len());
    }
}
