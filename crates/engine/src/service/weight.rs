//! Weights that commands set on servers (management manual, "set weight"; configuration manual, "agent-check"). Must never choose
//! a server.

use policy::program::{Proxy, Server};

use super::transitions::{self, Cause, Orderer};
use crate::worker::Worker;

/// Parses a weight: a number, or a percentage of the configured one.
///
/// # Errors
/// The reason, in HAProxy's words.
pub fn parse(written: &str, initial: u32) -> Result<u32, &'static str> {
    const MOST: u64 = 256;
    if written.is_empty() {
        return Err("Require <weight> or <weight%>.");
    }
    let (negative, unsigned) = match written.as_bytes()[0] {
        b'-' => (true, &written[1..]),
        b'+' => (false, &written[1..]),
        _ => (false, written),
    };
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err("Empty weight string empty or preceded by garbage");
    }
    let number: u64 = unsigned[..digits].parse().unwrap_or(u64::MAX);
    match &unsigned[digits..] {
        "%" if negative && number > 0 => Err("Relative weight must be positive."),
        "" if negative && number > 0 => Err("Absolute weight can only be between 0 and 256 inclusive."),
        "%" => Ok((u64::from(initial).saturating_mul(number) / 100).min(MOST) as u32),
        "" if number <= MOST => Ok(number as u32),
        "" => Err("Absolute weight can only be between 0 and 256 inclusive."),
        _ => Err("Trailing garbage in weight string"),
    }
}

/// Sets the weight of a server; logs it if no server is left.
pub fn set(worker: &Worker, proxy: &Proxy, server: &Server, weight: u32, orderer: Orderer) {
    let changes = |state: &live::ProxyState| {
        let before = state.status(server.index).filter(|status| status.weight != weight)?;
        state.set_weight(server.index, weight);
        state.status(server.index).map(|after| live::Transition { before, after })
    };
    transitions::change(worker, proxy, server, changes, Cause::Order(orderer));
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn weights_are_numbers_or_percents() {
        let rows: &[(&str, u32, Result<u32, &str>)] = &[
            ("5", 1, Ok(5)),
            ("0", 1, Ok(0)),
            ("256", 1, Ok(256)),
            ("50%", 10, Ok(5)),
            ("50%", 1, Ok(0)),
            ("101%", 1, Ok(1)),
            ("99999%", 100, Ok(256)),
            ("257", 1, Err("Absolute weight can only be between 0 and 256 inclusive.")),
            ("", 1, Err("Require <weight> or <weight%>.")),
            ("x", 1, Err("Empty weight string empty or preceded by garbage")),
            ("-1", 1, Err("Absolute weight can only be between 0 and 256 inclusive.")),
            ("-5%", 1, Err("Relative weight must be positive.")),
            ("-", 1, Err("Empty weight string empty or preceded by garbage")),
            ("+5", 1, Ok(5)),
            ("99999999999999999999999", 1, Err("Absolute weight can only be between 0 and 256 inclusive.")),
            ("5x", 1, Err("Trailing garbage in weight string")),
        ];
        for (written, initial, expected) in rows {
            assert_eq!(parse(written, *initial), *expected, "{written}");
        }
    }
}
