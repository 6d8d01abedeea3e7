//! Fetches of TLS on both connections, and of the certificates presented (sections 7.3.3 and 7.3.4). Must never take
//! part in a handshake.

use super::{Fetch, SampleOf, plain};
use crate::sample::{Context, Places, Type, Value};
use crate::{Arguments, Checking, Kind, Signature};
use std::sync::Arc;
use tls::HandshakeInfo;
use tls::faults::Fault;
use tls::openssl;
use tls::provider::{group_name, suite_bits, suite_name};
use tls::x509::{self, Part};

const CLIENT: Places = Places::CLIENT_LAYER5;
const SERVER: Places = Places::SERVER_LAYER5;
const INT: Type = Type::Int;
/// The attribute type of a distinguished name, its occurrence, and the output format.
const ENTRY: Signature = Signature::new(0, &[Kind::Str, Kind::Int, Kind::Str]);

/// The OID of a policy.
const POLICY: Signature = Signature::new(0, &[Kind::Str]);

/// Every fetch of the family.
#[rustfmt::skip]
pub const TABLE: &[Fetch] = &[
    plain("ssl_fc", Type::Bool, CLIENT, "Whether the client's connection uses TLS.", |c, _| {
        Some(Value::Bool(c.probes.session().is_some_and(|session| session.is_secure)))
    }),
    plain("ssl_fc_alg_keysize", INT, CLIENT, "Key size of the cipher, in bits.", |c, _| bits(fc(c)?)),
    plain("ssl_fc_alpn", Type::Str, CLIENT, "Protocol negotiated by ALPN.", |c, _| alpn(c, fc(c)?)),
    plain("ssl_fc_cipher", Type::Str, CLIENT, "Name of the cipher.", |c, _| cipher(fc(c)?)),
    plain("ssl_fc_crtname", Type::Str, CLIENT, "Name of the certificate presented to the client.", |c, _| {
        Some(Value::Str(c.copy(fc(c)?.own.as_ref()?.name.as_bytes())?))
    }),
    plain("ssl_fc_curve", Type::Str, CLIENT, "Group of the key exchange.", |c, _| curve(fc(c)?)),
    plain("ssl_fc_err", INT, CLIENT, "Error of the TLS handshake, as OpenSSL's number; 0: none.", |c, _| {
        let is_secure = || c.probes.session().is_some_and(|session| session.is_secure);
        fc(c).map(error).or_else(|| is_secure().then_some(Value::Int(0)))
    }),
    plain("ssl_fc_err_str", Type::Str, CLIENT, "Description of the error of the TLS handshake, as in OpenSSL.", |c, _| error_text(c, fc(c)?)),
    plain("ssl_fc_has_crt", Type::Bool, CLIENT, "Whether the client presented a certificate in this handshake.", |c, _| {
        fc(c).map(|info| Value::Bool(!info.peer.is_empty() && !info.resumed))
    }),
    plain("ssl_fc_early_rcvd", Type::Bool, CLIENT, "Whether early data was received on the connection.", |c, _| {
        fc(c).map(|facts| Value::Bool(facts.early.is_some()))
    }),
    plain("ssl_fc_has_early", Type::Bool, CLIENT, "Whether early data was received and the handshake is not complete.", |c, _| {
        fc(c).map(|facts| Value::Bool(facts.is_early()))
    }),
    plain("ssl_fc_has_sni", Type::Bool, CLIENT, "Whether the client sent a server name (SNI).", |c, _| {
        Some(Value::Bool(fc(c).is_some_and(|info| info.server_name.is_some())))
    }),
    plain("ssl_fc_is_resumed", Type::Bool, CLIENT, "Whether the TLS session was resumed.", |c, _| {
        Some(Value::Bool(fc(c).is_some_and(|info| info.resumed)))
    }),
    plain("ssl_fc_npn", Type::Str, CLIENT, "No sample: NPN is not supported.", |_, _| None),
    plain("ssl_fc_protocol", Type::Str, CLIENT, "TLS version.", |c, _| protocol(fc(c)?)),
    plain("ssl_fc_sni", Type::Str, CLIENT, "Server name that the client sent (SNI).", |c, _| {
        Some(Value::Str(c.copy(fc(c)?.server_name.as_deref()?)?))
    }),
    plain("ssl_fc_use_keysize", INT, CLIENT, "Effective key size of the cipher, in bits.", |c, _| bits(fc(c)?)),

    plain("ssl_bc", Type::Bool, SERVER, "Whether the connection to the server uses TLS.", |c, _| {
        Some(Value::Bool(bc(c).is_some()))
    }),
    plain("ssl_bc_alg_keysize", INT, SERVER, "Key size of the cipher, in bits.", |c, _| bits(&*bc(c)?)),
    plain("ssl_bc_alpn", Type::Str, SERVER, "Protocol negotiated by ALPN.", |c, _| alpn(c, &*bc(c)?)),
    plain("ssl_bc_cipher", Type::Str, SERVER, "Name of the cipher.", |c, _| cipher(&*bc(c)?)),
    plain("ssl_bc_curve", Type::Str, SERVER, "Group of the key exchange.", |c, _| curve(&*bc(c)?)),
    plain("ssl_bc_err", INT, SERVER, "Error of the TLS handshake, as OpenSSL's number; 0: none.", |c, _| {
        bc(c).map(|info| error(&info))
    }),
    plain("ssl_bc_err_str", Type::Str, SERVER, "Description of the error of the TLS handshake, as in OpenSSL.", |c, _| error_text(c, &*bc(c)?)),
    plain("ssl_bc_is_resumed", Type::Bool, SERVER, "Whether the TLS session was resumed.", |c, _| {
        Some(Value::Bool(bc(c).is_some_and(|info| info.resumed)))
    }),
    plain("ssl_bc_npn", Type::Str, SERVER, "No sample: NPN is not supported.", |_, _| None),
    plain("ssl_bc_protocol", Type::Str, SERVER, "TLS version.", |c, _| protocol(&*bc(c)?)),
    plain("ssl_bc_sni", Type::Str, SERVER, "Server name sent to the server (SNI).", |c, _| {
        Some(Value::Str(c.copy(bc(c)?.server_name.as_deref()?)?))
    }),
    plain("ssl_bc_use_keysize", INT, SERVER, "Effective key size of the cipher, in bits.", |c, _| bits(&*bc(c)?)),

    plain("ssl_c_ca_err", INT, CLIENT, "First error found above the client's certificate in its chain, as OpenSSL's number; 0: none.", |c, _| {
        fault(c, |fault| fault.depth > 0, |fault| fault.code)
    }),
    plain("ssl_c_ca_err_depth", INT, CLIENT, "Depth of that error in the chain.", |c, _| {
        // HAProxy stores it in four bits.
        fault(c, |fault| fault.depth > 0, |fault| fault.depth.min(15))
    }),
    plain("ssl_c_err", INT, CLIENT, "First error of the client's certificate, as OpenSSL's number; 0: none.", |c, _| {
        fault(c, |fault| fault.depth == 0, |fault| fault.code)
    }),
    plain("ssl_c_verify", INT, CLIENT, "Result of the verification of the client's certificate, as OpenSSL's number; 0: valid.", |c, _| {
        Some(Value::Int(fc(c)?.faults.last().map_or(0, |fault| fault.code.into())))
    }),
    plain("ssl_c_used", Type::Bool, CLIENT, "Whether the session has a client certificate.", |c, _| {
        fc(c).map(|info| Value::Bool(!info.peer.is_empty()))
    }),
    plain("ssl_c_chain_der", Type::Bin, CLIENT, "Certificates that the client sent after its own, in DER.", |c, _| {
        chain(c, fc(c)?.peer.get(1..).unwrap_or_default())
    }),
    plain("ssl_c_der", Type::Bin, CLIENT, "The client's certificate in DER.", |c, _| der(c, of_client(c)?)),
    entry("ssl_c_i_dn", CLIENT, "Issuer of the client's certificate, or one attribute of it.", |c, a| dn(c, of_client(c)?, Part::Issuer, a)),
    plain("ssl_c_key_alg", Type::Str, CLIENT, "Key algorithm of the client's certificate.", |c, _| part(c, of_client(c)?, Part::KeyAlgorithm)),
    plain("ssl_c_notafter", Type::Str, CLIENT, "End of validity of the client's certificate.", |c, _| part(c, of_client(c)?, Part::NotAfter)),
    plain("ssl_c_notbefore", Type::Str, CLIENT, "Start of validity of the client's certificate.", |c, _| part(c, of_client(c)?, Part::NotBefore)),
    entry("ssl_c_s_dn", CLIENT, "Subject of the client's certificate, or one attribute of it.", |c, a| dn(c, of_client(c)?, Part::Subject, a)),
    Fetch::new("ssl_c_policies", POLICY, Type::Str, CLIENT, "Certificate policies of the client's certificate; with an argument, that policy if it is among them.", policies),
    entry("ssl_c_r_dn", CLIENT, "Subject of the root of the client's chain, or one attribute of it.", |c, a| dn(c, root(c)?, Part::Subject, a)),
    plain("ssl_c_san", Type::Str, CLIENT, "Subject alternative names of the client's certificate.", |c, _| {
        context_text(c, &x509::alternative_names(of_client(c)?)?)
    }),
    plain("ssl_c_serial", Type::Bin, CLIENT, "Serial number of the client's certificate.", |c, _| serial(c, of_client(c)?)),
    plain("ssl_c_sha1", Type::Bin, CLIENT, "SHA-1 fingerprint of the client's certificate.", |c, _| sha1(c, of_client(c)?)),
    plain("ssl_c_sig_alg", Type::Str, CLIENT, "Signature algorithm of the client's certificate.", |c, _| part(c, of_client(c)?, Part::SignatureAlgorithm)),
    plain("ssl_c_version", INT, CLIENT, "Version of the client's certificate.", |c, _| version(of_client(c)?)),

    plain("ssl_f_der", Type::Bin, CLIENT, "Certificate presented to the client, in DER.", |c, _| der(c, of_own(c)?)),
    entry("ssl_f_i_dn", CLIENT, "Issuer of the certificate presented to the client, or one attribute of it.", |c, a| dn(c, of_own(c)?, Part::Issuer, a)),
    plain("ssl_f_key_alg", Type::Str, CLIENT, "Key algorithm of the certificate presented to the client.", |c, _| part(c, of_own(c)?, Part::KeyAlgorithm)),
    plain("ssl_f_notafter", Type::Str, CLIENT, "End of validity of the certificate presented to the client.", |c, _| part(c, of_own(c)?, Part::NotAfter)),
    plain("ssl_f_notbefore", Type::Str, CLIENT, "Start of validity of the certificate presented to the client.", |c, _| part(c, of_own(c)?, Part::NotBefore)),
    entry("ssl_f_s_dn", CLIENT, "Subject of the certificate presented to the client, or one attribute of it.", |c, a| dn(c, of_own(c)?, Part::Subject, a)),
    plain("ssl_f_serial", Type::Bin, CLIENT, "Serial number of the certificate presented to the client.", |c, _| serial(c, of_own(c)?)),
    plain("ssl_f_sha1", Type::Bin, CLIENT, "SHA-1 fingerprint of the certificate presented to the client.", |c, _| sha1(c, of_own(c)?)),
    plain("ssl_f_sig_alg", Type::Str, CLIENT, "Signature algorithm of the certificate presented to the client.", |c, _| part(c, of_own(c)?, Part::SignatureAlgorithm)),
    plain("ssl_f_version", INT, CLIENT, "Version of the certificate presented to the client.", |c, _| version(of_own(c)?)),

    plain("ssl_s_chain_der", Type::Bin, SERVER, "Certificate chain of the server in DER.", |c, _| {
        chain(c, &bc(c)?.peer)
    }),
    plain("ssl_s_der", Type::Bin, SERVER, "The server's certificate in DER.", |c, _| der(c, bc(c)?.peer.first()?)),
    entry("ssl_s_i_dn", SERVER, "Issuer of the server's certificate, or one attribute of it.", |c, a| dn(c, bc(c)?.peer.first()?, Part::Issuer, a)),
    plain("ssl_s_key_alg", Type::Str, SERVER, "Key algorithm of the server's certificate.", |c, _| part(c, bc(c)?.peer.first()?, Part::KeyAlgorithm)),
    plain("ssl_s_notafter", Type::Str, SERVER, "End of validity of the server's certificate.", |c, _| part(c, bc(c)?.peer.first()?, Part::NotAfter)),
    plain("ssl_s_notbefore", Type::Str, SERVER, "Start of validity of the server's certificate.", |c, _| part(c, bc(c)?.peer.first()?, Part::NotBefore)),
    entry("ssl_s_s_dn", SERVER, "Subject of the server's certificate, or one attribute of it.", |c, a| dn(c, bc(c)?.peer.first()?, Part::Subject, a)),
    plain("ssl_s_serial", Type::Bin, SERVER, "Serial number of the server's certificate.", |c, _| serial(c, bc(c)?.peer.first()?)),
    plain("ssl_s_sha1", Type::Bin, SERVER, "SHA-1 fingerprint of the server's certificate.", |c, _| sha1(c, bc(c)?.peer.first()?)),
    plain("ssl_s_sig_alg", Type::Str, SERVER, "Signature algorithm of the server's certificate.", |c, _| part(c, bc(c)?.peer.first()?, Part::SignatureAlgorithm)),
    plain("ssl_s_version", INT, SERVER, "Version of the server's certificate.", |c, _| version(bc(c)?.peer.first()?)),
];

const fn entry(name: &'static str, places: Places, doc: &'static str, eval: SampleOf) -> Fetch {
    Fetch::new(name, ENTRY, Type::Str, places, doc, eval).checked(check_entry)
}

fn check_entry(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    match arguments.utf8(2).unwrap_or_default() {
        "" | "rfc2253" => Ok(()),
        _ => Err("only rfc2253 or a blank value are currently supported as the format argument.".to_owned()),
    }
}

/// The client's handshake; `None`: the connection is not encrypted.
fn fc<'a>(context: &Context<'a>) -> Option<&'a HandshakeInfo> {
    context.probes.session()?.tls
}

/// The server's handshake.
fn bc(context: &Context<'_>) -> Option<Arc<HandshakeInfo>> {
    context.probes.server_tls()
}

fn of_client<'a>(context: &Context<'a>) -> Option<&'a [u8]> {
    fc(context)?.peer.first().map(|first| &**first)
}

fn of_own<'a>(context: &Context<'a>) -> Option<&'a [u8]> {
    fc(context)?.own.as_ref().map(|own| own.der())
}

fn context_text<'a>(context: &Context<'a>, text: &str) -> Option<Value<'a>> {
    context.copy(text.as_bytes()).map(Value::Str)
}

/// The root that the client's chain leads to.
fn root<'a>(context: &Context<'a>) -> Option<&'a [u8]> {
    let info = fc(context)?;
    x509::root(&info.peer, info.authorities.as_ref().map_or(&[], |authorities| &authorities.roots))
}

fn policies<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let all = x509::policies(of_client(context)?)?;
    match arguments.text(0).filter(|wanted| !wanted.is_empty()) {
        Some(wanted) => all.iter().any(|policy| policy.as_bytes() == wanted).then_some(Value::Str(wanted)),
        None => context_text(context, &all.join(", ")),
    }
}

/// Returns a value of the first matching fault; 0 if there is none.
fn fault<'a>(context: &Context<'a>, wanted: fn(&Fault) -> bool, told: fn(&Fault) -> u8) -> Option<Value<'a>> {
    let found = fc(context)?.faults.iter().find(|fault| wanted(fault));
    Some(Value::Int(found.map_or(0, told).into()))
}

fn error<'a>(info: &HandshakeInfo) -> Value<'a> {
    Value::Int(info.failure.as_ref().map_or(0, |failure| openssl::number(failure).into()))
}

fn error_text<'a>(context: &Context<'a>, info: &HandshakeInfo) -> Option<Value<'a>> {
    context.copy(openssl::sentence(info.failure.as_ref()?).as_bytes()).map(Value::Str)
}

fn alpn<'a>(context: &Context<'a>, info: &HandshakeInfo) -> Option<Value<'a>> {
    Some(Value::Str(context.copy(info.alpn.as_deref()?)?))
}

fn cipher<'a>(info: &HandshakeInfo) -> Option<Value<'a>> {
    info.suite.map(|suite| Value::Str(suite_name(suite).as_bytes()))
}

fn bits<'a>(info: &HandshakeInfo) -> Option<Value<'a>> {
    info.suite.map(|suite| Value::Int(suite_bits(suite).into()))
}

fn curve<'a>(info: &HandshakeInfo) -> Option<Value<'a>> {
    info.group.map(|group| Value::Str(group_name(group).as_bytes()))
}

fn protocol<'a>(info: &HandshakeInfo) -> Option<Value<'a>> {
    info.version_name().map(|name| Value::Str(name.as_bytes()))
}

fn der<'a>(context: &Context<'a>, der: &[u8]) -> Option<Value<'a>> {
    context.copy(der).map(Value::Bin)
}

fn chain<'a>(context: &Context<'a>, chain: &[Box<[u8]>]) -> Option<Value<'a>> {
    if chain.is_empty() { None } else { context.copy(&chain.concat()).map(Value::Bin) }
}

fn part<'a>(context: &Context<'a>, der: &[u8], part: Part) -> Option<Value<'a>> {
    context.copy(&x509::part(der, part)?).map(Value::Str)
}

fn serial<'a>(context: &Context<'a>, der: &[u8]) -> Option<Value<'a>> {
    context.copy(&x509::part(der, Part::Serial)?).map(Value::Bin)
}

fn version<'a>(der: &[u8]) -> Option<Value<'a>> {
    x509::version(der).map(|version| Value::Int(version.into()))
}

fn sha1<'a>(context: &Context<'a>, der: &[u8]) -> Option<Value<'a>> {
    use sha1::Digest as _;
    context.copy(&sha1::Sha1::digest(der)).map(Value::Bin)
}

/// Returns a distinguished name, or one attribute of it.
fn dn<'a>(context: &Context<'a>, der: &[u8], of: Part, arguments: &Arguments) -> Option<Value<'a>> {
    let kind = arguments.text(0).and_then(|kind| std::str::from_utf8(kind).ok()).filter(|kind| !kind.is_empty());
    let Some(kind) = kind else {
        let name = match arguments.text(2) {
            Some(b"rfc2253") => x509::rfc2253(der, of)?,
            _ => x509::part(der, of)?,
        };
        return context.copy(&name).map(Value::Str);
    };
    let found = x509::entries(der, of, kind)?;
    let wanted = arguments.int(1).unwrap_or(1);
    let place = match wanted {
        0 | 1 => 0,
        2.. => usize::try_from(wanted - 1).ok()?,
        _ => found.len().checked_sub(usize::try_from(wanted.unsigned_abs()).ok()?)?,
    };
    context.copy(found.get(place)?).map(Value::Str)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    /// Over a connection without TLS on both sides; the engine's tests cover TLS.
    #[test]
    fn nothing_is_known_of_plain_connections() {
        let refused = "!invalid args in fetch method 'ssl_c_s_dn' : only rfc2253 or a blank value are currently supported \
                       as the format argument.";
        let rows = [
            ("ssl_fc", "0"),
            ("ssl_bc", "0"),
            ("ssl_fc_has_sni", "0"),
            ("ssl_fc_is_resumed", "0"),
            ("ssl_c_used", "<none>"),
            ("ssl_fc_has_crt", "<none>"),
            ("ssl_fc_err", "<none>"),
            ("ssl_fc_err_str", "<none>"),
            ("ssl_bc_err", "<none>"),
            ("ssl_fc_cipher", "<none>"),
            ("ssl_c_verify", "<none>"),
            ("ssl_c_s_dn(CN)", "<none>"),
            ("ssl_c_s_dn(,0,rfc2253)", "<none>"),
            ("ssl_c_s_dn(CN,1,x)", refused),
            ("ssl_s_sha1", "<none>"),
        ];
        check_rows(&Scene::default(), &rows);
    }
}
