//! Converters that hash with the functions of `hash-type`. None of them resists deliberate collisions.

use super::Converter;
use crate::sample::{Context, Type, Value};
use crate::{Arguments, Kind, Signature};

const OPTION: Signature = Signature::new(0, &[Kind::Int]);

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "crc32",
        OPTION,
        Type::Bin,
        Type::Int,
        "CRC32 hash; with 1, followed by an avalanche.",
        |_, value, arguments| hashed(base::hash::crc32, value, arguments),
    ),
    Converter::new(
        "crc32c",
        OPTION,
        Type::Bin,
        Type::Int,
        "CRC32C hash; with 1, followed by an avalanche.",
        |_, value, arguments| hashed(base::hash::crc32c, value, arguments),
    ),
    Converter::new(
        "djb2",
        OPTION,
        Type::Bin,
        Type::Int,
        "DJB2 hash; with 1, followed by an avalanche.",
        |_, value, arguments| hashed(base::hash::djb2, value, arguments),
    ),
    Converter::new(
        "sdbm",
        OPTION,
        Type::Bin,
        Type::Int,
        "SDBM hash; with 1, followed by an avalanche.",
        |_, value, arguments| hashed(base::hash::sdbm, value, arguments),
    ),
    Converter::new(
        "wt6",
        OPTION,
        Type::Bin,
        Type::Int,
        "WT6 hash; with 1, followed by an avalanche.",
        |_, value, arguments| hashed(base::hash::wt6, value, arguments),
    ),
    Converter::new("xxh3", OPTION, Type::Bin, Type::Int, "XXH3 hash of 64 bits with a seed.", xxh3),
    Converter::new("xxh32", OPTION, Type::Bin, Type::Int, "XXH32 hash with a seed.", xxh32),
    Converter::new("xxh64", OPTION, Type::Bin, Type::Int, "XXH64 hash with a seed.", xxh64),
];

fn hashed<'a>(hash: fn(&[u8]) -> u32, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let hash = hash(value.bytes()?);
    let hash = if seed(arguments) == 0 { hash } else { base::hash::avalanche(hash) };
    Some(Value::Int(i64::from(hash)))
}

fn seed(arguments: &Arguments) -> i64 {
    arguments.int(0).unwrap_or(0)
}

fn xxh32<'a>(_: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let hash = base::hash::xxh32(value.bytes()?, seed(arguments) as u32);
    Some(Value::Int(i64::from(hash)))
}

fn xxh64<'a>(_: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let hash = xxhash_rust::xxh64::xxh64(value.bytes()?, seed(arguments) as u64);
    Some(Value::Int(hash as i64))
}

fn xxh3<'a>(_: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let hash = xxhash_rust::xxh3::xxh3_64_with_seed(value.bytes()?, seed(arguments) as u64);
    Some(Value::Int(hash as i64))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn samples_are_hashed() {
        check_rows(
            &Scene::default(),
            &[
                ("str(abc),crc32", "891568578"),
                ("str(abc),crc32(1)", "930845320"),
                ("str(abc),crc32(2)", "930845320"),
                ("str(abc),crc32(0)", "891568578"),
                ("str(abc),crc32c", "910901175"),
                ("str(abc),crc32c(1)", "1285784220"),
                ("str(abc),djb2", "193485963"),
                ("str(abc),djb2(1)", "2235766107"),
                ("str(abc),sdbm", "807794786"),
                ("str(abc),sdbm(1)", "659243622"),
                ("str(abc),wt6", "2483038440"),
                ("str(abc),wt6(1)", "266135527"),
                ("str(),wt6", "4187620192"),
                ("str(abc),xxh32", "852579327"),
                ("str(abc),xxh32(5)", "1562728233"),
                ("str(abc),xxh32(-1)", "2989167648"),
                ("str(abc),xxh64", "4952883123889572249"),
                ("str(abc),xxh64(5)", "-1753195980308443340"),
                ("str(abc),xxh64(-1)", "2895935887265243510"),
                ("str(abc),xxh3", "8696274497037089104"),
                ("str(abc),xxh3(5)", "6167986026487092235"),
                ("str(),xxh3", "3244421341483603138"),
                ("str(abcdefghi),xxh3(7)", "6662795941300720244"),
                ("str(abcdefghijklmnopq),xxh3", "-3855303992812254513"),
                ("ipv4(1.2.3.4),crc32", "3057449933"),
                ("int(5),crc32", "357051366"),
            ],
        );
    }
}
