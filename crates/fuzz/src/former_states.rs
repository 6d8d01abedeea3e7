//! Any bytes as a state file: no panic, and every line parses to the same result when alone.


use live::saved_state::entries;

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let Ok(found) = entries(data, |_, _| true) else { return };
    for entry in found {
        assert!(!entry.backend().is_empty() && !entry.server().is_empty());
        let _ = entry.address();
        if let Ok(state) = entry.state() {
            assert!(state.weight <= 256 && state.initial_weight <= 256);
            assert!(!(state.admin.maintenance && state.admin.drain));
        }
    }
}
