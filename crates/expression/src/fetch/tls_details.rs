//! Fetches of the parameters of TLS handshakes (sections 7.3.3 and 7.3.4), and fingerprints of hellos. They are
//! recorded only if the configuration contains one of these fetches. Must never return a secret that `tune.ssl.keylog`
//! does not allow.

use super::{Fetch, plain};
use crate::sample::{Context, Places, Type, Value};
use crate::{Arguments, Checking};
use md5::{Digest, Md5};
use tls::HandshakeInfo;
use tls::details::{DetailSet, Secret};
use tls::fingerprint;

const CLIENT: Places = Places::CLIENT_LAYER5;
const SERVER: Places = Places::SERVER_LAYER5;

/// The rows of one side: the fetch names, the function that returns the handshake, and the places.
macro_rules! rows {
    ($side:ident, $places:ident, $whose:literal, [$($name:literal $secret:ident $of:literal),*],
     $random:literal $server_random:literal $id:literal $key:literal) => {
        &[
            $(plain($name, Type::Str, $places, concat!("Secret ", $of, " of ", $whose, " connection, with TLS 1.3, in hexadecimal."), |c, _| {
                hexadecimal(c, $side(c)?.details.as_ref()?.secret(Secret::$secret)?)
            }).checked(details),)*
            plain($random, Type::Bin, $places, concat!("Client random of ", $whose, " connection."), |c, _| {
                c.copy(&$side(c)?.details.as_ref()?.client_random?).map(Value::Bin)
            }).checked(details),
            plain($server_random, Type::Bin, $places, concat!("Server random of ", $whose, " connection."), |c, _| {
                c.copy(&$side(c)?.details.as_ref()?.server_random?).map(Value::Bin)
            }).checked(details),
            plain($id, Type::Bin, $places, concat!("Session ID of ", $whose, " connection."), |c, _| {
                let info = $side(c)?;
                let id = &info.details.as_ref()?.session_id;
                if id.is_empty() { None } else { c.copy(id).map(Value::Bin) }
            }).checked(details),
            plain($key, Type::Bin, $places, concat!("Master secret of ", $whose, " connection, with TLS 1.2."), |c, _| {
                c.copy($side(c)?.details.as_ref()?.secret(Secret::Master)?).map(Value::Bin)
            }).checked(details),
        ]
    };
}

/// Every fetch of the client's connection.
#[rustfmt::skip]
pub const CLIENTS: &[Fetch] = rows!(fc, CLIENT, "the client's", [
    "ssl_fc_client_early_traffic_secret" ClientEarly "CLIENT_EARLY_TRAFFIC_SECRET",
    "ssl_fc_client_handshake_traffic_secret" ClientHandshake "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "ssl_fc_client_traffic_secret_0" ClientTraffic "CLIENT_TRAFFIC_SECRET_0",
    "ssl_fc_early_exporter_secret" EarlyExporter "EARLY_EXPORTER_SECRET",
    "ssl_fc_exporter_secret" Exporter "EXPORTER_SECRET",
    "ssl_fc_server_handshake_traffic_secret" ServerHandshake "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "ssl_fc_server_traffic_secret_0" ServerTraffic "SERVER_TRAFFIC_SECRET_0"
], "ssl_fc_client_random" "ssl_fc_server_random" "ssl_fc_session_id" "ssl_fc_session_key");

/// Every fetch of the server's connection.
#[rustfmt::skip]
pub const SERVERS: &[Fetch] = rows!(bc, SERVER, "the server's", [
    "ssl_bc_client_early_traffic_secret" ClientEarly "CLIENT_EARLY_TRAFFIC_SECRET",
    "ssl_bc_client_handshake_traffic_secret" ClientHandshake "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "ssl_bc_client_traffic_secret_0" ClientTraffic "CLIENT_TRAFFIC_SECRET_0",
    "ssl_bc_early_exporter_secret" EarlyExporter "EARLY_EXPORTER_SECRET",
    "ssl_bc_exporter_secret" Exporter "EXPORTER_SECRET",
    "ssl_bc_server_handshake_traffic_secret" ServerHandshake "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "ssl_bc_server_traffic_secret_0" ServerTraffic "SERVER_TRAFFIC_SECRET_0"
], "ssl_bc_client_random" "ssl_bc_server_random" "ssl_bc_session_id" "ssl_bc_session_key");

/// Fingerprints of clients, which are Weir's own.
#[rustfmt::skip]
pub const FINGERPRINTS: &[Fetch] = &[
    plain("req.ssl_ja3", Type::Str, Places::REQUEST, "JA3 fingerprint of a forwarded TLS ClientHello. Weir's own.", |c, _| {
        ja3(c, &fingerprint::ja3(&super::hello::client(c)?))
    }),
    plain("req.ssl_ja4", Type::Str, Places::REQUEST, "JA4 fingerprint of a forwarded TLS ClientHello. Weir's own.", |c, _| {
        c.copy(fingerprint::ja4(&super::hello::client(c)?).as_bytes()).map(Value::Str)
    }),
    plain("ssl_fc_ja3", Type::Str, CLIENT, "JA3 fingerprint of the client's hello. Weir's own.", |c, _| {
        ja3(c, fc(c)?.details.as_ref()?.ja3.as_deref()?)
    }).checked(|_, checking| want(checking, DetailSet::JA3)),
    plain("ssl_fc_ja4", Type::Str, CLIENT, "JA4 fingerprint of the client's hello. Weir's own.", |c, _| {
        c.copy(fc(c)?.details.as_ref()?.ja4.as_ref()?.as_bytes()).map(Value::Str)
    }).checked(|_, checking| want(checking, DetailSet::JA4)),
];

fn want(checking: &Checking<'_>, bits: u8) -> Result<(), String> {
    checking.names.want_of_handshakes(bits);
    Ok(())
}

fn details(_: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    want(checking, DetailSet::DETAILS)
}

fn fc<'a>(context: &Context<'a>) -> Option<&'a HandshakeInfo> {
    context.probes.session()?.tls
}

fn bc(context: &Context<'_>) -> Option<std::sync::Arc<HandshakeInfo>> {
    context.probes.server_tls()
}

fn hexadecimal<'a>(context: &Context<'a>, bytes: &[u8]) -> Option<Value<'a>> {
    context.copy(base::hex::encode_lower(bytes).as_bytes()).map(Value::Str)
}

/// JA3 is the MD5 digest of its text.
fn ja3<'a>(context: &Context<'a>, text: &str) -> Option<Value<'a>> {
    hexadecimal(context, &Md5::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    /// Over connections without TLS on both sides; the engine's tests cover TLS.
    #[test]
    fn nothing_is_known_of_plain_connections() {
        let rows = [
            ("ssl_fc_client_random", "<none>"),
            ("ssl_fc_session_key", "<none>"),
            ("ssl_fc_exporter_secret", "<none>"),
            ("ssl_fc_ja4", "<none>"),
            ("ssl_bc_server_random", "<none>"),
            ("ssl_bc_session_id", "<none>"),
        ];
        check_rows(&Scene::default(), &rows);
    }
}
