//! `option quic-passthrough` of `udp-lb` sections. Must never know a datagram.

use super::report::Report;
use crate::document::Line;
use crate::span::Spanned;
use crate::spec::{QuicPassthroughSpec, ServerIdPlace};

/// Maximum length of a connection ID in bytes (RFC 9000, section 17.2).
const LONGEST_ID: u8 = 20;
/// Maximum length of a server's `id` in bytes.
const LONGEST_SERVER_ID: u8 = 4;

/// Parses the line. `None`: it is wrong, which was reported.
pub(super) fn passthrough(report: &mut Report<'_>, line: &Line) -> Option<Spanned<QuicPassthroughSpec>> {
    let name = "option quic-passthrough";
    if report.too_many(line, 4, name) {
        return None;
    }
    let server_id = match line.text(2) {
        "" => None,
        "server-id" => match place(line.text(3)) {
            Some(place) => Some(place),
            None => {
                let message = format!(
                    "'{name} server-id' expects <offset>,<length>: 1 to {LONGEST_SERVER_ID} bytes within the {LONGEST_ID} of a \
                     connection ID (got '{}').",
                    line.text(3)
                );
                report.alert(line.span(3), message);
                return None;
            }
        },
        other => {
            let message = format!("'{name}' expects 'server-id <offset>,<length>' or nothing (got '{other}').");
            report.alert(line.span(2), message);
            return None;
        }
    };
    Some(Spanned::new(QuicPassthroughSpec { server_id }, line.span(1)))
}

/// Parses an offset and a length.
fn place(text: &str) -> Option<ServerIdPlace> {
    let (offset, length) = text.split_once(',')?;
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u8>().ok()).flatten();
    let (offset, length) = (number(offset)?, number(length)?);
    let fits = (1..=LONGEST_SERVER_ID).contains(&length) && offset.checked_add(length)? <= LONGEST_ID;
    fits.then_some(ServerIdPlace { offset, length })
}
