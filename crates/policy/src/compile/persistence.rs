//! Compiles cookie-based persistence: the cookie and its values. Must never look at a request.

use super::Compiler;
use crate::program::Server;
use config::diagnostic::{Diagnostic, Form};
use config::spec::ProxySpec;
use config::text;
use live::persistence::{Cookie, CookieInputs, CookieValues, PersistencePlan};

impl Compiler<'_> {
    /// Compiles the persistence of a backend with these valid servers.
    pub(super) fn persistence(&mut self, written: &ProxySpec, servers: &[Server]) -> PersistencePlan {
        let spec = &written.persistence;
        let bytes = |written: &String| text::to_bytes(written).into();
        let cookie = spec.cookie.as_ref().map(|cookie| Cookie::new(&cookie.value));
        let dynamic_key: Option<Box<[u8]>> = spec.dynamic_key.as_ref().map(bytes);
        let key = dynamic_key.as_deref().filter(|_| cookie.as_ref().is_some_and(|cookie| cookie.dynamic));
        let placed = servers.iter().map(|server| CookieInputs {
            server: server.index,
            own: server.cookie.as_deref(),
            address: server.address.inet(),
        });
        let values = CookieValues::of_servers(placed, key);
        for server in servers.iter().filter(|server| key.is_some() && server.cookie.is_none()) {
            let value = values.of(server.index);
            if value.is_some_and(|value| values.servers(value).first() != Some(&server.index)) {
                let message = format!(
                    "We generated two equal cookies for two different servers.\nPlease change the secret key for '{}'.",
                    written.name.value
                );
                self.warn(Diagnostic::warning(written.servers[server.index].span, message).with_form(Form::Bare));
            }
        }
        PersistencePlan { cookie, values, dynamic_key, rdp_cookie: spec.rdp_cookie.as_ref().map(bytes) }
    }
}
