//! How a connection begins that goes over to the protocol of tests. Must never know that protocol.

/// What its client sends first.
pub const PREFACE: &[u8] = b"PAIRS/1\n";

/// Whether a connection begins with it; `None`: more is needed.
pub fn begins(bytes: &[u8]) -> Option<bool> {
    if bytes.starts_with(PREFACE) {
        return Some(true);
    }
    if PREFACE.starts_with(bytes) { None } else { Some(false) }
}
