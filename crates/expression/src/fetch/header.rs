//! Fetches of header fields (section 7.3.6): comma-separated values, whole fields, their names, and all of them at
//! once. Must never change a head.

use super::Fetch;
use super::side::{EITHER, REQUEST, RESPONSE, head};
use crate::fields::{each_field, each_value, occurrence};
use crate::sample::parse::{address, number};
use crate::sample::{Context, Places, Text, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};

const FIELD: Signature = Signature::new(0, &[Kind::Str, Kind::Int]);
const NAME: Signature = Signature::new(0, &[Kind::Str]);

/// A row for the values of a field, of which there may be several.
const fn value_row(
    name: &'static str,
    output: Type,
    places: Places,
    doc: &'static str,
    sample: super::SampleOf,
    each: super::SampleVisitor,
) -> Fetch {
    Fetch::new(name, FIELD, output, places, doc, sample).each(each).checked(check_field)
}

/// A row that counts fields or their values.
const fn count_row(name: &'static str, places: Places, doc: &'static str, sample: super::SampleOf) -> Fetch {
    Fetch::new(name, NAME, Type::Int, places, doc, sample).checked(check_field)
}

const VALUE: &str = "Last comma-separated value of the header fields of that name, or the nth one.";
const WHOLE: &str = "Last header field of that name as a whole, or the nth one.";
const ADDRESS: &str = "Comma-separated value of a header field, as an IP address.";
const NUMBER: &str = "Comma-separated value of a header field, as an integer.";
const VALUES: &str = "Number of comma-separated values of the header fields of that name.";
const FIELDS: &str = "Number of header fields of that name.";
const NAMES: &str = "Names of all header fields, separated by a comma or by the given character.";
const HEAD: &str = "All header fields as lines, including the empty line at the end.";
const BINARY: &str = "All header fields in binary form: names and values, each after its length.";

/// Every fetch of the family.
#[rustfmt::skip]
pub const TABLE: &[Fetch] = &[
    value_row("hdr", Type::Str, Places::EITHER, VALUE, value::<EITHER>, values::<EITHER>),
    count_row("hdr_cnt", Places::REQUEST, VALUES, value_count::<REQUEST>),
    value_row("hdr_ip", Type::Addr, Places::REQUEST, ADDRESS, value_address::<REQUEST>, addresses::<REQUEST>),
    value_row("hdr_val", Type::Int, Places::REQUEST, NUMBER, value_number::<REQUEST>, numbers::<REQUEST>),
    value_row("req.fhdr", Type::Str, Places::REQUEST, WHOLE, whole::<REQUEST>, wholes::<REQUEST>),
    count_row("req.fhdr_cnt", Places::REQUEST, FIELDS, field_count::<REQUEST>),
    value_row("req.hdr", Type::Str, Places::REQUEST, VALUE, value::<REQUEST>, values::<REQUEST>),
    count_row("req.hdr_cnt", Places::REQUEST, VALUES, value_count::<REQUEST>),
    value_row("req.hdr_ip", Type::Addr, Places::REQUEST, ADDRESS, value_address::<REQUEST>, addresses::<REQUEST>),
    Fetch::new("req.hdr_names", NAME, Type::Str, Places::REQUEST, NAMES, names::<REQUEST>),
    value_row("req.hdr_val", Type::Int, Places::REQUEST, NUMBER, value_number::<REQUEST>, numbers::<REQUEST>),
    Fetch::new("req.hdrs", Signature::NONE, Type::Str, Places::REQUEST, HEAD, lines::<REQUEST>),
    Fetch::new("req.hdrs_bin", Signature::NONE, Type::Bin, Places::REQUEST, BINARY, binary::<REQUEST>),
    value_row("res.fhdr", Type::Str, Places::RESPONSE, WHOLE, whole::<RESPONSE>, wholes::<RESPONSE>),
    count_row("res.fhdr_cnt", Places::RESPONSE, FIELDS, field_count::<RESPONSE>),
    value_row("res.hdr", Type::Str, Places::RESPONSE, VALUE, value::<RESPONSE>, values::<RESPONSE>),
    count_row("res.hdr_cnt", Places::RESPONSE, VALUES, value_count::<RESPONSE>),
    value_row("res.hdr_ip", Type::Addr, Places::RESPONSE, ADDRESS, value_address::<RESPONSE>, addresses::<RESPONSE>),
    Fetch::new("res.hdr_names", NAME, Type::Str, Places::RESPONSE, NAMES, names::<RESPONSE>),
    value_row("res.hdr_val", Type::Int, Places::RESPONSE, NUMBER, value_number::<RESPONSE>, numbers::<RESPONSE>),
    Fetch::new("res.hdrs", Signature::NONE, Type::Str, Places::RESPONSE, HEAD, lines::<RESPONSE>),
    Fetch::new("res.hdrs_bin", Signature::NONE, Type::Bin, Places::RESPONSE, BINARY, binary::<RESPONSE>),
    value_row("shdr", Type::Str, Places::RESPONSE, VALUE, value::<RESPONSE>, values::<RESPONSE>),
    count_row("shdr_cnt", Places::RESPONSE, VALUES, value_count::<RESPONSE>),
    value_row("shdr_ip", Type::Addr, Places::RESPONSE, ADDRESS, value_address::<RESPONSE>, addresses::<RESPONSE>),
    value_row("shdr_val", Type::Int, Places::RESPONSE, NUMBER, value_number::<RESPONSE>, numbers::<RESPONSE>),
];

/// Converts the field name to lower case for comparisons; occurrences before the tenth from the end are rejected.
fn check_field(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    if let Some(name) = arguments.text(0) {
        let name = name.to_ascii_lowercase();
        arguments.set(0, Argument::Str(name.into()));
    }
    if arguments.int(1).is_some_and(|occurrence| occurrence < -10) {
        return Err("header occurrence must be >= -10".to_owned());
    }
    Ok(())
}

/// The requested name, `None` for any. Without parentheses there is no request and no sample.
fn field_name(arguments: &Arguments) -> Option<Option<&[u8]>> {
    arguments.text(0).map(|name| Some(name).filter(|name| !name.is_empty()))
}

fn nth_value<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<&'a [u8]> {
    let (head, name) = (head::<SIDE>(context)?, field_name(arguments)?);
    occurrence(arguments.int(1).unwrap_or(0), |take| each_value(head, name, take))
}

fn every_value<'a, const SIDE: u8>(
    context: &Context<'a>,
    arguments: &'a Arguments,
    take: &mut dyn FnMut(&'a [u8]) -> bool,
) -> bool {
    if arguments.has(1) {
        return nth_value::<SIDE>(context, arguments).is_some_and(take);
    }
    let (Some(head), Some(name)) = (head::<SIDE>(context), field_name(arguments)) else { return false };
    each_value(head, name, take)
}

fn value<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    nth_value::<SIDE>(context, arguments).map(Value::Str)
}

fn values<'a, const SIDE: u8>(
    context: &Context<'a>,
    arguments: &'a Arguments,
    take: &mut dyn FnMut(Value<'a>) -> bool,
) -> bool {
    every_value::<SIDE>(context, arguments, &mut |value| take(Value::Str(value)))
}

fn value_address<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    nth_value::<SIDE>(context, arguments).and_then(address)
}

fn addresses<'a, const SIDE: u8>(
    context: &Context<'a>,
    arguments: &'a Arguments,
    take: &mut dyn FnMut(Value<'a>) -> bool,
) -> bool {
    every_value::<SIDE>(context, arguments, &mut |value| address(value).is_some_and(&mut *take))
}

fn value_number<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    nth_value::<SIDE>(context, arguments).map(|value| Value::Int(number(value)))
}

fn numbers<'a, const SIDE: u8>(
    context: &Context<'a>,
    arguments: &'a Arguments,
    take: &mut dyn FnMut(Value<'a>) -> bool,
) -> bool {
    every_value::<SIDE>(context, arguments, &mut |value| take(Value::Int(number(value))))
}

fn whole<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (head, name) = (head::<SIDE>(context)?, field_name(arguments)?);
    occurrence(arguments.int(1).unwrap_or(0), |take| each_field(head, name, take)).map(Value::Str)
}

fn wholes<'a, const SIDE: u8>(
    context: &Context<'a>,
    arguments: &'a Arguments,
    take: &mut dyn FnMut(Value<'a>) -> bool,
) -> bool {
    if arguments.has(1) {
        return whole::<SIDE>(context, arguments).is_some_and(take);
    }
    let (Some(head), Some(name)) = (head::<SIDE>(context), field_name(arguments)) else { return false };
    each_field(head, name, &mut |value| take(Value::Str(value)))
}

fn value_count<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (head, mut count) = (head::<SIDE>(context)?, 0);
    each_value(head, field_name(arguments).flatten(), &mut |_| {
        count += 1;
        false
    });
    Some(Value::Int(count))
}

fn field_count<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (head, mut count) = (head::<SIDE>(context)?, 0);
    each_field(head, field_name(arguments).flatten(), &mut |_| {
        count += 1;
        false
    });
    Some(Value::Int(count))
}

/// Builds a list of names. `arguments`: the delimiter, of which only the first byte is used.
pub(super) struct NameList<'a> {
    text: Text<'a>,
    delimiter: u8,
    any: bool,
}

impl<'a> NameList<'a> {
    pub(super) fn new(context: &Context<'a>, arguments: &Arguments) -> Self {
        let delimiter = arguments.text(0).map_or(b',', |text| text.first().copied().unwrap_or(0));
        Self { text: context.text(128), delimiter, any: false }
    }

    pub(super) fn push(&mut self, name: &[u8]) {
        if std::mem::replace(&mut self.any, true) {
            self.text.push(self.delimiter);
        }
        self.text.extend(name);
    }

    /// Returns the list; `None` when it is too long.
    pub(super) fn finish(self) -> Option<Value<'a>> {
        self.text.finish().map(Value::Str)
    }
}

fn names<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let mut list = NameList::new(context, arguments);
    head::<SIDE>(context)?.fields().for_each(|(name, _)| list.push(name));
    list.finish()
}

fn lines<'a, const SIDE: u8>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let head = head::<SIDE>(context)?;
    let mut text = context.text(512);
    for (name, value) in head.fields() {
        text.extend(name);
        text.extend(b": ");
        text.extend(value);
        text.extend(b"\r\n");
    }
    text.extend(b"\r\n");
    text.finish().map(Value::Str)
}

fn binary<'a, const SIDE: u8>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let head = head::<SIDE>(context)?;
    let mut text = context.text(512);
    for (name, value) in head.fields() {
        push_length(&mut text, name.len() as u64);
        text.extend(name);
        push_length(&mut text, value.len() as u64);
        text.extend(value);
    }
    text.extend(&[0, 0]);
    text.finish().map(Value::Bin)
}

/// Appends a varint of SPOE (SPOE.txt, section 3.1).
fn push_length(text: &mut Text<'_>, length: u64) {
    if length < 240 {
        text.push(length as u8);
        return;
    }
    text.push(length as u8 | 0xf0);
    let mut rest = (length - 240) >> 4;
    while rest >= 128 {
        text.push(rest as u8 | 0x80);
        rest = (rest - 128) >> 7;
    }
    text.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::tests::{Scene, check_rows};

    const FIELDS: &[(&str, &str)] = &[
        ("Host", "a.b"),
        ("X-A", "1, 2 ,,"),
        ("x-a", "3,\"4,5\\\",6\""),
        ("x-e", ""),
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("x-ip", "192.0.2.7:80, [::1]:5, ::2, 1.2.3"),
        ("x-n", "12a, 0x1f, -7, 99999999999999999999"),
        ("x-q", "\"a,b, c"),
        ("x-q", "a\\\",b, \"c\\\\\",d"),
    ];

    #[test]
    fn values_between_commas() {
        let rows = [
            ("req.hdr(host)", "a.b"),
            ("req.hdr(HOST),upper", "A.B"),
            ("hdr(x-a)", "\"4,5\\\",6\""),
            ("hdr(x-a,0)", "\"4,5\\\",6\""),
            ("hdr(x-a,1)", "1"),
            ("hdr(x-a,2)", "2"),
            ("hdr(x-a,3)", ""),
            ("hdr(x-a,5)", "3"),
            ("hdr(x-a,7)", "<none>"),
            ("hdr(x-a,-2)", "3"),
            ("hdr(x-a,-6)", "1"),
            ("hdr(x-a,-7)", "<none>"),
            ("hdr(x-a,-11)", "!invalid args in fetch method 'hdr' : header occurrence must be >= -10"),
            ("hdr(x-e)", ""),
            ("hdr(nope)", "<none>"),
            ("hdr", "<none>"),
            ("hdr()", "a\\\",b, \"c\\\\\",d"),
            ("hdr(,2)", "1"),
            ("req.hdr(date)", "06 Nov 1994 08:49:37 GMT"),
            ("hdr(x-q,1)", "\"a,b, c"),
            ("hdr_cnt(x-q)", "2"),
            ("req.hdr_cnt", "20"),
            ("req.hdr_cnt()", "20"),
            ("req.hdr_cnt(x-a)", "6"),
            ("req.hdr_cnt(x-e)", "1"),
            ("req.hdr_cnt(nope)", "0"),
        ];
        check_rows(&Scene::request("GET", "/", FIELDS), &rows);
    }

    #[test]
    fn whole_fields_and_all_of_them() {
        let rows = [
            ("req.fhdr(x-a)", "3,\"4,5\\\",6\""),
            ("req.fhdr(x-a,1)", "1, 2 ,,"),
            ("req.fhdr(x-a,-2)", "1, 2 ,,"),
            ("req.fhdr(,3)", "3,\"4,5\\\",6\""),
            ("req.fhdr", "<none>"),
            ("req.fhdr(x-e)", ""),
            ("req.fhdr_cnt", "9"),
            ("req.fhdr_cnt(x-a)", "2"),
            ("req.fhdr_cnt(nope)", "0"),
            ("req.hdr_names", "host,x-a,x-a,x-e,date,x-ip,x-n,x-q,x-q"),
            ("req.hdr_names(:;)", "host:x-a:x-a:x-e:date:x-ip:x-n:x-q:x-q"),
        ];
        check_rows(&Scene::request("GET", "/", FIELDS), &rows);
        let scene = Scene::request("GET", "/", &[("Host", "h"), ("a", "")]);
        check_rows(&scene, &[("req.hdrs", "host: h\r\na: \r\n\r\n"), ("req.hdrs_bin", "04686f737401680161000000")]);
        let bare = [("req.hdrs", "\r\n"), ("req.hdrs_bin", "0000"), ("req.hdr_names", ""), ("hdr()", "<none>")];
        check_rows(&Scene::request("GET", "/", &[]), &bare);
    }

    #[test]
    fn numbers_and_addresses() {
        let rows = [
            ("req.hdr_ip(x-ip)", "<none>"),
            ("req.hdr_ip(x-ip,1)", "192.0.2.7"),
            ("hdr_ip(x-ip,2)", "<none>"),
            ("hdr_ip(x-ip,3)", "::2"),
            ("req.hdr_val(x-n)", "1661992959"),
            ("hdr_val(x-n,1)", "12"),
            ("hdr_val(x-n,3)", "-7"),
            ("hdr_val(x-e)", "0"),
            ("hdr_val(nope)", "<none>"),
        ];
        check_rows(&Scene::request("GET", "/", FIELDS), &rows);
    }

    #[test]
    fn answers_have_the_same() {
        let rows = [
            ("res.hdr(x-a)", "\"4,5\\\",6\""),
            ("hdr(x-a,1)", "1"),
            ("shdr(x-a,-2)", "3"),
            ("res.fhdr(x-a,1)", "1, 2 ,,"),
            ("res.fhdr_cnt(x-a)", "2"),
            ("res.hdr_cnt(x-a)", "6"),
            ("shdr_cnt(x-a)", "6"),
            ("res.hdr_ip(x-ip,1)", "192.0.2.7"),
            ("shdr_ip(x-ip,3)", "::2"),
            ("res.hdr_val(x-n,1)", "12"),
            ("shdr_val(x-n,3)", "-7"),
            ("res.hdr_names(;)", "host;x-a;x-a;x-e;date;x-ip;x-n;x-q;x-q"),
            ("res.hdrs,length", "207"),
            ("res.hdrs_bin,bytes(0,9)", "04686f737403612e62"),
        ];
        check_rows(&Scene::response(200, FIELDS), &rows);
        check_rows(&Scene::default(), &[("res.hdr(a)", "<none>"), ("req.hdr(a)", "<incomplete>")]);
        check_rows(&Scene::bytes(b"x"), &[("req.hdr(a)", "<none>")]);
    }

    #[test]
    fn lengths_are_written_as_spoe_writes_them() {
        let rows: &[(u64, &[u8])] =
            &[(0, &[0]), (239, &[239]), (240, &[0xf0, 0]), (2287, &[0xff, 0x7f]), (2288, &[0xf0, 0x80, 0])];
        for (length, expected) in rows {
            Scene::default().with(|context| {
                let mut text = context.text(8);
                push_length(&mut text, *length);
                assert_eq!(text.bytes(), *expected, "{length}");
            });
        }
    }
}
