//! `debug`: writes a sample to an event sink (section 7.3.1). Must never change it.

use super::Converter;
use crate::sample::{Context, Sink, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use std::sync::Arc;

/// Every converter of the family.
pub const TABLE: &[Converter] = &[Converter::new(
    "debug",
    Signature::new(0, &[Kind::Str, Kind::Str]),
    Type::Any,
    Type::Any,
    "Returns the sample unchanged and writes it to an event sink: buf0, stdout, stderr or a ring.",
    debug,
)
.checked(check)];

/// The default sink.
const USUAL: &str = "buf0";

fn check(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    let name = arguments.utf8(1).filter(|name| !name.is_empty()).unwrap_or(USUAL);
    // A missing sink is reported after the configuration has been read.
    let sink = checking.names.sink(name);
    arguments.set(1, Argument::Made(Arc::new(sink)));
    Ok(())
}

/// HAProxy's name of a value's type.
const fn type_name(value: &Value<'_>) -> &'static [u8] {
    match value {
        Value::Bool(_) => b"bool",
        Value::Int(_) => b"sint",
        Value::Ipv4(_) => b"ipv4",
        Value::Ipv6(_) => b"ipv6",
        Value::Str(_) => b"str",
        Value::Bin(_) => b"bin",
        Value::Method(_) => b"meth",
    }
}

fn debug<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let Some(sink) = arguments.made::<Option<Sink>>(1).copied().flatten() else { return Some(value) };
    let shown = context.as_text(value).unwrap_or_default();
    let mut line = context.text(shown.len() + 64);
    line.extend(b"[debug] ");
    line.extend(arguments.text(0).unwrap_or_default());
    line.extend(b": type=");
    line.extend(type_name(&value));
    line.extend(b" <");
    for byte in shown {
        line.push(if byte.is_ascii_graphic() || *byte == b' ' { *byte } else { b'.' });
    }
    line.push(b'>');
    context.probes.tell(sink, line.bytes());
    Some(value)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows, told};

    #[test]
    fn samples_pass_and_are_told() {
        let scene = Scene::request("GET", "/", &[("h", "a\tb\u{e4}\"")]);
        let rows = [
            ("str(a),debug", "a"),
            ("int(-5),debug(pre)", "-5"),
            ("req.hdr(h),debug(h,stderr),length", "6"),
            ("bool(true),debug(b,stdout)", "1"),
            ("method,debug(m,r1)", "GET"),
            ("src,debug()", "192.0.2.1"),
            ("req.hdr(none),debug(none)", "<none>"),
            ("str(a),debug(a,b,c)", "!invalid arg 2 in converter 'debug' : expected ')' before ',c)'"),
        ];
        check_rows(&scene, &rows);
        // Every expression is evaluated twice.
        let mut told = told();
        told.dedup();
        assert_eq!(
            told,
            [
                "buf0 [debug] : type=str <a>",
                "buf0 [debug] pre: type=sint <-5>",
                "stderr [debug] h: type=str <a.b..\">",
                "stdout [debug] b: type=bool <1>",
                "ring [debug] m: type=meth <GET>",
                "buf0 [debug] : type=ipv4 <192.0.2.1>",
            ]
        );
    }
}
