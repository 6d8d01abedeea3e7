//! Which names connections to servers have. Must never compile an expression.

use config::spec::{Mode, ServerSpec, ServerTlsSpec};

/// Whether the SNI is the host of the request if `sni` is not specified.
pub(super) fn asks_for_host(written: &ServerTlsSpec, mode: Mode) -> bool {
    mode == Mode::Http && written.sni_auto != Some(false)
}

/// Whether connections to a server have names that differ by request: `pool-conn-name`, `sni`.
pub(super) fn names_connections(server: &ServerSpec, mode: Mode) -> bool {
    let tls = server.tls.as_deref().filter(|tls| tls.ssl);
    server.connecting.pool_conn_name.is_some() || tls.is_some_and(|tls| tls.sni.is_some() || asks_for_host(tls, mode))
}
