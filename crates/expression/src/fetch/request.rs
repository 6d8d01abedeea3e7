//! Fetches of a request line: method, target, version, and the components of the target (section 7.3.6). Must never
//! decode a target.

use super::Fetch;
use super::side::{REQUEST, head};
use crate::sample::parse::{ipv4, number};
use crate::sample::{Context, Places, Type, Value};
use crate::{Arguments, Checking, Kind, Signature};
use base::hash::{avalanche, sdbm};
use std::net::{IpAddr, Ipv4Addr};
use wire::http::Head;

const NONE: Signature = Signature::NONE;
const OPTIONS: Signature = Signature::new(0, &[Kind::Str]);
const BASE: &str = "Concatenation of host and path.";
const VERSION: &str = "Version of the request, such as 1.1.";

/// Every fetch of the family.
#[rustfmt::skip]
pub const TABLE: &[Fetch] = &[
    Fetch::new("base", NONE, Type::Str, Places::REQUEST, BASE, base),
    Fetch::new("base32", NONE, Type::Int, Places::REQUEST, "32-bit hash of host and path.", base32),
    Fetch::new("base32+src", NONE, Type::Bin, Places::REQUEST, "Concatenation of `base32` and the client's address, as bytes.", base32_and_source),
    Fetch::new("baseq", NONE, Type::Str, Places::REQUEST, "Concatenation of host, path and query string.", baseq),
    Fetch::new("method", NONE, Type::Method, Places::TRANSACTION, "Method of the request.", method),
    Fetch::new("path", NONE, Type::Str, Places::REQUEST, "Path of the request's URI, without the query string.", path),
    Fetch::new("pathq", NONE, Type::Str, Places::REQUEST, "Path of the request's URI, with the query string.", pathq),
    Fetch::new("query", OPTIONS, Type::Str, Places::REQUEST, "The query string: what follows the first question mark.", query)
        .checked(check_query),
    Fetch::new("req.ver", NONE, Type::Str, Places::TRANSACTION, VERSION, version),
    Fetch::new("req_ver", NONE, Type::Str, Places::TRANSACTION, VERSION, version),
    Fetch::new("url", NONE, Type::Str, Places::REQUEST, "The request's URI as presented.", url),
    Fetch::new("url32", NONE, Type::Int, Places::REQUEST, "32-bit hash of host, path and query string.", url32),
    Fetch::new("url32+src", NONE, Type::Bin, Places::REQUEST, "Concatenation of `url32` and the client's address, as bytes.", url32_and_source),
    Fetch::new("url_ip", NONE, Type::Ipv4, Places::REQUEST, "IPv4 address of the host in an absolute URI.", url_ip),
    Fetch::new("url_port", NONE, Type::Int, Places::REQUEST, "Port of the host in an absolute URI.", url_port),
];

fn request<'a>(context: &Context<'a>) -> Option<&'a Head> {
    head::<REQUEST>(context)
}

/// The request head, also after the request has been sent.
fn past_request<'a>(context: &Context<'a>) -> Option<&'a Head> {
    context.request_head()
}

fn method<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    past_request(context).map(|head| Value::Method(head.method()))
}

fn version<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    number_of_version(past_request(context)?).map(Value::Str)
}

/// `1.1` of `HTTP/1.1`; `None` for an invalid version.
pub(super) fn number_of_version(head: &Head) -> Option<&[u8]> {
    let number = head.version_text().strip_prefix(b"HTTP/")?;
    let [major, b'.', minor] = number else { return None };
    (major.is_ascii_digit() && minor.is_ascii_digit()).then_some(number)
}

fn url<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    request(context).map(|head| Value::Str(head.target()))
}

/// A target's path and query, whatever precedes them (RFC 9112, section 3.2). `None`: it has none, as `*`. After an
/// authority there may be a query alone, or nothing.
pub(crate) fn path_and_query(target: &[u8]) -> Option<&[u8]> {
    wire::http::target::behind_authority(target).map(|at| &target[at..])
}

fn without_query(path: &[u8]) -> &[u8] {
    &path[..memchr::memchr(b'?', path).unwrap_or(path.len())]
}

fn pathq<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    path_and_query(request(context)?.target()).map(Value::Str)
}

fn path<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    path_and_query(request(context)?.target()).map(|whole| Value::Str(without_query(whole)))
}

fn check_query(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    match arguments.text(0) {
        None | Some(b"" | b"with_qm") => Ok(()),
        Some(_) => Err("supported options are: 'with_qm'".to_owned()),
    }
}

fn query<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let target = request(context)?.target();
    let mark = memchr::memchr(b'?', target)?;
    let keeps_mark = arguments.text(0) == Some(b"with_qm") && mark + 1 < target.len();
    Some(Value::Str(&target[mark + usize::from(!keeps_mark)..]))
}

/// Host and path, with or without the query.
fn identity<'a>(context: &Context<'a>, with_query: bool) -> Option<&'a [u8]> {
    let head = request(context)?;
    // Text after an authority that is not a path is left out.
    let whole = path_and_query(head.target()).filter(|path| path.starts_with(b"/")).unwrap_or_default();
    let path = if with_query { whole } else { without_query(whole) };
    let Some(host) = head.host() else { return Some(path) };
    if path.is_empty() {
        return Some(host);
    }
    let mut text = context.text(host.len() + path.len());
    text.extend(host);
    text.extend(path);
    text.finish()
}

fn base<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    identity(context, false).map(Value::Str)
}

fn baseq<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    identity(context, true).map(Value::Str)
}

fn hash(context: &Context<'_>, with_query: bool) -> Option<u32> {
    identity(context, with_query).map(|text| avalanche(sdbm(text)))
}

fn base32<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    hash(context, false).map(|hash| Value::Int(hash.into()))
}

fn url32<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    hash(context, true).map(|hash| Value::Int(hash.into()))
}

fn base32_and_source<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    with_source(context, hash(context, false)?)
}

fn url32_and_source<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    with_source(context, hash(context, true)?)
}

fn with_source<'a>(context: &Context<'a>, hash: u32) -> Option<Value<'a>> {
    let source = context.probes.source()?;
    let mut block = context.text(20);
    block.extend(&hash.to_be_bytes());
    match source.ip() {
        IpAddr::V4(address) => block.extend(&address.octets()),
        IpAddr::V6(address) => block.extend(&address.octets()),
    }
    block.finish().map(Value::Bin)
}

/// The address and port of a target whose authority begins with an IPv4 address. A port is truncated to 16 bits, as in
/// HAProxy.
fn endpoint(target: &[u8]) -> Option<(Ipv4Addr, u16)> {
    let scheme = memchr::memmem::find(target, b"://").filter(|_| target.first() != Some(&b'/'))?;
    let (address, rest) = ipv4(&target[scheme + 3..])?;
    let usual = if &target[..scheme] == b"https" { 443 } else { 80 };
    Some((address, rest.strip_prefix(b":").map_or(usual, |port| number(port) as u16)))
}

fn url_ip<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    endpoint(request(context)?.target()).map(|(address, _)| Value::Ipv4(address))
}

fn url_port<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    endpoint(request(context)?.target()).map(|(_, port)| Value::Int(port.into()))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn what_the_line_is_made_of() {
        let rows = [
            ("method", "GET"),
            ("req.ver", "1.1"),
            ("req_ver", "1.1"),
            ("url", "/a/b?c=d"),
            ("path", "/a/b"),
            ("pathq", "/a/b?c=d"),
            ("query", "c=d"),
            ("query()", "c=d"),
            ("query(with_qm)", "?c=d"),
            ("query(x)", "!invalid args in fetch method 'query' : supported options are: 'with_qm'"),
            ("base", "A.b:8080/a/b"),
            ("baseq", "A.b:8080/a/b?c=d"),
            ("base32", "4255477253"),
            ("base32+src", "fda56e05c0000201"),
            ("url_ip", "<none>"),
            ("url_port", "<none>"),
        ];
        check_rows(&Scene::request("GET", "/a/b?c=d", &[("Host", "A.b:8080")]), &rows);
        check_rows(&Scene::default(), &[("path", "<incomplete>"), ("base32", "<incomplete>")]);
    }

    #[test]
    fn forms_of_targets() {
        // Target and host; address, port, base, baseq, path, query and the hash of base and query.
        type Row = (&'static str, &'static str, [&'static str; 7]);
        let rows: &[Row] = &[
            ("*", "q", ["<none>", "<none>", "q", "q", "<none>", "<none>", ""]),
            ("http://h/", "h", ["<none>", "<none>", "h/", "h/", "/", "<none>", "1983837113"]),
            (
                "https://1.2.3.4/x",
                "1.2.3.4",
                ["1.2.3.4", "443", "1.2.3.4/x", "1.2.3.4/x", "/x", "<none>", "1127023013"],
            ),
            ("http://[::1]:90/x", "[::1]:90", ["<none>", "<none>", "[::1]:90/x", "[::1]:90/x", "/x", "<none>", ""]),
            ("http://h:81?a=b", "h:81", ["<none>", "<none>", "h:81", "h:81", "", "a=b", ""]),
            ("http://1.2.3.4:99999/", "h", ["1.2.3.4", "34463", "h/", "h/", "/", "<none>", ""]),
            ("ftp://u@1.2.3.4:21/;a=b", "h", ["<none>", "<none>", "h/;a=b", "h/;a=b", "/;a=b", "<none>", ""]),
            ("http://01.2.3.4/", "01.2.3.4", ["1.2.3.4", "80", "01.2.3.4/", "01.2.3.4/", "/", "<none>", "490772666"]),
            ("//a/b?c", "x", ["<none>", "<none>", "x//a/b", "x//a/b?c", "//a/b", "c", "2582275095"]),
            ("/?", "x", ["<none>", "<none>", "x/", "x/?", "/", "", "1509231334"]),
            ("/a?b#c", "h", ["<none>", "<none>", "h/a", "h/a?b#c", "/a", "b#c", "2704567371"]),
            ("/a#b?c", "h", ["<none>", "<none>", "h/a#b", "h/a#b?c", "/a#b", "c", "3800893947"]),
            ("a.b:443", "a.b", ["<none>", "<none>", "a.b", "a.b", "<none>", "<none>", "1647260789"]),
        ];
        for (target, host, expected) in rows {
            let scene = Scene::request("GET", target, &[("host", host)]);
            let names = ["url_ip", "url_port", "base", "baseq", "path", "query", "url32"];
            for (name, expected) in names.into_iter().zip(expected).filter(|row| !row.1.is_empty() || row.0 != "url32")
            {
                assert_eq!(scene.eval(name), *expected, "{name} of {target}");
            }
        }
    }

    #[test]
    fn requests_without_a_host() {
        let rows = [("base", "/a"), ("baseq", "/a?x"), ("base32", "1743195586"), ("url32", "3215883498")];
        check_rows(&Scene::request("GET", "/a?x", &[]), &rows);
        check_rows(&Scene::request("GET", "/a?x", &[]), &[("url32+src", "bfae7ceac0000201")]);
    }

    #[test]
    fn bytes_and_answers_are_no_request() {
        check_rows(&Scene::bytes(b"x"), &[("path", "<none>")]);
        check_rows(
            &Scene::response(404, &[("a", "b")]),
            &[("method", "GET"), ("req.ver", "1.1"), ("path", "<none>"), ("base32", "<none>")],
        );
    }
}
