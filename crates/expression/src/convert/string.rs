//! Converters of whole strings: case, length, trimming, order, and appended text.

use super::Converter;
use super::operand::{to_named_variable, to_optional_variable, variable_as};
use crate::sample::{Context, Type, Value};
use crate::{Arguments, Checking, Kind, Signature};

const ONE: Signature = Signature::new(1, &[Kind::Str]);

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "add_item",
        Signature::new(2, &[Kind::Str, Kind::Str, Kind::Str]),
        Type::Str,
        Type::Str,
        "Appends a delimiter, unless the input is empty, then a variable and a suffix.",
        add_item,
    )
    .checked(check_add_item),
    Converter::new(
        "concat",
        Signature::new(1, &[Kind::Str, Kind::Str, Kind::Str]),
        Type::Str,
        Type::Str,
        "Appends a string, a variable and another string.",
        concat,
    )
    .checked(check_concat),
    Converter::new(
        "cut_crlf",
        Signature::NONE,
        Type::Str,
        Type::Str,
        "Cuts the string at the first CR or LF.",
        cut_crlf,
    ),
    Converter::new("length", Signature::NONE, Type::Str, Type::Int, "Length in bytes.", length),
    Converter::new("lower", Signature::NONE, Type::Str, Type::Str, "Converts ASCII letters to lower case.", lower),
    Converter::new("ltrim", ONE, Type::Str, Type::Str, "Removes those characters at the start.", trim_start),
    Converter::new("reverse", Signature::NONE, Type::Str, Type::Str, "Reverses the bytes.", reverse),
    Converter::new(
        "reverse_dom",
        Signature::NONE,
        Type::Str,
        Type::Str,
        "Reverses the labels of a domain name; a final dot is dropped.",
        reverse_domain,
    ),
    Converter::new("rtrim", ONE, Type::Str, Type::Str, "Removes those characters at the end.", trim_end),
    Converter::new(
        "strcmp",
        ONE,
        Type::Str,
        Type::Int,
        "Compares with a variable: negative, zero or positive, as strcmp does.",
        compare,
    )
    .checked(check_compare),
    Converter::new("upper", Signature::NONE, Type::Str, Type::Str, "Converts ASCII letters to upper case.", upper),
];

fn length<'a>(_: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    value.bytes().map(|bytes| Value::Int(bytes.len() as i64))
}

fn lower<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    if !bytes.iter().any(u8::is_ascii_uppercase) {
        return Some(Value::Str(bytes));
    }
    let mut text = context.text(bytes.len());
    bytes.iter().for_each(|byte| text.push(byte.to_ascii_lowercase()));
    text.finish().map(Value::Str)
}

fn upper<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let mut text = context.text(bytes.len());
    bytes.iter().for_each(|byte| text.push(byte.to_ascii_uppercase()));
    text.finish().map(Value::Str)
}

fn check_concat(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    to_optional_variable(arguments, 1)
}

fn check_add_item(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let is_empty = |index| arguments.text(index).is_none_or(<[u8]>::is_empty);
    if is_empty(1) && is_empty(2) {
        return Err("one of the optional arguments has to be nonempty".to_owned());
    }
    to_optional_variable(arguments, 1)
}

/// Returns the value of the variable in the second argument; empty without one.
fn second_as_text<'a>(context: &Context<'a>, arguments: &'a Arguments) -> &'a [u8] {
    let value = arguments.variable(1).and_then(|variable| variable_as(context, variable, Type::Str));
    value.and_then(|value| value.bytes()).unwrap_or_default()
}

fn join<'a>(context: &Context<'a>, parts: [&[u8]; 4]) -> Option<Value<'a>> {
    let mut text = context.text(parts.iter().map(|part| part.len()).sum());
    parts.iter().for_each(|part| text.extend(part));
    text.finish().map(Value::Str)
}

fn concat<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let text = |index| arguments.text(index).unwrap_or_default();
    join(context, [value.bytes()?, text(0), second_as_text(context, arguments), text(2)])
}

fn add_item<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (start, item) = (value.bytes()?, second_as_text(context, arguments));
    let suffix = arguments.text(2).unwrap_or_default();
    let wants_delimiter = !(start.is_empty() || item.is_empty() && suffix.is_empty());
    let delimiter = arguments.text(0).filter(|_| wants_delimiter).unwrap_or_default();
    join(context, [start, delimiter, item, suffix])
}

fn cut_crlf<'a>(_: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    Some(Value::Str(memchr::memchr2(b'\r', b'\n', bytes).map_or(bytes, |end| &bytes[..end])))
}

fn trim_start<'a>(_: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (bytes, set) = (value.bytes()?, arguments.text(0)?);
    let start = bytes.iter().position(|byte| !set.contains(byte)).unwrap_or(bytes.len());
    Some(Value::Str(&bytes[start..]))
}

fn trim_end<'a>(_: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (bytes, set) = (value.bytes()?, arguments.text(0)?);
    let end = bytes.iter().rposition(|byte| !set.contains(byte)).map_or(0, |last| last + 1);
    Some(Value::Str(&bytes[..end]))
}

fn reverse<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let mut text = context.text(bytes.len());
    bytes.iter().rev().for_each(|byte| text.push(*byte));
    text.finish().map(Value::Str)
}

fn reverse_domain<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let name = bytes.strip_suffix(b".").unwrap_or(bytes);
    let mut text = context.text(name.len());
    for (index, label) in name.rsplit(|byte| *byte == b'.').enumerate() {
        if label.is_empty() {
            return None;
        }
        if index > 0 {
            text.push(b'.');
        }
        text.extend(label);
    }
    text.finish().map(Value::Str)
}

fn check_compare(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    to_named_variable(arguments, 0)
}

fn compare<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let left = value.bytes()?;
    let right = variable_as(context, arguments.variable(0)?, Type::Str)?.bytes()?;
    let differing = left.iter().zip(right).find(|(left, right)| left != right);
    Some(Value::Int(match differing {
        Some((left, right)) => i64::from(*left) - i64::from(*right),
        None => left.len().cmp(&right.len()) as i64,
    }))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn strings_are_changed() {
        check_rows(
            &Scene::default(),
            &[
                ("str(),length", "0"),
                ("str(aBc),upper,lower", "abc"),
                ("bin(610d0a62),cut_crlf", "a"),
                ("bin(610a0d62),cut_crlf", "a"),
                ("bin(0d),cut_crlf", ""),
                ("str(abc),cut_crlf", "abc"),
                ("str(xxabcxx),ltrim(x)", "abcxx"),
                ("str(xxabcxx),rtrim(x)", "xxabc"),
                ("str(xxabcxx),ltrim(xa)", "bcxx"),
                ("str(xxxx),rtrim(x)", ""),
                ("str(abc),rtrim", "abc"),
                ("str(abc),reverse", "cba"),
                ("str(mail.example.com),reverse_dom", "com.example.mail"),
                ("str(example.com.),reverse_dom", "com.example"),
                ("str(example..com),reverse_dom", "<none>"),
                ("str(.example.com),reverse_dom", "<none>"),
                ("str(.),reverse_dom", "<none>"),
                ("str(),reverse_dom", "<none>"),
            ],
        );
    }

    #[test]
    fn strings_are_put_together() {
        check_rows(
            &Scene::default(),
            &[
                ("str(x),concat(a)", "xa"),
                ("str(x),set-var(txn.s),concat(a,txn.s,z)", "xaxz"),
                ("str(x),concat(a,,z)", "xaz"),
                ("str(x),concat(a,txn.nope,z)", "xaz"),
                ("str(x),concat", "x"),
                ("int(5),set-var(txn.n),concat(a,txn.n)", "5a5"),
                ("ipv4(1.2.3.4),set-var(txn.n),concat(-,txn.n)", "1.2.3.4-1.2.3.4"),
                (
                    "str(x),concat(a,foo,z)",
                    "!invalid args in converter 'concat' : failed to register variable name 'foo'",
                ),
                ("str(x),set-var(txn.s),add_item(;,txn.s)", "x;x"),
                ("str(x),set-var(txn.s),add_item(;,txn.s,z)", "x;xz"),
                ("str(x),add_item(;,,z)", "x;z"),
                ("str(x),add_item(;,txn.nope)", "x"),
                ("str(x),add_item(;,txn.nope,z)", "x;z"),
                ("str(),add_item(;,,z)", "z"),
                (
                    "str(x),add_item(;,,)",
                    "!invalid args in converter 'add_item' : one of the optional arguments has to be nonempty",
                ),
            ],
        );
    }

    #[test]
    fn strings_are_compared() {
        check_rows(
            &Scene::default(),
            &[
                ("str(abc),set-var(txn.s),strcmp(txn.s)", "0"),
                ("str(abc),set-var(txn.s),bytes(0,2),strcmp(txn.s)", "-1"),
                ("str(abc),set-var(txn.s),concat(de),strcmp(txn.s)", "1"),
                ("str(abc),set-var(txn.s),ltrim(ab),strcmp(txn.s)", "2"),
                ("str(abc),strcmp(txn.nope)", "<none>"),
                ("int(5),set-var(txn.n),strcmp(txn.n)", "0"),
                ("str(a),strcmp()", "!invalid args in converter 'strcmp' : missing variable name"),
                ("str(a),strcmp(foo)", "!invalid args in converter 'strcmp' : failed to register variable name 'foo'"),
            ],
        );
    }
}
