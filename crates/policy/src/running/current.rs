//! Fetches of the stream's effective limits: those that rules have set, else those of its proxies (section 7.3.3). Must
//! never return a proxy's limit if a rule has set another.

use crate::program::{ProgramContext, Proxy, Timeouts};
use expression::fetch::{Fetch, plain};
use expression::sample::{Context, OwnLimits, Places, Type, Value};
use std::time::Duration;

/// The fetches of this family.
pub const TABLE: &[Fetch] = &[
    plain(
        "cur_client_timeout",
        Type::Int,
        FRONT,
        "Current `timeout client` of the stream, in milliseconds.",
        |c, _| limit(c, c.frontend(), |own| own.client, |proxy| proxy.client),
    )
    .needing("frontend"),
    plain(
        "cur_connect_timeout",
        Type::Int,
        BACK,
        "Current `timeout connect` of the stream, in milliseconds.",
        |c, _| limit(c, configured(c), |own| own.connect, |proxy| proxy.connect),
    ),
    plain("cur_max_retries", Type::Int, BACK, "Current number of `retries` of the stream.", |c, _| {
        let retries = || configured(c).and_then(|proxy| proxy.backend.as_ref()).map_or(0, |backend| backend.retries);
        Some(Value::Int(c.probes.stream()?.own.retries.unwrap_or_else(retries).into()))
    }),
    plain("cur_queue_timeout", Type::Int, BACK, "Current `timeout queue` of the stream, in milliseconds.", |c, _| {
        limit(c, configured(c), |own| own.queue, Timeouts::queued)
    }),
    plain(
        "cur_server_timeout",
        Type::Int,
        BACK,
        "Current `timeout server` of the stream, in milliseconds, once the connection to the server is established.",
        |c, _| {
            let connected = c.probes.stream().is_some_and(|stream| stream.timings.connected.is_some());
            limit(c, connected.then(|| configured(c)).flatten(), |own| own.server, |proxy| proxy.server)
        },
    ),
    plain(
        "cur_tarpit_timeout",
        Type::Int,
        EITHER,
        "Current `timeout tarpit` of the stream, in milliseconds.",
        |c, _| {
            let of_back = configured(c).is_some();
            let or_connect = |proxy: &Timeouts| proxy.tarpit.or(proxy.connect.filter(|_| of_back));
            limit(c, c.backend(), |own| own.tarpit, or_connect)
        },
    )
    .needing("frontend,backend"),
    plain("cur_tunnel_timeout", Type::Int, BACK, "Current `timeout tunnel` of the stream, in milliseconds.", |c, _| {
        limit(c, configured(c), |own| own.tunnel, |proxy| proxy.tunnel)
    }),
];

const FRONT: Places = Places::CLIENT_SESSION;
const BACK: Places = Places::BACKEND;
const EITHER: Places = Places::CLIENT;

/// The proxy whose limits towards servers hold; a frontend has none.
pub(super) fn configured<'a>(context: &Context<'a>) -> Option<&'a Proxy> {
    context.backend().filter(|proxy| proxy.backend.is_some())
}

/// Returns a limit in milliseconds; 0 if there is none.
fn limit<'a>(
    context: &Context<'a>,
    proxy: Option<&Proxy>,
    set: impl Fn(&OwnLimits) -> Option<Duration>,
    written: impl Fn(&Timeouts) -> Option<Duration>,
) -> Option<Value<'a>> {
    let limit = set(&context.probes.stream()?.own).or_else(|| written(&proxy?.timeouts)).unwrap_or_default();
    Some(Value::Int(i64::try_from(limit.as_millis()).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use crate::running::tests::{Scene, check_rows};

    #[test]
    fn what_rules_set_comes_first() {
        let rows = [
            ("cur_client_timeout", "1500"),
            ("cur_connect_timeout", "0"),
            ("cur_max_retries", "7"),
            ("cur_queue_timeout", "0"),
            ("cur_server_timeout", "0"),
            ("cur_tarpit_timeout", "0"),
            ("cur_tunnel_timeout", "0"),
        ];
        check_rows(&Scene::running(), &rows);
    }
}
