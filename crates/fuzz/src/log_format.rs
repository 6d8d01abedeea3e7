//! Any text as a log format, over any request: no panic, and its error messages are bounded.
//!
//! The first byte selects the purpose; the format ends at a byte 0xFF, and the bytes of a request follow.


use expression::log_format::{LogFormat, Purpose};
use expression::record::Record;
use expression::sample::EvalPlace;
use crate::evaluation::{FewNames, with_context};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [choice, rest @ ..] = data else { return };
    let mut halves = rest.splitn(2, |byte| *byte == 0xFF);
    let text = config::text::from_bytes(halves.next().unwrap_or_default());
    let input = halves.next().unwrap_or_default();
    let purpose = if choice & 2 == 0 { Purpose::Head } else { Purpose::Text };
    let format = match choice & 1 {
        0 => LogFormat::for_log(&text, &FewNames),
        _ => LogFormat::for_rule(&text, purpose, EvalPlace::FrontRequestHead, &FewNames),
    };
    let format = match format {
        Ok(format) => format,
        Err(error) => {
            assert!(error.to_string().len() < text.len() * 8 + 4_096, "{error}");
            return;
        }
    };
    let record =
        Record { method: b"GET", target: input, frontend: "f", backend: "b", server: "s", ..Record::default() };
    with_context(input, |context| {
        let (mut out, mut again) = (Vec::new(), Vec::new());
        format.render_with(&record, Some(context), &mut out);
        format.render_with(&record, Some(context), &mut again);
        if !["rand", "uuid", "set-var", "bytes"].iter().any(|name| text.contains(name)) {
            assert_eq!(out, again, "{text}");
        }
        if let Some(constant) = format.constant() {
            assert_eq!(out, constant, "{text}");
        }
    });
}
