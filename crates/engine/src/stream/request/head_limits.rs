//! Limits of HTTP/1 heads, of requests and of responses. Must never read a head.

use conn::h1::HeadLimits;
use policy::program::Global;

/// Returns the limits of HTTP/1 heads, for clients and servers (`tune.bufsize`, `tune.maxrewrite`, `tune.http.maxhdr`).
pub fn head_limits(global: &Global) -> HeadLimits {
    let max_head = global.bufsize.saturating_sub(global.maxrewrite);
    HeadLimits {
        max_fields: global.maxhdr,
        max_head,
        accept_payload_with_any_method: global.http.accept_payload_with_any_method,
        keep_insecure_transfer_encoding: global.http.keep_insecure_transfer_encoding,
        ..HeadLimits::default()
    }
}
