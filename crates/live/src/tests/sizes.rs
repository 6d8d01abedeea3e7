//! Sizes of what every backend and every server has: very large configurations have ten thousands of them. A field that few of them
//! use belongs into a box.

use crate::ProxyState;
use crate::server::ServerState;

#[test]
fn live_states_do_not_grow() {
    let rows = [("ProxyState", size_of::<ProxyState>(), 896), ("ServerState", size_of::<ServerState>(), 176)];
    for (what, size, most) in rows {
        assert!(size <= most, "{what}: {size} bytes, at most {most}");
    }
}
