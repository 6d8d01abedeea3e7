//! Maps (section 7.3.1, `map`): the value of a key in a map file. Must never read the file once requests are served.

use super::Converter;
use crate::pattern::{Content, Lookup, Method, Places, Steps, Use};
use crate::sample::{Context, Meter, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use config::text::from_bytes;
use std::net::IpAddr;
use std::sync::Arc;

const TEXT: Signature = Signature::new(1, &[Kind::Str, Kind::Str]);
const NUMBER: Signature = Signature::new(1, &[Kind::Str, Kind::Int]);
const KEY: Signature = Signature::new(1, &[Kind::Str]);

/// The output of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// The value as text.
    Str,
    /// The value as an integer.
    Int,
    /// The value as an address.
    Ip,
    /// The key as written in the file.
    Key,
    /// The value with the groups of the regular expression substituted.
    Groups,
}

/// The four converters of a matching method, with the suffixes none, `_int`, `_ip` and `_key`.
macro_rules! rows {
    ($text:literal, $int:literal, $ip:literal, $key:literal, $input:ident, $method:ident) => {
        [
            row($text, TEXT, Type::$input, Type::Str, |a, c| load(a, c, Method::$method, Output::Str)),
            row($int, NUMBER, Type::$input, Type::Int, |a, c| load(a, c, Method::$method, Output::Int)),
            row($ip, TEXT, Type::$input, Type::Addr, |a, c| load(a, c, Method::$method, Output::Ip)),
            row($key, KEY, Type::$input, Type::Str, |a, c| load(a, c, Method::$method, Output::Key)),
        ]
    };
}

const fn row(
    name: &'static str,
    signature: Signature,
    input: Type,
    output: Type,
    check: fn(&mut Arguments, &Checking<'_>) -> Result<(), String>,
) -> Converter {
    Converter::new(name, signature, input, output, "Value found in a map for the sample, or the default.", map)
        .checked(check)
}

/// `map`, and `map_regm`, which has no variants.
pub const TABLE: &[Converter] = &[
    row("map", TEXT, Type::Str, Type::Str, |a, c| load(a, c, Method::Str, Output::Str)),
    row("map_regm", TEXT, Type::Str, Type::Str, |a, c| load(a, c, Method::Reg, Output::Groups)),
];

/// `map_str` and its variants.
pub const STR: &[Converter] = &rows!("map_str", "map_str_int", "map_str_ip", "map_str_key", Str, Str);
/// `map_beg` and its variants.
pub const BEG: &[Converter] = &rows!("map_beg", "map_beg_int", "map_beg_ip", "map_beg_key", Str, Beg);
/// `map_sub` and its variants.
pub const SUB: &[Converter] = &rows!("map_sub", "map_sub_int", "map_sub_ip", "map_sub_key", Str, Sub);
/// `map_dir` and its variants.
pub const DIR: &[Converter] = &rows!("map_dir", "map_dir_int", "map_dir_ip", "map_dir_key", Str, Dir);
/// `map_dom` and its variants.
pub const DOM: &[Converter] = &rows!("map_dom", "map_dom_int", "map_dom_ip", "map_dom_key", Str, Dom);
/// `map_end` and its variants.
pub const END: &[Converter] = &rows!("map_end", "map_end_int", "map_end_ip", "map_end_key", Str, End);
/// `map_reg` and its variants.
pub const REG: &[Converter] = &rows!("map_reg", "map_reg_int", "map_reg_ip", "map_reg_key", Str, Reg);
/// `map_int` and its variants.
pub const INT: &[Converter] = &rows!("map_int", "map_int_int", "map_int_ip", "map_int_key", Int, Int);
/// `map_ip` and its variants.
pub const IP: &[Converter] = &rows!("map_ip", "map_ip_int", "map_ip_ip", "map_ip_key", Addr, Ip);

/// A loaded map and the output of its lookups.
#[derive(PartialEq)]
struct Map {
    lookup: Lookup,
    output: Output,
}

/// Loads the map that the first argument names, and parses the default value after it.
fn load(arguments: &mut Arguments, checking: &Checking<'_>, method: Method, output: Output) -> Result<(), String> {
    let name = from_bytes(arguments.text(0).unwrap_or_default());
    let content = match output {
        Output::Int => Content::Integer,
        Output::Ip => Content::Address,
        Output::Str | Output::Key => Content::Text,
        Output::Groups => Content::Groups,
    };
    let lookup = checking.names.list(&name, Use::Map, method, false, content)?;
    if output == Output::Ip
        && let Some(text) = arguments.utf8(1)
    {
        let default = text.parse().map_err(|_| format!("cannot parse default <{text}> as an address"))?;
        arguments.set(1, address(default));
    }
    arguments.set(0, Argument::Found(Arc::new(Map { lookup, output })));
    Ok(())
}

fn address(address: IpAddr) -> Argument {
    match address {
        IpAddr::V4(address) => Argument::Ipv4(address),
        IpAddr::V6(address) => Argument::Ipv6(address),
    }
}

fn map<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let map: &Map = arguments.made(0)?;
    if map.lookup.base.set.method() == Method::Reg && !context.spend(Meter::search(value.size())) {
        return None;
    }
    if let Output::Groups = map.output {
        return match groups(context, map, value) {
            Some(made) => made.map(Value::Str),
            None => default(arguments),
        };
    }
    let Some(found) = map.lookup.find(context, value) else { return default(arguments) };
    match map.output {
        Output::Str => Some(Value::Str(found.value)),
        Output::Key => Some(Value::Str(found.key)),
        Output::Int | Output::Ip => map.lookup.base.content.parse(found.value).ok(),
        // Handled above.
        Output::Groups => None,
    }
}

/// Returns the value with the groups of the match substituted. Outer `None`: no entry matches.
fn groups<'a>(context: &Context<'a>, map: &'a Map, value: Value<'a>) -> Option<Option<&'a [u8]>> {
    map.lookup.with_regex(context, value, |found, regex, text| {
        let mut out = context.text(found.value.len());
        let (mut places, steps) = (Places::default(), Steps::for_text(text.len()));
        let mut search = context.bounded(regex.search(&mut places, text, &steps, true).map(Some))?;
        context.bounded(search.next(0))?;
        crate::pattern::expand(&search, text, found.value, &mut |bytes| out.extend(bytes));
        out.finish()
    })
}

/// Returns the default value: the argument after the map's name.
fn default(arguments: &Arguments) -> Option<Value<'_>> {
    match arguments.get(1) {
        Argument::Str(text) => Some(Value::Str(text)),
        Argument::Int(number) => Some(Value::Int(*number)),
        Argument::Ipv4(address) => Some(Value::Ipv4(*address)),
        Argument::Ipv6(address) => Some(Value::Ipv6(*address)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn every_method_and_output() {
        check_rows(
            &Scene::default(),
            &[
                ("str(a),map(m.map)", "first"),
                ("str(z),map(m.map)", "<none>"),
                ("str(z),map(m.map,none)", "none"),
                ("str(/a/b/c),map_beg(m.map)", "longest"),
                ("str(/a/b/c),map_beg_key(m.map)", "/a/b"),
                ("str(x.gif),map_end(m.map)", "picture"),
                ("str(x/dir/y),map_dir(m.map)", "directory"),
                ("str(www.dom.org),map_dom(m.map)", "domain"),
                ("str(xxsubxx),map_sub(m.map)", "part"),
                ("str(12),map_str_int(n.map)", "144"),
                ("str(13),map_str_int(n.map,7)", "7"),
                ("int(12),map_int(n.map)", "144"),
                ("int(12),map_int_int(n.map),map_int_key(n.map)", "144"),
                ("ipv4(10.1.2.3),map_ip(i.map)", "192.0.2.2"),
                ("ipv4(10.9.2.3),map_ip_ip(i.map)", "192.0.2.1"),
                ("ipv4(11.9.2.3),map_ip_ip(i.map,::1)", "::1"),
                ("str(host-42),map_reg(r.map)", "n\\1"),
                ("str(host-42),map_regm(r.map)", "n42"),
                (
                    "str(a),map_str_int(m.map)",
                    "!invalid args in converter 'map_str_int' : cannot parse 'first' as an integer at line 1 of file 'm.map'",
                ),
                ("str(a),map(nope.map)", "!invalid args in converter 'map' : failed to open pattern file <nope.map>"),
                ("str(a),map(opt@nope.map,x)", "x"),
                ("str(a),map(virt@nope.map,x)", "x"),
            ],
        );
    }
}
