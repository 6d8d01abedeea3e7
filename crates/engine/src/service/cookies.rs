//! Cookies of servers after a change of servers or of their addresses. Must never look at a request.

use live::CookieChange;
use live::persistence::CookieInputs;
use policy::program::Proxy;

use crate::worker::Process;

/// Updates dynamic cookies after a change of a server's address.
pub fn follow_address(shared: &Process, proxy: &Proxy) {
    if shared.live.proxies[proxy.index].cookies.is_dynamic() {
        change_cookies(shared, proxy, CookieChange::Servers);
    }
}

/// Updates the cookie values, after a change of servers or by a command.
pub fn change_cookies(shared: &Process, proxy: &Proxy, change: CookieChange<'_>) {
    let servers = proxy.servers().map(|server| CookieInputs {
        server: server.index,
        own: server.cookie.as_deref(),
        address: shared.outgoing.address(server).inet(),
    });
    shared.live.proxies[proxy.index].cookies.change(change, servers);
}
