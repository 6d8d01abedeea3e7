//! The memory layout. The transitions are tested in `live/tests`.

use super::Servers;
use std::mem::offset_of;

#[test]
fn what_every_request_writes_fits_into_the_cache_line_of_the_lock() {
    // The lock itself takes the first eight bytes.
    assert!(8 + offset_of!(Servers, loads) <= 64, "{}", offset_of!(Servers, loads));
}
