//! Any text as a sample expression, over any bytes: no panic, bounded messages, results no longer than a buffer, and
//! the same result each time.
//!
//! The first byte selects the evaluation place; the expression ends at a byte 0xFF, and the bytes that it is evaluated
//! over follow.


use expression::Expression;
use expression::sample::{EvalPlace, Value};
use crate::evaluation::{FewNames, LIMIT, with_context};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [place, rest @ ..] = data else { return };
    let mut halves = rest.splitn(2, |byte| *byte == 0xFF);
    let text = config::text::from_bytes(halves.next().unwrap_or_default());
    let input = halves.next().unwrap_or_default();
    let place = EvalPlace::ALL[usize::from(*place) % EvalPlace::ALL.len()];
    let expression = match Expression::parse_all(&text, place, &FewNames) {
        Ok(expression) => expression,
        Err(error) => {
            assert!(error.at.start <= error.at.end && error.at.end <= text.len(), "{error:?}");
            assert!(error.message.len() < text.len() * 8 + 4_096, "{error:?}");
            return;
        }
    };
    let [first, again] = [0, 1].map(|_| with_context(input, |context| expression.evaluate(context).map(written)));
    // Expressions with counters or stored state differ between evaluations.
    if !["rand", "uuid", "set-var", "bytes"].iter().any(|name| text.contains(name)) {
        assert_eq!(first, again, "{text}");
    }
    with_context(input, |context| {
        let mut left = 10_000;
        expression.each(context, |value| {
            assert!(value.bytes().is_none_or(|bytes| bytes.len() <= LIMIT.max(input.len()).max(text.len())), "{text}");
            let _ = context.as_text(value);
            left -= 1;
            left == 0
        });
    });
}

fn written(value: Value<'_>) -> String {
    format!("{value:?}")
}
