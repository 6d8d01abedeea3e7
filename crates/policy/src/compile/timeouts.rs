//! The timeouts of a proxy.

use crate::program::Timeouts;
use config::spec::TimeoutsSpec;
use std::time::Duration;

/// Compiles the timeouts; zero means "no limit", like an unspecified timeout.
pub(super) fn timeouts(written: &TimeoutsSpec) -> Timeouts {
    let duration = |millis: Option<u64>| millis.filter(|millis| *millis > 0).map(Duration::from_millis);
    Timeouts {
        client: duration(written.client),
        client_fin: duration(written.client_fin),
        client_hs: duration(written.client_hs),
        connect: duration(written.connect),
        http_request: duration(written.http_request),
        http_keep_alive: duration(written.http_keep_alive),
        queue: duration(written.queue),
        server: duration(written.server),
        server_fin: duration(written.server_fin),
        stream: duration(written.stream),
        tarpit: duration(written.tarpit),
        tunnel: duration(written.tunnel),
        check: duration(written.check),
    }
}
