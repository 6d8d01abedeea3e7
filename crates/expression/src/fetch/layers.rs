//! Fetches of the state of a connection, layer by layer, as one text for debugging (section 7.3.5). Must never be
//! parsed by a program: the contents may change.

use super::Fetch;
use crate::sample::{Context, Places, Text, Transport, Type, Value};
use crate::{Arguments, Kind, Signature};
use std::fmt::Write as _;

const CLIENT: Places = Places::of(".YYYYYYYYYYYYYYYYYY...");
const SERVER: Places = Places::SERVER_LAYER5;
const LAYERS: Signature = Signature::new(0, &[Kind::Int]);

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    Fetch::new(
        "bs.debug_str",
        LAYERS,
        Type::Str,
        SERVER,
        "Internal state of the server's side, for debugging; a sum of layers: 1 stream, 2 HTTP, 8 connection, 16 socket; 0: all.",
        server,
    )
    .needing("server-side connection")
    .of_kernel(),
    Fetch::new(
        "fs.debug_str",
        LAYERS,
        Type::Str,
        CLIENT,
        "Internal state of the client's side, for debugging; a sum of layers: 1 stream, 2 HTTP, 8 connection, 16 socket; 0: all.",
        client,
    )
    .of_kernel(),
];

/// The stream itself.
const STREAM: i64 = 1;
/// The HTTP layer of the connection.
const PROTOCOL: i64 = 2;
/// The connection. Layer 4, TLS, has no output: nothing is encrypted.
const CONNECTION: i64 = 8;
/// The kernel's state of the socket.
const SOCKET: i64 = 16;

/// Approximate length of the text in bytes.
const USUAL: usize = 256;

fn wants(arguments: &Arguments) -> impl Fn(i64) -> bool {
    let wanted = arguments.int(0).filter(|wanted| *wanted != 0).unwrap_or(-1);
    move |layer| wanted & layer != 0
}

fn client<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (stream, wants) = (context.probes.stream()?, wants(arguments));
    let mut text = context.text(USUAL);
    if wants(STREAM) {
        let [cause, phase] = stream.termination.map(char::from);
        write!(
            text,
            " strm.id={} .nb={} .state={cause}{phase} .in={} .out={} .retries={}",
            stream.client_streams, stream.number, stream.bytes_in, stream.bytes_out, stream.retries
        )
        .ok()?;
    }
    if wants(PROTOCOL) {
        let status = context.transaction.status.unwrap_or(0);
        let begun = u8::from(context.request.is_some());
        write!(text, " h1c.streams={} .req={begun} .status={status}", stream.client_streams.saturating_add(1)).ok()?;
    }
    if wants(CONNECTION) {
        let ends = [
            ("src", Transport::ClientAddress, Transport::ClientPort),
            ("dst", Transport::ClientDestination, Transport::ClientDestinationPort),
        ];
        connection(context, &mut text, ends)?;
    }
    if wants(SOCKET) {
        let facts = [
            ("rtt", Transport::ClientRtt),
            ("rttvar", Transport::ClientRttVariance),
            ("unacked", Transport::ClientUnacked),
            ("sacked", Transport::ClientSacked),
            ("lost", Transport::ClientLost),
            ("retrans", Transport::ClientRetransmits),
            ("reordering", Transport::ClientReordering),
        ];
        socket(context, &mut text, &facts)?;
    }
    text.finish().map(Value::Str)
}

fn server<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (stream, wants) = (context.probes.stream()?, wants(arguments));
    let link = stream.link?;
    let mut text = context.text(USUAL);
    if wants(STREAM) {
        let (sent, received) = (stream.sent, stream.received);
        write!(text, " strm.id={} .sent={sent} .received={received}", link.answers).ok()?;
    }
    if wants(PROTOCOL) {
        let status = context.transaction.server_status.unwrap_or(0);
        write!(text, " h1c.streams={} .status={status}", link.answers.saturating_add(1)).ok()?;
    }
    if wants(CONNECTION) {
        let ends = [
            ("src", Transport::ServerSource, Transport::ServerSourcePort),
            ("dst", Transport::ServerAddress, Transport::ServerPort),
        ];
        connection(context, &mut text, ends)?;
        let (number, name) = (link.error.number(), link.error.name());
        write!(text, " .err_code={number}{}{name}", if name.is_empty() { "" } else { " .err=" }).ok()?;
    }
    if wants(SOCKET) {
        let facts = [("rtt", Transport::ServerRtt), ("rttvar", Transport::ServerRttVariance)];
        socket(context, &mut text, &facts)?;
    }
    text.finish().map(Value::Str)
}

/// Both ends of a connection, as far as known.
fn connection(context: &Context<'_>, text: &mut Text<'_>, ends: [(&str, Transport, Transport); 2]) -> Option<()> {
    text.write_str(" conn").ok()?;
    let mut space = "";
    for (name, address, port) in ends {
        let Some(address) = context.probes.transport(address).and_then(|value| context.as_text(value)) else {
            continue;
        };
        let port = context.probes.transport(port).and_then(|value| value.integer()).unwrap_or(0);
        write!(text, "{space}.{name}={}:{port}", String::from_utf8_lossy(address)).ok()?;
        space = " ";
    }
    Some(())
}

fn socket(context: &Context<'_>, text: &mut Text<'_>, facts: &[(&str, Transport)]) -> Option<()> {
    text.write_str(" sock").ok()?;
    let mut space = "";
    for (name, fact) in facts {
        let Some(number) = context.probes.transport(*fact).and_then(|value| value.integer()) else { continue };
        write!(text, "{space}.{name}={number}").ok()?;
        space = " ";
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn layers_are_chosen_by_their_bits() {
        let rows = [
            ("fs.debug_str(1)", " strm.id=3 .nb=9 .state=SD .in=11 .out=22 .retries=2"),
            ("fs.debug_str(2)", " h1c.streams=4 .req=1 .status=0"),
            ("fs.debug_str(4)", ""),
            ("fs.debug_str(8)", " conn.src=192.0.2.77:7777"),
            ("fs.debug_str(16)", " sock.rtt=1500"),
            ("fs.debug_str(24)", " conn.src=192.0.2.77:7777 sock.rtt=1500"),
            ("fs.debug_str,length", "122"),
            ("bs.debug_str(1)", " strm.id=1 .sent=33 .received=44"),
            ("bs.debug_str(8)", " conn .err_code=0"),
            ("bs.debug_str(0),field(2, )", "strm.id=1"),
        ];
        check_rows(&Scene::response(200, &[]), &rows);
    }
}
