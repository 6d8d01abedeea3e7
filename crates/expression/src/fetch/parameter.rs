//! Fetches of parameters: those of a request's URL, and those of a form-encoded body (section 7.3.6). Must never decode
//! a value.

use super::Fetch;
use super::body::payload;
use super::side::{REQUEST, head};
use crate::sample::parse::number;
use crate::sample::{Context, Places, Type, Value};
use crate::{Arguments, Kind, Signature};

const URL: Signature = Signature::new(0, &[Kind::Str, Kind::Str, Kind::Str]);
const BODY: Signature = Signature::new(0, &[Kind::Str, Kind::Str]);

/// Every fetch of the family.
#[rustfmt::skip]
pub const TABLE: &[Fetch] = &[
    Fetch::new("req.body_param", BODY, Type::Bin, Places::REQUEST, "Value of a parameter of a form in the request's body.", in_body)
        .each(each_in_body),
    Fetch::new("url_param", URL, Type::Str, Places::REQUEST, "Alias of `urlp`.", in_url).each(each_in_url),
    Fetch::new("urlp", URL, Type::Str, Places::REQUEST, "Value of a parameter of the query string.", in_url)
        .each(each_in_url),
    Fetch::new("urlp_val", URL, Type::Int, Places::REQUEST, "Value of a parameter of the query string, as an integer.",
        number_in_url)
        .each(numbers_in_url),
];

/// The requested parameter.
struct ParameterQuery<'a> {
    /// The name; `None`: any.
    name: Option<&'a [u8]>,
    /// The delimiter before and between parameters, besides `&` and `;`.
    delimiter: u8,
    ignore_case: bool,
}

impl<'a> ParameterQuery<'a> {
    fn in_url(arguments: &'a Arguments) -> Self {
        let delimiter = arguments.text(1).and_then(<[u8]>::first).copied().unwrap_or(b'?');
        Self { name: name(arguments), delimiter, ignore_case: ignores_case(arguments, 2) }
    }

    fn in_body(arguments: &'a Arguments) -> Self {
        Self { name: name(arguments), delimiter: b'&', ignore_case: ignores_case(arguments, 1) }
    }

    fn is(&self, name: &[u8]) -> bool {
        match self.name {
            None => true,
            Some(wanted) if self.ignore_case => wanted.eq_ignore_ascii_case(name),
            Some(wanted) => wanted == name,
        }
    }

    /// Passes the values of the matching parameters in a list.
    fn each<'b>(&self, list: &'b [u8], take: &mut dyn FnMut(&'b [u8]) -> bool) -> bool {
        list.split(|byte| matches!(byte, b'&' | b';') || *byte == self.delimiter).any(|pair| {
            let Some(equals) = memchr::memchr(b'=', pair) else { return false };
            self.is(&pair[..equals]) && take(&pair[equals + 1..])
        })
    }
}

fn name(arguments: &Arguments) -> Option<&[u8]> {
    arguments.text(0).filter(|name| !name.is_empty())
}

fn ignores_case(arguments: &Arguments, index: usize) -> bool {
    arguments.text(index).is_some_and(|text| text.first() == Some(&b'i'))
}

/// Passes the values of the matching parameters in the URL, which start after its first question mark or delimiter.
fn each_of_url<'a>(context: &Context<'a>, arguments: &'a Arguments, take: &mut dyn FnMut(&'a [u8]) -> bool) -> bool {
    let Some(head) = head::<REQUEST>(context) else { return false };
    let (target, wanted) = (head.target(), ParameterQuery::in_url(arguments));
    let Some(start) = memchr::memchr2(b'?', wanted.delimiter, target) else { return false };
    wanted.each(&target[start + 1..], take)
}

fn first_of_url<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<&'a [u8]> {
    let mut found = None;
    each_of_url(context, arguments, &mut |value| {
        found = Some(value);
        true
    });
    found
}

fn in_url<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    first_of_url(context, arguments).map(Value::Str)
}

fn each_in_url<'a>(context: &Context<'a>, arguments: &'a Arguments, take: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
    each_of_url(context, arguments, &mut |value| take(Value::Str(value)))
}

fn number_in_url<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    first_of_url(context, arguments).map(|value| Value::Int(number(value)))
}

fn numbers_in_url<'a>(
    context: &Context<'a>,
    arguments: &'a Arguments,
    take: &mut dyn FnMut(Value<'a>) -> bool,
) -> bool {
    each_of_url(context, arguments, &mut |value| take(Value::Int(number(value))))
}

fn in_body<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let mut found = None;
    each_in_body(context, arguments, &mut |value| {
        found = Some(value);
        true
    });
    found
}

fn each_in_body<'a>(context: &Context<'a>, arguments: &'a Arguments, take: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
    let Some(body) = payload::<REQUEST>(context) else { return false };
    ParameterQuery::in_body(arguments).each(body, &mut |value| take(Value::Bin(value)))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn parameters_of_urls() {
        let target = "/a/b;y=z|p=1?x=1|q=2;w=3&a%20b=1&b=a%20b?r=s&big=99999999999999999999&neg=-5&t=12x&e=&f&X=7";
        let rows = [
            ("urlp", "1|q=2"),
            ("urlp()", "1|q=2"),
            ("urlp(y)", "<none>"),
            ("urlp(y,;)", "z|p=1?x=1|q=2"),
            ("urlp(y,;|)", "z|p=1?x=1|q=2"),
            ("urlp(,|)", "1?x=1"),
            ("urlp(p,|)", "1?x=1"),
            ("urlp(q)", "<none>"),
            ("urlp(q,|)", "2"),
            ("url_param(w)", "3"),
            ("urlp(r)", "s"),
            ("urlp(b,?)", "a%20b"),
            ("urlp(a%20b)", "1"),
            ("urlp(e)", ""),
            ("urlp(f)", "<none>"),
            ("urlp(X)", "7"),
            ("urlp(X,,i)", "1|q=2"),
            ("urlp(X,,x)", "7"),
            ("urlp_val(big)", "1661992959"),
            ("urlp_val(neg)", "-5"),
            ("urlp_val(t)", "12"),
            ("urlp_val(none)", "<none>"),
        ];
        check_rows(&Scene::request("GET", target, &[]), &rows);
        check_rows(&Scene::request("GET", "/a?f&a=1&=x&b", &[]), &[("urlp", "1"), ("urlp(b)", "<none>")]);
        check_rows(&Scene::request("GET", "/a=1", &[]), &[("urlp", "<none>")]);
        check_rows(&Scene::default(), &[("urlp(a)", "<incomplete>")]);
    }

    #[test]
    fn parameters_of_bodies() {
        let mut scene = Scene { bytes: b"a=1&b=2;c=3&a=4&A=5&e=&f".to_vec(), ..Scene::request("POST", "/", &[]) };
        scene.request.as_mut().expect("a head").framing = wire::http::Framing::Length(24);
        let rows = [
            ("req.body_param(a)", "31"),
            ("req.body_param(b)", "32"),
            ("req.body_param(c)", "33"),
            ("req.body_param(e)", ""),
            ("req.body_param(f)", "<none>"),
            ("req.body_param(A)", "35"),
            ("req.body_param(A,i)", "31"),
            ("req.body_param(A,x)", "35"),
            ("req.body_param", "31"),
            ("req.body_param()", "31"),
        ];
        check_rows(&scene, &rows);
        check_rows(&Scene::request("POST", "/", &[]), &[("req.body_param(a)", "<none>")]);
    }
}
