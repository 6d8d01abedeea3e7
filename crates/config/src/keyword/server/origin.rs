//! `from`: initial values of a `server` or `default-server` (configuration manual, section 5.2), and named default
//! servers. Must never look a server up on the network.

use super::ServerDraft;
use crate::document::Line;
use crate::keyword::proxy::ProxyDraft;
use crate::span::{Span, Spanned};
use crate::spec::{AddressSpec, Family, HostSpec, PortSpec, ProxyKind, ProxySpec, ServerSpec, SocketKind, Spec};

/// Argument of `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin<'a> {
    /// `none`: the documented defaults.
    Documented,
    /// `be:[<backend>]`: the default initial values of a backend's servers.
    Backend(&'a str),
    /// `srv:[<backend>/]<server>`: a server, or a named default server.
    Server(&'a str, &'a str),
}

impl<'a> Origin<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::Documented);
        }
        if let Some(backend) = text.strip_prefix("be:") {
            return Ok(Self::Backend(backend));
        }
        let Some(name) = text.strip_prefix("srv:") else {
            return Err(format!("invalid '{text}' value for 'from' keyword."));
        };
        let (backend, server) = name.split_once('/').unwrap_or(("", name));
        if server.is_empty() {
            return Err("from: require <backend>/<server>.".to_owned());
        }
        Ok(Self::Server(backend, server))
    }

    fn unknown(self, own: &str) -> String {
        match self {
            Self::Documented => String::new(),
            Self::Backend(backend) => format!("from: unknown backend instance '{backend}'."),
            Self::Server(backend, server) => {
                let backend = if backend.is_empty() { own } else { backend };
                format!("from: unknown server '{server}' in backend '{backend}'.")
            }
        }
    }
}

/// Lookup of initial values.
pub(super) trait Origins {
    /// Returns the default initial values of a backend's servers; an empty name means the line's own backend.
    fn of_backend(&self, backend: &str) -> Option<ServerDraft>;
    /// Returns a server or a named default server. The outer `None`: no such backend; the inner one: no such server.
    fn of_server(&self, backend: &str, server: &str) -> Option<Option<ServerDraft>>;
}

/// Lookup while the configuration is read: the current proxy, and those before it.
pub(super) struct ProxyDrafts<'a> {
    pub(super) own: &'a ProxyDraft,
    pub(super) earlier: &'a [ProxyDraft],
}

impl ProxyDrafts<'_> {
    fn find(&self, backend: &str) -> Option<&ProxyDraft> {
        let is_it = |draft: &&ProxyDraft| {
            draft.spec.kind != ProxyKind::Frontend && (backend.is_empty() || draft.spec.name.value == backend)
        };
        Some(self.own).filter(is_it).or_else(|| self.earlier.iter().find(is_it))
    }
}

impl Origins for ProxyDrafts<'_> {
    fn of_backend(&self, backend: &str) -> Option<ServerDraft> {
        self.find(backend).map(|draft| draft.default_server.clone())
    }

    fn of_server(&self, backend: &str, server: &str) -> Option<Option<ServerDraft>> {
        let draft = self.find(backend)?;
        let named = draft.named_servers.iter().find(|(name, _)| name == server).map(|(_, draft)| draft.clone());
        let written = || draft.spec.servers.iter().find(|known| known.name.value == server).map(ServerDraft::of);
        Some(named.or_else(written))
    }
}

/// Lookup at run time: the running configuration, and servers added since.
pub(super) struct Running<'a> {
    pub(super) spec: &'a Spec,
    pub(super) own: &'a str,
}

impl Running<'_> {
    fn find(&self, backend: &str) -> Option<&ProxySpec> {
        let wanted = if backend.is_empty() { self.own } else { backend };
        self.spec.proxies.iter().find(|proxy| proxy.kind != ProxyKind::Frontend && proxy.name.value == wanted)
    }
}

impl Origins for Running<'_> {
    fn of_backend(&self, backend: &str) -> Option<ServerDraft> {
        let unnamed = self.find(backend)?.default_servers.iter().find(|server| server.name.value.is_empty());
        Some(unnamed.map(ServerDraft::of).unwrap_or_default())
    }

    fn of_server(&self, backend: &str, server: &str) -> Option<Option<ServerDraft>> {
        let proxy = self.find(backend)?;
        let known = [&proxy.servers, &proxy.added, &proxy.default_servers];
        Some(known.into_iter().flatten().find(|known| known.name.value == server).map(ServerDraft::of))
    }
}

/// Returns the initial values of a line's options if the word at `first` is `from`; `None` otherwise.
///
/// # Errors
/// The wrong word, and the message.
pub(super) fn read(
    line: &Line,
    first: usize,
    own: &str,
    origins: &impl Origins,
) -> Result<Option<ServerDraft>, (Span, String)> {
    if line.text(first) != "from" {
        return Ok(None);
    }
    let at = line.span(first + 1);
    let fail = |message: String| (at, message);
    if line.text(first + 1).is_empty() {
        return Err(fail("from: missing value.".to_owned()));
    }
    let origin = Origin::parse(line.text(first + 1)).map_err(fail)?;
    if line.text(first + 2) == "from" {
        return Err((line.span(first + 2), "'from' keyword can only be specified once.".to_owned()));
    }
    let found = match origin {
        Origin::Documented => Some(ServerDraft::default()),
        Origin::Backend(backend) => origins.of_backend(backend),
        Origin::Server(backend, server) => {
            let known = origins.of_server(backend, server);
            let known = known.ok_or_else(|| fail(format!("from: unknown backend '{backend}'.")))?;
            known.map(|mut draft| {
                draft.check.has_defaults = true;
                draft
            })
        }
    };
    let mut draft = found.ok_or_else(|| fail(origin.unknown(own)))?;
    // Settings that identify a single server are not copied.
    (draft.id, draft.balance.guid, draft.for_added) = (None, None, None);
    Ok(Some(draft))
}

/// Returns the index of the first option after `from` and its value.
pub(super) fn index_after(line: &Line, first: usize) -> usize {
    match (line.text(first), line.text(first + 2)) {
        ("from", "from") => line.words.len(),
        ("from", _) => first + 2,
        _ => first,
    }
}

impl ServerDraft {
    /// Returns the settings of a server.
    pub(super) fn of(server: &ServerSpec) -> Self {
        let ServerSpec {
            span: _,
            name: _,
            address: _,
            id: _,
            id_is_written: _,
            weight,
            maxconn,
            maxqueue,
            balance,
            limits,
            disabled,
            backup,
            pool_max_conn,
            pool_purge_delay,
            connecting,
            log,
            check,
            persistence,
            tls,
        } = server.clone();
        Self {
            weight,
            maxconn,
            maxqueue,
            limits,
            balance,
            id: None,
            disabled,
            backup,
            pool_max_conn,
            pool_purge_delay,
            log,
            connecting,
            check,
            persistence,
            tls: tls.map(|tls| *tls).unwrap_or_default(),
            shard: 0,
            for_added: None,
        }
    }

    /// Returns a server without an address, as initial values for later lines.
    pub(crate) fn template(&self, name: &str) -> ServerSpec {
        let nowhere = AddressSpec::Inet {
            host: HostSpec::Any,
            family: Family::default(),
            port: PortSpec::default(),
            kind: SocketKind::default(),
            multipath: false,
        };
        let (name, address) = (Spanned::new(name.to_owned(), Span::default()), Spanned::new(nowhere, Span::default()));
        super::finish(self.clone(), Span::default(), name, address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read() {
        let rows = [
            ("none", Ok(Origin::Documented)),
            ("be:", Ok(Origin::Backend(""))),
            ("be:b", Ok(Origin::Backend("b"))),
            ("srv:s", Ok(Origin::Server("", "s"))),
            ("srv:b/s", Ok(Origin::Server("b", "s"))),
            ("srv:", Err("from: require <backend>/<server>.")),
            ("srv:b/", Err("from: require <backend>/<server>.")),
            ("s1", Err("invalid 's1' value for 'from' keyword.")),
        ];
        for (text, expected) in rows {
            assert_eq!(Origin::parse(text), expected.map_err(str::to_owned), "{text}");
        }
    }
}
