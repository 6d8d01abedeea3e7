//! Fetches of distcc messages (section 7.3.5): tokens of four characters with a number each, most of them followed by
//! data. Must never parse a token's data as further tokens.

use super::Fetch;
use crate::sample::{Context, MissingInput, Places, Type, Value};
use crate::{Arguments, Checking, Kind, Signature};

const TOKEN: Signature = Signature::new(1, &[Kind::Str, Kind::Int]);

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    Fetch::new("distcc_body", TOKEN, Type::Bin, Places::EITHER, "Body of the nth distcc token of that name.", body)
        .needing("request buffer,response buffer")
        .checked(check),
    Fetch::new(
        "distcc_param",
        TOKEN,
        Type::Int,
        Places::EITHER,
        "Parameter of the nth distcc token of that name.",
        parameter,
    )
    .checked(check),
];

/// Tokens whose number is not the length of following data.
const BARE: &[&[u8; 4]] = &[b"DIST", b"ARGC", b"NFIL", b"STAT", b"DONE"];

/// Length of a token in bytes: its name and eight hexadecimal digits.
const TOKEN_LENGTH: usize = 12;

fn check(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    match arguments.text(0) {
        Some(name) if name.len() == 4 => Ok(()),
        _ => Err("token name must be exactly 4 characters".to_owned()),
    }
}

/// Returns the number of the requested token and the bytes received after it.
fn find<'a>(context: &Context<'a>, arguments: &Arguments) -> Option<(usize, &'a [u8])> {
    let wanted = arguments.text(0)?;
    let mut left = arguments.int(1).unwrap_or(1).max(1);
    let mut rest = context.bytes.data;
    while rest.len() >= TOKEN_LENGTH {
        let (token, behind) = rest.split_at(TOKEN_LENGTH);
        let (name, digits) = token.split_at(4);
        let number = hexadecimal(digits)?;
        if name == wanted {
            left -= 1;
            if left == 0 {
                return Some((number, behind));
            }
        }
        let length = if BARE.iter().any(|bare| *bare == name) { 0 } else { number };
        let Some(next) = behind.get(length..) else { return context.missing(MissingInput::Bytes) };
        rest = next;
    }
    context.missing(MissingInput::Bytes)
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0, |number, digit| Some(number << 4 | usize::from(base::hex::digit(*digit)?)))
}

fn parameter<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    find(context, arguments).map(|(number, _)| Value::Int(number as i64))
}

fn body<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (length, behind) = find(context, arguments)?;
    if BARE.iter().any(|bare| Some(&bare[..]) == arguments.text(0)) {
        return None;
    }
    match behind.get(..length) {
        Some(body) => Some(Value::Bin(body)),
        None => context.missing(MissingInput::Bytes),
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn tokens_are_found_behind_the_bytes_of_others() {
        let message = b"DIST00000001ARGC00000002ARGV00000003gccARGV00000002-cDOTI00000012DIST00000007hello!";
        let rows = [
            ("distcc_param(DIST)", "1"),
            ("distcc_param(ARGC)", "2"),
            ("distcc_param(ARGV)", "3"),
            ("distcc_body(ARGV)", "676363"),
            ("distcc_body(ARGV,2)", "2d63"),
            ("distcc_body(ARGV,3)", "<none>"),
            ("distcc_param(DIST,2)", "<none>"),
            ("distcc_body(DIST)", "<none>"),
            ("distcc_param(DOTI)", "18"),
            ("distcc_body(DOTI),length", "18"),
            (
                "distcc_param(FOO)",
                "!invalid args in fetch method 'distcc_param' : token name must be exactly 4 characters",
            ),
        ];
        check_rows(&Scene::bytes(message), &rows);
        let cut = Scene { complete: false, ..Scene::bytes(b"DIST00000003ARGV00000005gc") };
        let rows = [
            ("distcc_param(ARGV)", "5"),
            ("distcc_body(ARGV)", "<incomplete>"),
            ("distcc_param(DOTI)", "<incomplete>"),
        ];
        check_rows(&cut, &rows);
        check_rows(&Scene::bytes(b"DIST0000000zARGC00000002"), &[("distcc_param(ARGC)", "<none>")]);
    }
}
