//! Converters of Protocol Buffers, plain and within gRPC: a field by its path. Must never read beyond a message's
//! length.

use super::Converter;
use crate::sample::{Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use std::sync::Arc;

const FIELD: Signature = Signature::new(1, &[Kind::FieldPath, Kind::Str]);

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "protobuf",
        FIELD,
        Type::Bin,
        Type::Bin,
        "Field of a Protocol Buffers message by its field numbers, as bytes or as an integer of a type.",
        |_, value, arguments| {
            let query = arguments.made::<Query>(0)?;
            find(value.bytes()?, &query.path).and_then(|field| query.read(field))
        },
    )
    .checked(check),
    Converter::new(
        "ungrpc",
        FIELD,
        Type::Bin,
        Type::Bin,
        "Field of a gRPC message by its field numbers, as bytes or as an integer of a type.",
        |_, value, arguments| {
            let query = arguments.made::<Query>(0)?;
            messages(value.bytes()?).find_map(|message| find(message, &query.path)).and_then(|field| query.read(field))
        },
    )
    .checked(check),
];

/// The requested field, and the type of its value.
struct Query {
    path: Vec<u32>,
    meaning: Option<FieldEncoding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldEncoding {
    Varint,
    ZigZag,
    Fixed32,
    Signed32,
    Fixed64,
    Float,
    Double,
}

/// A field's bytes by wire type.
#[derive(Debug, Clone, Copy)]
enum Field<'a> {
    Varint(&'a [u8]),
    Fixed64(&'a [u8; 8]),
    Bytes(&'a [u8]),
    Fixed32(&'a [u8; 4]),
}

fn check(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let meaning = match arguments.utf8(1) {
        None => None,
        Some("int32" | "int64" | "uint32" | "uint64" | "bool" | "enum") => Some(FieldEncoding::Varint),
        Some("sint32" | "sint64") => Some(FieldEncoding::ZigZag),
        Some("fixed32") => Some(FieldEncoding::Fixed32),
        Some("sfixed32") => Some(FieldEncoding::Signed32),
        Some("fixed64" | "sfixed64") => Some(FieldEncoding::Fixed64),
        Some("float") => Some(FieldEncoding::Float),
        Some("double") => Some(FieldEncoding::Double),
        Some(other) => return Err(format!("Wrong protocol buffer type '{other}'")),
    };
    let path = arguments.utf8(0).unwrap_or_default().split('.').filter_map(|number| number.parse().ok()).collect();
    arguments.set(0, Argument::Made(Arc::new(Query { path, meaning })));
    Ok(())
}

impl Query {
    fn read<'a>(&self, field: Field<'a>) -> Option<Value<'a>> {
        let Some(meaning) = self.meaning else {
            return Some(Value::Bin(match field {
                Field::Varint(bytes) | Field::Bytes(bytes) => bytes,
                Field::Fixed64(bytes) => bytes,
                Field::Fixed32(bytes) => bytes,
            }));
        };
        let number = match (meaning, field) {
            (FieldEncoding::Varint, Field::Varint(bytes)) => varint(bytes) as i64,
            (FieldEncoding::ZigZag, Field::Varint(bytes)) => {
                let number = varint(bytes);
                (number >> 1) as i64 ^ -((number & 1) as i64)
            }
            (FieldEncoding::Fixed32, Field::Fixed32(bytes)) => i64::from(u32::from_le_bytes(*bytes)),
            (FieldEncoding::Signed32, Field::Fixed32(bytes)) => i64::from(i32::from_le_bytes(*bytes)),
            (FieldEncoding::Float, Field::Fixed32(bytes)) => f32::from_le_bytes(*bytes) as i64,
            (FieldEncoding::Fixed64, Field::Fixed64(bytes)) => i64::from_le_bytes(*bytes),
            (FieldEncoding::Double, Field::Fixed64(bytes)) => f64::from_le_bytes(*bytes) as i64,
            _ => return None,
        };
        Some(Value::Int(number))
    }
}

/// Decodes a complete varint.
fn varint(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f))
}

/// Takes a varint of at most ten bytes from the front.
fn take_varint<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = rest.iter().take(10).position(|byte| *byte < 0x80)? + 1;
    let (taken, behind) = rest.split_at(length);
    *rest = behind;
    Some(taken)
}

/// Takes a field from the front: its number and its bytes.
fn take_field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Field<'a>)> {
    let key = varint(take_varint(rest)?);
    let field = match key & 7 {
        0 => Field::Varint(take_varint(rest)?),
        1 => {
            let (bytes, behind) = rest.split_first_chunk()?;
            *rest = behind;
            Field::Fixed64(bytes)
        }
        2 => {
            let length = usize::try_from(varint(take_varint(rest)?)).ok()?;
            let (bytes, behind) = rest.split_at_checked(length)?;
            *rest = behind;
            Field::Bytes(bytes)
        }
        5 => {
            let (bytes, behind) = rest.split_first_chunk()?;
            *rest = behind;
            Field::Fixed32(bytes)
        }
        _ => return None,
    };
    Some((key >> 3, field))
}

/// Returns the first field at the path: each step enters the first embedded message with its field number.
fn find<'a>(message: &'a [u8], path: &[u32]) -> Option<Field<'a>> {
    let (last, steps) = path.split_last()?;
    let mut rest = message;
    for step in steps {
        rest = loop {
            match take_field(&mut rest)? {
                (number, Field::Bytes(bytes)) if number == u64::from(*step) => break bytes,
                _ => {}
            }
        };
    }
    loop {
        let (number, field) = take_field(&mut rest)?;
        if number == u64::from(*last) {
            return Some(field);
        }
    }
}

/// The messages of gRPC: a flag, four bytes of length, and the message.
fn messages(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (head, behind) = rest.split_first_chunk::<5>()?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let (message, behind) = behind.split_at_checked(length as usize)?;
        rest = behind;
        Some(message)
    })
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn fields_are_found() {
        check_rows(
            &Scene::default(),
            &[
                ("bin(0801),protobuf(1)", "01"),
                ("bin(089601),protobuf(1,int32)", "150"),
                ("bin(089601),protobuf(1,sint32)", "75"),
                ("bin(089601),protobuf(1,bool)", "150"),
                ("bin(089601),protobuf(1)", "9601"),
                ("bin(120774657374696e67),protobuf(2)", "74657374696e67"),
                ("bin(120774657374696e67),protobuf(3)", "<none>"),
                ("bin(1dffffffff),protobuf(3,sfixed32)", "-1"),
                ("bin(1dffffffff),protobuf(3,fixed32)", "4294967295"),
                ("bin(1d0000c03f),protobuf(3,float)", "1"),
                ("bin(1d0000c03f),protobuf(3,int32)", "<none>"),
                ("bin(2101000000000000ff),protobuf(4,fixed64)", "-72057594037927935"),
                ("bin(21000000000000f83f),protobuf(4,double)", "1"),
                ("bin(0aff),protobuf(1)", "<none>"),
                ("bin(08ffffffffffffffffff01),protobuf(1,uint64)", "-1"),
                ("bin(08ffffffffffffffffff01),protobuf(1,sint64)", "-9223372036854775808"),
                ("bin(1a020801),protobuf(3.1,int32)", "1"),
                ("bin(1a020801),protobuf(3.2,int32)", "<none>"),
                ("bin(08011a0208021003),protobuf(3.1,int32)", "2"),
                ("bin(08011002),protobuf(2,int32)", "2"),
                ("bin(0b0801),protobuf(1,int32)", "<none>"),
                ("bin(0801),protobuf(0)", "<none>"),
                ("bin(00000000020801),ungrpc(1,int32)", "1"),
                ("bin(00000000030801),ungrpc(1,int32)", "<none>"),
                ("bin(0000000002080100000000021005),ungrpc(2,int32)", "5"),
                ("bin(0000),ungrpc(1,int32)", "<none>"),
                (
                    "bin(01),protobuf(x)",
                    "!invalid arg 1 in converter 'protobuf' : failed to parse 'x' as type 'Protocol buffers field number' at position 1",
                ),
                (
                    "bin(01),protobuf(1,string)",
                    "!invalid args in converter 'protobuf' : Wrong protocol buffer type 'string'",
                ),
            ],
        );
    }
}
