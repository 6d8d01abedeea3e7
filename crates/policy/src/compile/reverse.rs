//! Reverse HTTP: resolves the server of `bind rhttp@<backend>/<server>`. Must never open a connection.

use super::Compiler;
use crate::program::BindAddress;
use config::diagnostic::Form;
use config::spec::{BindSpec, Mode, MuxProtocol, ProxyKind, ServerSpec, Spec};

impl Compiler<'_> {
    /// Resolves the server; errors are reported with HAProxy's startup messages.
    pub(super) fn reverse_address(
        &mut self,
        spec: &Spec,
        bind: &BindSpec,
        written: &str,
        owner: &str,
    ) -> Option<BindAddress> {
        if !spec.proxies.iter().any(|proxy| proxy.name.value == owner && proxy.mode == Mode::Http) {
            self.alert(
                bind.span,
                Form::Bare,
                format!("Proxy '{owner}': 'bind {}' requires HTTP proxy mode.", bind.text),
            );
        }
        let why = match find(spec, written) {
            Ok(address) => return Some(address),
            Err(why) => why,
        };
        let place = self.place(bind.span);
        self.alert(bind.span, Form::Bare, format!("Starting [{place}] for frontend {owner}: protocol rev: {why}.."));
        None
    }
}

fn find(spec: &Spec, written: &str) -> Result<BindAddress, String> {
    let Some((backend, name)) = written.split_once('/') else {
        return Err(format!("Invalid server name: '{written}'"));
    };
    let is_backend = |kind: ProxyKind| kind != ProxyKind::Frontend;
    let proxy = spec.proxies.iter().position(|proxy| is_backend(proxy.kind) && proxy.name.value == backend);
    let proxy = proxy.ok_or_else(|| format!("No such backend: '{backend}'"))?;
    let servers = &spec.proxies[proxy].servers;
    let server = servers.iter().position(|server| server.name.value == name);
    let server = server.ok_or_else(|| format!("No such server: '{written}'"))?;
    if !speaks_http2(&servers[server]) {
        return Err(format!(
            "Cannot reverse connect with server '{written}' unless HTTP/2 is activated on it with either proto or alpn \
             keyword"
        ));
    }
    Ok(BindAddress::Reverse { proxy, server })
}

/// Whether a server uses HTTP/2, by `proto` or by ALPN.
fn speaks_http2(server: &ServerSpec) -> bool {
    match server.connecting.protocol {
        Some(protocol) => protocol == MuxProtocol::Http2,
        None => {
            let tls = server.tls.as_deref().filter(|tls| tls.ssl);
            tls.and_then(|tls| tls.common.alpn.as_ref()).is_some_and(|alpn| alpn.value.iter().any(|name| name == "h2"))
        }
    }
}
