//! Every converter with any arguments, on a sample of any type: no panic, and no result longer than a buffer.
//!
//! Two bytes select the converter, one the type; the arguments end at a byte 0xFF, and the sample follows.


use policy::running::CONVERTERS as ROWS;
use expression::Conversion;
use expression::sample::{EvalPlace, Value};
use crate::evaluation::{FewNames, LIMIT, with_context};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [high, low, kind, rest @ ..] = data else { return };
    let rows = ROWS.all().count();
    let Some(row) = ROWS.all().nth(usize::from(u16::from_be_bytes([*high, *low])) % rows) else { return };
    let mut halves = rest.splitn(2, |byte| *byte == 0xFF);
    let arguments = config::text::from_bytes(halves.next().unwrap_or_default());
    let input = halves.next().unwrap_or_default();
    let number = input.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let value = match kind % 6 {
        0 => Value::Bool(number & 1 == 1),
        1 => Value::Int(number as i64),
        2 => Value::Ipv4(std::net::Ipv4Addr::from(number as u32)),
        3 => Value::Ipv6(std::net::Ipv6Addr::from(u128::from(number) << 64 | u128::from(number))),
        4 => Value::Str(input),
        _ => Value::Bin(input),
    };
    let text = if arguments.is_empty() { row.name.to_string() } else { format!("{}({arguments})", row.name) };
    let Ok(conversion) = Conversion::parse(&text, value.kind(), EvalPlace::FrontRequestHead, &FewNames) else { return };
    with_context(b"GET /a?b=c HTTP/1.1\r\nhost: d\r\n\r\n", |context| {
        let Some(result) = conversion.convert(context, value) else { return };
        if let Some(bytes) = result.bytes() {
            assert!(bytes.len() <= LIMIT.max(input.len()).max(text.len()), "{text}: {} bytes", bytes.len());
        }
        let _ = context.as_text(result);
    });
}
