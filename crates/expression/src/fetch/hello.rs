//! Fetches of a TLS hello that is passed through (section 7.3.5). Must never take part in the handshake.

use super::{Fetch, SampleOf, plain};
use crate::Arguments;
use crate::sample::{Context, MissingInput, Places, Type, Value};
use wire::client_hello::{ClientHello, Hello, Message, Recognition, extension, message, sslv2};

const REQUEST: Places = Places::REQUEST;

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    plain("rep_ssl_hello_type", Type::Int, Places::RESPONSE, "Alias of `res.ssl_hello_type`.", hello_type),
    of_client("req.ssl_alpn", Type::Str, "First protocol that the client offers by ALPN.", |context, _| {
        client(context)?.protocols().next().map(Value::Str)
    }),
    wide("req.ssl_cipherlist", "Cipher suites that the client offers.", |context, _| {
        Some(Value::Bin(client(context)?.ciphers))
    }),
    of_client(
        "req.ssl_ec_ext",
        Type::Bool,
        "Whether the client sends the supported groups extension.",
        |context, _| client(context)?.extension(extension::SUPPORTED_GROUPS).map(|_| Value::Bool(true)),
    ),
    of_client("req.ssl_hello_type", Type::Int, "Type of the TLS hello: 1 for a client's.", hello_type),
    wide("req.ssl_keyshare_groups", "Groups of the client's key shares.", |context, _| {
        let client = client(context)?;
        let mut groups = context.text(16);
        client.key_share_groups().for_each(|group| groups.extend(&group));
        groups.finish().filter(|groups| !groups.is_empty()).map(Value::Bin)
    }),
    wide("req.ssl_sigalgs", "Signature algorithms that the client offers.", |context, _| {
        client(context)?.numbers(extension::SIGNATURE_ALGORITHMS).map(Value::Bin)
    }),
    of_client("req.ssl_sni", Type::Str, "Server name that the client sends (SNI).", server_name),
    of_client(
        "req.ssl_st_ext",
        Type::Int,
        "Session ticket extension of the client: 0 absent, 1 empty, 2 with a ticket.",
        ticket,
    ),
    wide("req.ssl_supported_groups", "Groups that the client supports.", |context, _| {
        client(context)?.numbers(extension::SUPPORTED_GROUPS).map(Value::Bin)
    }),
    of_client(
        "req.ssl_ver",
        Type::Int,
        "Version of the client's hello: the major number times 65536, plus the minor number.",
        version,
    ),
    of_client("req_ssl_hello_type", Type::Int, "Alias of `req.ssl_hello_type`.", hello_type),
    of_client("req_ssl_sni", Type::Str, "Alias of `req.ssl_sni`.", server_name),
    of_client("req_ssl_ver", Type::Int, "Alias of `req.ssl_ver`.", version),
    plain("res.ssl_hello_type", Type::Int, Places::RESPONSE, "Type of the TLS hello: 2 for a server's.", hello_type),
];

const fn of_client(name: &'static str, output: Type, doc: &'static str, eval: SampleOf) -> Fetch {
    plain(name, output, REQUEST, doc, eval)
}

/// HAProxy makes these available at all places of the client's connection.
const fn wide(name: &'static str, doc: &'static str, eval: SampleOf) -> Fetch {
    plain(name, Type::Bin, Places::CLIENT, doc, eval)
}

/// The first message; one that spans several records is copied to the arena.
fn first<'a>(context: &Context<'a>) -> Option<Hello<'a>> {
    match message(context.bytes.data) {
        Recognition::Whole(found) if context.request.is_none() => match found {
            Message::Contiguous(message) => Hello::of(message),
            Message::Fragmented(fragments) => {
                let mut message = context.text(fragments.length());
                fragments.pieces().for_each(|piece| message.extend(piece));
                Hello::of(message.finish()?)
            }
        },
        Recognition::Part => context.missing(MissingInput::Bytes),
        _ => None,
    }
}

pub(super) fn client<'a>(context: &Context<'a>) -> Option<ClientHello<'a>> {
    first(context)?.client()
}

fn hello_type<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Int(first(context)?.kind.into()))
}

fn version<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let data = context.bytes.data;
    let (major, minor) = match sslv2(data) {
        Recognition::Whole(version) if context.request.is_none() => version,
        Recognition::Part if !data.is_empty() => return context.missing(MissingInput::Bytes),
        _ => match wire::client_hello::version(data) {
            Recognition::Whole(version) if context.request.is_none() => version,
            Recognition::Part => return context.missing(MissingInput::Bytes),
            _ => return None,
        },
    };
    Some(Value::Int(i64::from(major) << 16 | i64::from(minor)))
}

fn server_name<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    client(context)?.server_name().map(Value::Str)
}

fn ticket<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let client = client(context)?;
    let state = match client.extension(extension::SESSION_TICKET) {
        None if !client.has_extensions() => return None,
        None => 0,
        Some([]) => 1,
        Some(_) => 2,
    };
    Some(Value::Int(state))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    /// A hello with that list of extensions.
    fn hello(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([2, 1, 2, 0, 4, 0x13, 1, 0xc0, 0x2f, 1, 0]);
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let mut data = vec![0x16, 3, 1, 0, body.len() as u8 + 4, 1, 0, 0, body.len() as u8];
        data.extend(body);
        data
    }

    const EXTENSIONS: &[u8] = b"\0\0\0\x08\0\x06\0\0\x03A.b\0\x10\0\x05\0\x03\x02h2\0\x0a\0\x04\0\x02\0\x1d\
        \0\x33\0\x08\0\x06\0\x1d\0\x02xy\0\x23\0\x01t\0\x0d\0\x04\0\x02\x04\x03";

    #[test]
    fn a_clients_hello() {
        let rows = [
            ("req.ssl_hello_type", "1"),
            ("req_ssl_hello_type", "1"),
            ("req.ssl_ver", "196611"),
            ("req_ssl_ver", "196611"),
            ("req.ssl_sni", "A.b"),
            ("req_ssl_sni,lower", "a.b"),
            ("req.ssl_alpn", "h2"),
            ("req.ssl_ec_ext", "1"),
            ("req.ssl_st_ext", "2"),
            ("req.ssl_cipherlist", "1301c02f"),
            ("req.ssl_sigalgs", "0403"),
            ("req.ssl_supported_groups", "001d"),
            ("req.ssl_keyshare_groups", "001d"),
        ];
        check_rows(&Scene::bytes(&hello(EXTENSIONS)), &rows);
        check_rows(&Scene::bytes(&hello(b"\0\x23\0\0")), &[("req.ssl_st_ext", "1"), ("req.ssl_sni", "<none>")]);
        check_rows(&Scene::bytes(&hello(b"")), &[("req.ssl_st_ext", "0"), ("req.ssl_ec_ext", "<none>")]);
        let whole = hello(EXTENSIONS);
        let mut records = vec![0x16, 3, 1, 0, 60];
        records.extend(&whole[5..65]);
        records.extend([0x16, 3, 1, 0, whole.len() as u8 - 65]);
        records.extend(&whole[65..]);
        check_rows(&Scene::bytes(&records), &rows);
        let part = Scene { bytes: hello(EXTENSIONS)[..60].to_vec(), ..Scene::default() };
        check_rows(&part, &[("req.ssl_hello_type", "<incomplete>"), ("req.ssl_sni", "<incomplete>")]);
    }

    #[test]
    fn other_hellos() {
        let server = Scene::bytes(&[0x16, 3, 3, 0, 8, 2, 0, 0, 4, 3, 3, 0, 0]);
        let rows = [("res.ssl_hello_type", "2"), ("rep_ssl_hello_type", "2"), ("req.ssl_sni", "<none>")];
        check_rows(&server, &rows);
        check_rows(
            &Scene::bytes(b"GET / HTTP/1.1\r\n"),
            &[("req.ssl_hello_type", "<none>"), ("req.ssl_ver", "<none>")],
        );
        let mut old = vec![0x80, 46, 1, 0, 2];
        old.resize(48, 0);
        check_rows(&Scene::bytes(&old), &[("req.ssl_ver", "2"), ("req.ssl_hello_type", "<none>")]);
    }
}
