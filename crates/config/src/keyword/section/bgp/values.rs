//! Numbers, times and communities as written. Must never report an error.

use crate::units;

/// An error and what is allowed instead.
pub(super) type Fault = (String, String);

/// Parses the number of an AS, also in the form of two numbers (RFC 5396); 0 and the last one are reserved.
pub(super) fn as_number(text: &str) -> Option<u32> {
    let number = match text.split_once('.') {
        Some((high, low)) => u32::from(digits::<u16>(high)?) << 16 | u32::from(digits::<u16>(low)?),
        None => digits(text)?,
    };
    (1..u32::MAX).contains(&number).then_some(number)
}

/// Parses a number that consists of digits only.
pub(super) fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    let are_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| are_digits)
}

/// Parses a hold time in whole seconds; a number without a unit is in milliseconds, as everywhere.
pub(super) fn hold_time(text: &str) -> Option<u16> {
    let millis = units::milliseconds(text).ok()?.value;
    let seconds = u16::try_from(millis / 1_000).ok()?;
    (millis % 1_000 == 0 && seconds >= 3).then_some(seconds)
}

/// Parses a community: two numbers, or a well-known name (RFC 1997, RFC 7999, RFC 8326).
pub(super) fn community(text: &str) -> Option<u32> {
    Some(match text {
        "graceful-shutdown" => 0xffff_0000,
        "blackhole" => 0xffff_029a,
        "no-export" => 0xffff_ff01,
        "no-advertise" => 0xffff_ff02,
        "no-export-subconfed" => 0xffff_ff03,
        _ => {
            let (high, low) = text.split_once(':')?;
            u32::from(digits::<u16>(high)?) << 16 | u32::from(digits::<u16>(low)?)
        }
    })
}
