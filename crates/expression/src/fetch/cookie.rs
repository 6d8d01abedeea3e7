//! Fetches of cookies: those of a request's Cookie fields, and those set by a response (section 7.3.6). Must never
//! judge a cookie's value.

use super::Fetch;
use super::header::NameList;
use super::side::{EITHER, REQUEST, RESPONSE, head};
use crate::fields::{each_field, each_value};
use crate::sample::parse::number;
use crate::sample::{Context, Direction, Places, Type, Value};
use crate::{Arguments, Kind, Signature};

const NAME: Signature = Signature::new(0, &[Kind::Str]);
const COOKIE: &str = "Value of the last cookie of that name; without a name, of the first cookie.";
const COUNT: &str = "Number of cookies of that name.";
const NUMBER: &str = "Value of a cookie, as an integer.";
const NAMES: &str = "Names of all cookies, separated by a comma or by the given character.";

const fn value_row(name: &'static str, places: Places, sample: super::SampleOf, each: super::SampleVisitor) -> Fetch {
    Fetch::new(name, NAME, Type::Str, places, COOKIE, sample).each(each)
}

const fn number_row(name: &'static str, places: Places, sample: super::SampleOf, each: super::SampleVisitor) -> Fetch {
    Fetch::new(name, NAME, Type::Int, places, NUMBER, sample).each(each)
}

/// Every fetch of the family.
#[rustfmt::skip]
pub const TABLE: &[Fetch] = &[
    value_row("cook", Places::REQUEST, value::<REQUEST>, values::<REQUEST>),
    Fetch::new("cook_cnt", NAME, Type::Int, Places::REQUEST, COUNT, count::<REQUEST>),
    number_row("cook_val", Places::REQUEST, value_number::<REQUEST>, numbers::<REQUEST>),
    value_row("cookie", Places::EITHER, value::<EITHER>, values::<EITHER>),
    value_row("req.cook", Places::REQUEST, value::<REQUEST>, values::<REQUEST>),
    Fetch::new("req.cook_cnt", NAME, Type::Int, Places::REQUEST, COUNT, count::<REQUEST>),
    Fetch::new("req.cook_names", NAME, Type::Str, Places::REQUEST, NAMES, names::<REQUEST>),
    number_row("req.cook_val", Places::REQUEST, value_number::<REQUEST>, numbers::<REQUEST>),
    value_row("res.cook", Places::RESPONSE, value::<RESPONSE>, values::<RESPONSE>),
    Fetch::new("res.cook_cnt", NAME, Type::Int, Places::RESPONSE, COUNT, count::<RESPONSE>),
    Fetch::new("res.cook_names", NAME, Type::Str, Places::RESPONSE, NAMES, names::<RESPONSE>),
    number_row("res.cook_val", Places::RESPONSE, value_number::<RESPONSE>, numbers::<RESPONSE>),
    value_row("scook", Places::RESPONSE, value::<RESPONSE>, values::<RESPONSE>),
    Fetch::new("scook_cnt", NAME, Type::Int, Places::RESPONSE, COUNT, count::<RESPONSE>),
    number_row("scook_val", Places::RESPONSE, value_number::<RESPONSE>, numbers::<RESPONSE>),
];

/// The first pair of a list of cookies, and the text after its delimiter.
struct Pair<'a> {
    name: &'a [u8],
    value: Option<&'a [u8]>,
    rest: &'a [u8],
}

/// Parses the pair at the front. Semicolons and commas end it, but not within a value's double quotes.
fn pair(list: &[u8]) -> Pair<'_> {
    let ends = |byte: &u8| matches!(byte, b';' | b',');
    let stop = list.iter().position(|byte| *byte == b'=' || ends(byte)).unwrap_or(list.len());
    let name = list[..stop].trim_ascii();
    if list.get(stop) != Some(&b'=') {
        return Pair { name, value: None, rest: list.get(stop + 1..).unwrap_or_default() };
    }
    let behind = &list[stop + 1..];
    let (mut quoted, mut escaped) = (false, false);
    let end = behind.iter().position(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => return !quoted && ends(byte),
        }
        false
    });
    let end = end.unwrap_or(behind.len());
    Pair { name, value: Some(behind[..end].trim_ascii()), rest: behind.get(end + 1..).unwrap_or_default() }
}

/// Whether the response's cookies are fetched, and the name of the field that contains them.
fn field<const SIDE: u8>(context: &Context<'_>) -> (bool, &'static [u8]) {
    let sets = SIDE == RESPONSE || SIDE == EITHER && context.direction == Direction::Response;
    (sets, if sets { b"set-cookie" } else { b"cookie" })
}

/// The requested name; `None`: any.
fn cookie_name(arguments: &Arguments) -> Option<&[u8]> {
    arguments.text(0).filter(|name| !name.is_empty())
}

/// Passes the values of the cookies of that name, or of all. Commas separate lists as in other fields. In a response
/// the pairs after a cookie are its attributes; they are included only if no name is requested.
fn each_cookie<'a, const SIDE: u8>(
    context: &Context<'a>,
    name: Option<&[u8]>,
    take: &mut dyn FnMut(&'a [u8]) -> bool,
) -> bool {
    let Some(head) = head::<SIDE>(context) else { return false };
    let (sets, field) = field::<SIDE>(context);
    let length = name.map_or(0, <[u8]>::len);
    each_value(head, Some(field), &mut |list| {
        let mut rest = list;
        // As in HAProxy, a name and an equal sign alone at the very end of a list are not a cookie.
        while rest.len() > length + 1 {
            let pair = pair(rest);
            let fits = name.map_or(!pair.name.starts_with(b"$"), |name| name == pair.name);
            if let Some(value) = pair.value.filter(|_| fits)
                && take(value)
            {
                return true;
            }
            if sets && name.is_some() {
                return false;
            }
            rest = pair.rest;
        }
        false
    })
}

fn found<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<&'a [u8]> {
    let (name, mut last) = (cookie_name(arguments), None);
    each_cookie::<SIDE>(context, name, &mut |value| {
        last = Some(value);
        name.is_none()
    });
    last
}

fn value<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    found::<SIDE>(context, arguments).map(Value::Str)
}

fn values<'a, const SIDE: u8>(
    context: &Context<'a>,
    arguments: &'a Arguments,
    take: &mut dyn FnMut(Value<'a>) -> bool,
) -> bool {
    each_cookie::<SIDE>(context, cookie_name(arguments), &mut |value| take(Value::Str(value)))
}

fn value_number<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    found::<SIDE>(context, arguments).map(|value| Value::Int(number(value)))
}

fn numbers<'a, const SIDE: u8>(
    context: &Context<'a>,
    arguments: &'a Arguments,
    take: &mut dyn FnMut(Value<'a>) -> bool,
) -> bool {
    each_cookie::<SIDE>(context, cookie_name(arguments), &mut |value| take(Value::Int(number(value))))
}

fn count<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    head::<SIDE>(context)?;
    let mut count = 0;
    each_cookie::<SIDE>(context, cookie_name(arguments), &mut |_| {
        count += 1;
        false
    });
    Some(Value::Int(count))
}

fn names<'a, const SIDE: u8>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let head = head::<SIDE>(context)?;
    let (sets, field) = field::<SIDE>(context);
    let mut list = NameList::new(context, arguments);
    each_field(head, Some(field), &mut |cookies| {
        let mut rest = cookies;
        while !rest.is_empty() {
            let pair = pair(rest);
            if pair.value.is_some() && !pair.name.starts_with(b"$") {
                list.push(pair.name);
            }
            rest = if sets { &[] } else { pair.rest };
        }
        false
    });
    list.finish()
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn cookies_of_requests() {
        let fields = [("cookie", "a=1; b = \"2\"; c=; d; a=3;e=x=y ,f=9; =q"), ("Cookie", "g=4, h=5")];
        let rows = [
            ("req.cook", "1"),
            ("req.cook()", "1"),
            ("req.cook(a)", "3"),
            ("req.cook(b)", "\"2\""),
            ("req.cook(c)", ""),
            ("req.cook(d)", "<none>"),
            ("cook(e)", "x=y"),
            ("cookie(f)", "9"),
            ("req.cook(h)", "5"),
            ("req.cook(A)", "<none>"),
            ("req.cook_cnt", "9"),
            ("req.cook_cnt(a)", "2"),
            ("cook_cnt(d)", "0"),
            ("req.cook_val", "1"),
            ("req.cook_val(a)", "3"),
            ("cook_val(b)", "0"),
            ("req.cook_names", "a,b,c,a,e,f,,g,h"),
            ("req.cook_names(;)", "a;b;c;a;e;f;;g;h"),
        ];
        check_rows(&Scene::request("GET", "/", &fields), &rows);
        let none = [("req.cook", "<none>"), ("req.cook_cnt", "0"), ("req.cook_names", "")];
        check_rows(&Scene::request("GET", "/", &[]), &none);
    }

    #[test]
    fn lists_of_cookies() {
        // A list, the last value of f, the number of f, the number of cookies, their names.
        let rows = [
            ("f=", "<none>", "0", "1", "f"),
            ("f=,g=1", "<none>", "0", "2", "f,g"),
            ("f=;g", "", "1", "1", "f"),
            ("g=1;f=", "<none>", "0", "2", "g,f"),
            ("g=1; f=", "", "1", "2", "g,f"),
            ("f;f=1", "1", "1", "1", "f"),
            ("f=;f=1", "1", "2", "2", "f,f"),
            ("f=2;f=", "2", "1", "2", "f,f"),
            ("$f=1;f=3", "3", "1", "1", "f"),
            ("f=\"a\\\";b\";g=2", "\"a\\\";b\"", "1", "2", "f,g"),
            ("f='a;b'", "'a", "1", "1", "f"),
            ("f=a b;g=1", "a b", "1", "2", "f,g"),
            ("  f  =  1  ;", "1", "1", "1", "f"),
            ("f=12x,f=3", "3", "2", "2", "f,f"),
            ("ff=1;f=2", "2", "1", "2", "ff,f"),
        ];
        for (list, value, count, all, names) in rows {
            let scene = Scene::request("GET", "/", &[("cookie", list)]);
            let expected = [("req.cook(f)", value), ("req.cook_cnt(f)", count), ("req.cook_cnt", all)];
            check_rows(&scene, &expected);
            check_rows(&scene, &[("req.cook_names", names)]);
        }
    }

    #[test]
    fn cookies_of_answers() {
        let fields = [
            ("set-cookie", "a=1; Path=/; c=x"),
            ("set-cookie", "b=2, c=3; HttpOnly"),
            ("set-cookie", "a = \"2\" ; secure"),
            ("set-cookie", "e"),
            ("set-cookie", "f=; g=1"),
            ("set-cookie", " sp =  4 5 ;x=y"),
        ];
        let rows = [
            ("res.cook", "1"),
            ("res.cook(a)", "\"2\""),
            ("scook(b)", "2"),
            ("cookie(c)", "3"),
            ("res.cook(Path)", "<none>"),
            ("res.cook(f)", ""),
            ("res.cook(g)", "<none>"),
            ("res.cook(sp)", "4 5"),
            ("res.cook_cnt", "10"),
            ("res.cook_cnt(a)", "2"),
            ("scook_cnt(c)", "1"),
            ("res.cook_val(a)", "0"),
            ("scook_val(sp)", "4"),
            ("res.cook_names", "a,b,a,f,sp"),
        ];
        check_rows(&Scene::response(200, &fields), &rows);
    }
}
