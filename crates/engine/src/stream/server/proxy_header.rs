//! The PROXY protocol header at the beginning of a server connection (configuration manual, section 5.2, "send-proxy-v2"). Must
//! never send it.

use base::buffer::Buffer;
use policy::program::{ProxyHeader, ProxySsl};
use tls::HandshakeInfo;
use tls::provider::suite_name;
use tls::x509::{self, Part};
use wire::proxy_protocol::{EncoderV2, Ends, encode_v1, kind, ssl_client, ssl_kind};

use crate::stream::request::evaluate::EvalContext;
use crate::stream::server::attempt::HeaderTooLong;
use crate::stream::server::connect::Request;

impl Request<'_> {
    /// Appends the header for a connection that carries this request.
    pub(super) fn write_header(&mut self, header: &ProxyHeader, out: &mut Buffer) -> Result<(), HeaderTooLong> {
        let ends: Ends = self.state.borrow().client(self.session).zip(self.state.borrow().destination(self.session));
        if !header.binary {
            return encode_v1(ends, out).map_err(|_| HeaderTooLong);
        }
        let mut encoder = EncoderV2::begin(ends, out);
        if !header.fields.is_empty() {
            let mut value = Vec::new();
            let state = self.state.borrow();
            EvalContext::request(self.session, &state).lend(|context| {
                for field in &header.fields {
                    value.clear();
                    field.format.render_in(context, &mut value);
                    encoder.field(field.kind, &value);
                }
            });
        }
        let namespace = self.namespace();
        let state = self.state.borrow();
        let tls = self.session.tls();
        let passed = header.pass_tlvs.then(|| self.session.proxy_header()).flatten().map(|received| &received.tlvs);
        let has_checksum = passed.is_some_and(|tlvs| tlvs.first(kind::CRC32C).is_some());
        if let Some(tlvs) = passed {
            // A field of Weir's own replaces those of its type.
            let is_own = |kind: u8| match kind {
                kind::CRC32C | kind::NOOP => true,
                kind::ALPN => tls.is_some_and(|tls| tls.alpn.is_some()),
                kind::AUTHORITY => header.authority && tls.is_some_and(|tls| tls.server_name.is_some()),
                kind::UNIQUE_ID => header.unique_id,
                kind::SSL => header.ssl.is_some(),
                kind::NETNS => namespace.is_some(),
                _ => false,
            };
            let is_written = |kind: u8| header.fields.iter().any(|field| field.kind == kind);
            for tlv in tlvs.iter().filter(|tlv| !is_own(tlv.kind) && !is_written(tlv.kind)) {
                encoder.field(tlv.kind, tlv.value);
            }
        }
        let identified = header.unique_id.then(|| EvalContext::request(self.session, &state).unique_id());
        // In the order of HAProxy 3.5.
        let behind = |encoder: &mut EncoderV2<'_>| {
            if let Some(protocol) = tls.and_then(|tls| tls.alpn.as_deref()) {
                encoder.field(kind::ALPN, protocol);
            }
            if let Some(name) = tls.and_then(|tls| tls.server_name.as_deref()).filter(|_| header.authority) {
                encoder.field(kind::AUTHORITY, name);
            }
            if let Some(name) = identified {
                encoder.field(kind::UNIQUE_ID, name.unwrap_or_default());
            }
            if let Some(wanted) = &header.ssl {
                write_ssl(encoder, *wanted, tls);
            }
            if let Some((name, _)) = namespace {
                encoder.field(kind::NETNS, name.as_bytes());
            }
        };
        encoder.finish(header.checksum || has_checksum, behind).map_err(|_| HeaderTooLong)
    }
}

/// Appends the field about the client's TLS; without TLS, it contains no flags.
fn write_ssl(encoder: &mut EncoderV2<'_>, wanted: ProxySsl, tls: Option<&HandshakeInfo>) {
    let Some(tls) = tls else { return encoder.ssl(0, 0, |_| {}) };
    let shown = match (tls.peer.is_empty(), tls.resumed) {
        (true, _) => 0,
        (false, true) => ssl_client::CERT_SESS,
        (false, false) => ssl_client::CERT_CONN | ssl_client::CERT_SESS,
    };
    let verify = tls.faults.last().map_or(0, |fault| fault.code.into());
    encoder.ssl(ssl_client::SSL | shown, verify, |encoder| {
        encoder.field(ssl_kind::VERSION, tls.version_name().unwrap_or_default().as_bytes());
        let name = |der: &[u8]| x509::entries(der, Part::Subject, "CN")?.into_iter().next();
        if let Some(name) = tls.peer.first().filter(|_| wanted.client_name).and_then(|der| name(der)) {
            encoder.field(ssl_kind::CN, &name);
        }
        let own = tls.own.as_ref().map(|own| own.der());
        if let Some(key) = own.filter(|_| wanted.key).and_then(x509::key_kind) {
            encoder.field(ssl_kind::KEY_ALG, key.as_bytes());
        }
        if let Some(signature) =
            own.filter(|_| wanted.signature).and_then(|der| x509::part(der, Part::SignatureAlgorithm))
        {
            encoder.field(ssl_kind::SIG_ALG, &signature);
        }
        if let Some(suite) = tls.suite.filter(|_| wanted.cipher) {
            encoder.field(ssl_kind::CIPHER, suite_name(suite).as_bytes());
        }
    });
}
