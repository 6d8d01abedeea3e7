//! Advances servers in `slowstart`. Must never decide when it begins.

use super::Servers;
use base::moment::Moment;
use std::task::Waker;

impl Servers {
    /// Advances servers in `slowstart` to their level as of `now`. Returns the time of the next step, if there is one.
    pub(crate) fn advance(&mut self, now: Moment) -> (Option<Moment>, Vec<Waker>) {
        let mut changed = false;
        for server in 0..self.servers.len() {
            if self.servers[server].warming.advance(now) {
                changed = true;
                self.set_server_limit(server, self.servers[server].limit);
            }
        }
        if changed && self.heeds_weights {
            self.rebuild();
        }
        let next = self.servers.iter().filter_map(|server| server.warming.next()).min();
        (next, if changed { self.fill_free_slots() } else { Vec::new() })
    }
}
