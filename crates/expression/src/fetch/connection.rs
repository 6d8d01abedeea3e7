//! Fetches of the client's connection: its addresses as seen by rules (section 7.3.3).

use super::Fetch;
use crate::sample::{Context, Places, Type, Value};
use crate::{Arguments, Signature};

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    Fetch::new(
        "dst",
        Signature::NONE,
        Type::Addr,
        Places::CLIENT,
        "Destination address of the client's connection.",
        dst,
    ),
    Fetch::new(
        "dst_port",
        Signature::NONE,
        Type::Int,
        Places::CLIENT,
        "Destination port of the client's connection.",
        dst_port,
    ),
    Fetch::new("src", Signature::NONE, Type::Addr, Places::CLIENT, "The client's address.", src),
    Fetch::new("src_port", Signature::NONE, Type::Int, Places::CLIENT, "The client's port.", src_port),
];

fn src<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    context.probes.source().map(|address| address.ip().into())
}

fn src_port<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    port(context.probes.source())
}

fn dst<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    context.probes.destination().map(|address| address.ip().into())
}

fn dst_port<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    port(context.probes.destination())
}

/// A port; 0, which a PROXY header may announce, counts as none.
fn port<'a>(address: Option<std::net::SocketAddr>) -> Option<Value<'a>> {
    address.map(|address| address.port()).filter(|port| *port != 0).map(|port| Value::Int(port.into()))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn both_ends() {
        let rows = [("src", "192.0.2.1"), ("src_port", "1000"), ("dst", "203.0.113.9"), ("dst_port", "80")];
        check_rows(&Scene::default(), &rows);
    }
}
