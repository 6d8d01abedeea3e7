//! Fetches of the connections themselves: the real addresses of both ends, network statistics, the PROXY header of a
//! balancer in front (section 7.3.3). Must never return an address that a rule has set.

use super::process::{check_unit, in_unit};
use super::{Fetch, SampleOf, plain};
use crate::sample::{ConnectionError, Context, Places, ProtocolFacts, Transport, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use wire::proxy_protocol::{kind, ssl_kind};

const CLIENT: Places = Places::CLIENT;
const SERVER: Places = Places::SERVER_LAYER5;
const INT: Type = Type::Int;

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    Fetch::new("accept_date", UNIT, INT, CLIENT, "Date when the connection was accepted.", accept_date)
        .checked(check_date),
    plain("bc_dst", Type::Addr, SERVER, "The server's address.", |c, _| ask(c, Transport::ServerAddress)),
    plain("bc_dst_port", INT, SERVER, "The server's port.", |c, _| ask(c, Transport::ServerPort)),
    plain("bc_http_major", INT, SERVER, "Major version of HTTP on the connection to the server.", |c, _| {
        major(c, c.probes.stream()?.link?.protocol)
    }),
    rtt("bc_rtt", "Round-trip time to the server.", |c, a| in_time(c, a, Transport::ServerRtt)),
    rtt("bc_rttvar", "Variance of the round-trip time to the server.", |c, a| {
        in_time(c, a, Transport::ServerRttVariance)
    }),
    plain("bc_src", Type::Addr, SERVER, "Source address of the connection to the server.", |c, _| {
        ask(c, Transport::ServerSource)
    }),
    plain("bc_src_port", INT, SERVER, "Source port of the connection to the server.", |c, _| {
        ask(c, Transport::ServerSourcePort)
    }),
    plain("dst_is_local", Type::Bool, CLIENT, "Whether `dst` is an address of this machine.", |c, _| {
        is_local(c, c.probes.destination().map(|address| address.ip().into()))
    }),
    plain(
        "fc_dst",
        Type::Addr,
        CLIENT,
        "Original destination address of the client's connection, whatever rules and PROXY headers set.",
        |c, _| ask(c, Transport::ClientDestination),
    ),
    plain("fc_dst_is_local", Type::Bool, CLIENT, "Whether `fc_dst` is an address of this machine.", |c, _| {
        is_local(c, ask(c, Transport::ClientDestination))
    }),
    plain("fc_dst_port", INT, CLIENT, "Port of `fc_dst`.", |c, _| ask(c, Transport::ClientDestinationPort)),
    plain("fc_err", INT, CLIENT, "Error code of the client's connection; 0: no error.", |c, _| {
        Some(Value::Int(error(c).number().into()))
    }),
    plain(
        "fc_err_name",
        Type::Str,
        CLIENT,
        "Name of the error of the client's connection; empty: no error.",
        |c, _| Some(Value::Str(error(c).name().as_bytes())),
    ),
    plain("fc_err_str", Type::Str, CLIENT, "Description of the error of the client's connection.", |c, _| {
        Some(Value::Str(error(c).message().as_bytes()))
    }),
    number("fc_fackets", "Forward acknowledgements, as counted by the kernel.", |c, _| {
        ask(c, Transport::ClientFackets)
    }),
    plain("fc_glitches", INT, CLIENT, "Glitches counted on the client's connection.", |c, _| {
        let glitches = c.probes.stream().map(|_| protocol(c).glitches)?;
        speaks_http(c).then(|| Value::Int(glitches.into()))
    }),
    plain("fc_http_major", INT, CLIENT, "Major version of HTTP on the client's connection.", |c, _| {
        major(c, protocol(c))
    }),
    number("fc_lost", "Segments that the kernel considers lost.", |c, _| ask(c, Transport::ClientLost)),
    plain("fc_nb_streams", INT, CLIENT, "Number of streams on the client's connection.", |c, _| {
        c.probes.stream().map(|_| Value::Int(protocol(c).streams.into()))
    }),
    plain("fc_pp_authority", Type::Str, CLIENT, "Authority TLV of the PROXY header: the host name.", |c, _| {
        tlv(c, kind::AUTHORITY)
    }),
    Fetch::new("fc_pp_tlv", NAME, Type::Str, TLV, "Value of a TLV of the PROXY header, by its type.", fc_pp_tlv)
        .each(fc_pp_tlv_each)
        .checked(check_tlv),
    plain("fc_pp_unique_id", Type::Str, CLIENT, "Unique ID TLV of the PROXY header.", |c, _| tlv(c, kind::UNIQUE_ID)),
    plain("fc_rcvd_proxy", Type::Bool, CLIENT, "Whether a PROXY header was received.", |c, _| {
        Some(Value::Bool(c.probes.session()?.header.is_some()))
    }),
    number("fc_reordering", "Reordering metric of the client's connection, as measured by the kernel.", |c, _| {
        ask(c, Transport::ClientReordering)
    }),
    number("fc_retrans", "Retransmitted segments.", |c, _| ask(c, Transport::ClientRetransmits)),
    rtt("fc_rtt", "Round-trip time to the client.", |c, a| in_time(c, a, Transport::ClientRtt)),
    rtt("fc_rttvar", "Variance of the round-trip time to the client.", |c, a| {
        in_time(c, a, Transport::ClientRttVariance)
    }),
    number("fc_sacked", "Selectively acknowledged segments.", |c, _| ask(c, Transport::ClientSacked)),
    plain(
        "fc_saved_syn",
        Type::Bin,
        CLIENT,
        "The saved SYN packet of the client's connection (`tcp-ss`); one use only.",
        saved_syn,
    ),
    plain(
        "fc_settings_streams_limit",
        INT,
        TLV,
        "Maximum number of concurrent streams on the client's connection.",
        |c, _| c.probes.stream().map(|_| Value::Int(protocol(c).limit.into())),
    ),
    plain(
        "fc_src",
        Type::Addr,
        CLIENT,
        "Original source address of the client's connection, whatever rules and PROXY headers set.",
        |c, _| ask(c, Transport::ClientAddress),
    ),
    plain("fc_src_is_local", Type::Bool, CLIENT, "Whether `fc_src` is an address of this machine.", |c, _| {
        is_local(c, ask(c, Transport::ClientAddress))
    }),
    plain("fc_src_port", INT, CLIENT, "Port of `fc_src`.", |c, _| ask(c, Transport::ClientPort)),
    number("fc_unacked", "Unacknowledged segments.", |c, _| ask(c, Transport::ClientUnacked)),
    plain("src_is_local", Type::Bool, CLIENT, "Whether `src` is an address of this machine.", |c, _| {
        is_local(c, c.probes.source().map(|address| address.ip().into()))
    }),
];

const NAME: Signature = Signature::new(1, &[Kind::Str]);
const UNIT: Signature = Signature::new(0, &[Kind::Str]);
const TLV: Places = Places::CLIENT_LAYER5;

/// A number that HAProxy declares with an argument that has no effect.
const fn number(name: &'static str, doc: &'static str, eval: SampleOf) -> Fetch {
    Fetch::new(name, UNIT, INT, CLIENT, doc, eval).of_kernel()
}

const fn rtt(name: &'static str, doc: &'static str, eval: SampleOf) -> Fetch {
    Fetch::new(name, UNIT, INT, CLIENT, doc, eval).checked(check_rtt).of_kernel()
}

fn ask<'a>(context: &Context<'a>, fact: Transport) -> Option<Value<'a>> {
    context.probes.transport(fact)
}

fn error(context: &Context<'_>) -> ConnectionError {
    context.probes.session().map_or(ConnectionError::NONE, |session| session.error)
}

fn protocol(context: &Context<'_>) -> ProtocolFacts {
    context.probes.session().map(|session| session.protocol).unwrap_or_default()
}

fn major<'a>(context: &Context<'a>, of: ProtocolFacts) -> Option<Value<'a>> {
    speaks_http(context).then(|| Value::Int(of.major.into()))
}

/// Whether the frontend takes messages apart.
pub(super) fn speaks_http(context: &Context<'_>) -> bool {
    let knows = context.program.zip(context.frontend);
    knows.is_none_or(|(program, frontend)| program.is_http(frontend))
}

fn is_local<'a>(context: &Context<'a>, address: Option<Value<'a>>) -> Option<Value<'a>> {
    let address = match address {
        Some(Value::Ipv4(address)) => address.into(),
        Some(Value::Ipv6(address)) => address.into(),
        // A client on a UNIX socket is local.
        _ => return Some(Value::Bool(true)),
    };
    context.probes.is_local(address).map(Value::Bool)
}

fn check_date(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    check_unit(arguments, 0)
}

fn accept_date<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let stream = context.probes.stream().map(|stream| stream.start_date);
    let date = stream.or_else(|| context.probes.session().map(|session| session.accept_date))?;
    Some(Value::Int(in_unit(date, arguments.int(0))))
}

fn check_rtt(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let parts = match arguments.utf8(0) {
        None | Some("ms") => 1_000,
        Some("us") => 1,
        Some(other) => return Err(format!("expects 'us' or 'ms', got '{other}'")),
    };
    arguments.set(0, Argument::Int(parts));
    Ok(())
}

fn in_time<'a>(context: &Context<'a>, arguments: &Arguments, fact: Transport) -> Option<Value<'a>> {
    let micros = ask(context, fact)?.integer()?;
    Some(Value::Int(micros / arguments.int(0).unwrap_or(1_000).max(1)))
}

/// The kernel returns it only once: a configuration that needs it twice stores it in a variable.
fn saved_syn<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let mut found = None;
    context.probes.lend_saved_syn(&mut |bytes| found = context.copy(bytes));
    found.map(Value::Bin)
}

/// The types by their names in the manual.
const TYPES: &[(&str, u8)] = &[
    ("ALPN", kind::ALPN),
    ("AUTHORITY", kind::AUTHORITY),
    ("CRC32C", kind::CRC32C),
    ("NETNS", kind::NETNS),
    ("NOOP", kind::NOOP),
    ("SSL", kind::SSL),
    ("SSL_CIPHER", ssl_kind::CIPHER),
    ("SSL_CN", ssl_kind::CN),
    ("SSL_KEY_ALG", ssl_kind::KEY_ALG),
    ("SSL_SIG_ALG", ssl_kind::SIG_ALG),
    ("SSL_VERSION", ssl_kind::VERSION),
    ("UNIQUE_ID", kind::UNIQUE_ID),
];

fn check_tlv(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let text = arguments.utf8(0).unwrap_or_default();
    let named = TYPES.iter().find(|(name, _)| *name == text || (*name == "CRC32C" && text == "CRC32"));
    let number = match named {
        Some((_, number)) => i64::from(*number),
        None => match text.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
        .ok_or_else(|| format!("Could not convert type '{text}'"))?,
    };
    if !(0..=255).contains(&number) {
        return Err(format!("Invalid TLV Type '{text}'"));
    }
    arguments.set(0, Argument::Int(number));
    Ok(())
}

/// Returns the first value of that type. Subtypes of the SSL type are searched within it.
fn tlv<'a>(context: &Context<'a>, wanted: u8) -> Option<Value<'a>> {
    let mut found = None;
    each_tlv(context, wanted, &mut |value| {
        found = Some(value);
        true
    });
    found
}

fn each_tlv<'a>(context: &Context<'a>, wanted: u8, take: &mut dyn FnMut(Value<'a>) -> bool) -> bool {
    let Some(header) = context.probes.session().and_then(|session| session.header) else { return false };
    header.tlvs.iter().filter(|tlv| tlv.kind == wanted).any(|tlv| take(Value::Str(tlv.value)))
}

fn fc_pp_tlv<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    tlv(context, u8::try_from(arguments.int(0)?).ok()?)
}

fn fc_pp_tlv_each<'a>(
    context: &Context<'a>,
    arguments: &'a Arguments,
    take: &mut dyn FnMut(Value<'a>) -> bool,
) -> bool {
    let wanted = arguments.int(0).and_then(|wanted| u8::try_from(wanted).ok());
    wanted.is_some_and(|wanted| each_tlv(context, wanted, take))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn both_connections() {
        let rows = [
            ("accept_date", "1600000000"),
            ("accept_date(ms)", "1600000000250"),
            ("accept_date(x)", "!invalid args in fetch method 'accept_date' : expects 's', 'ms' or 'us', got 'x'"),
            ("fc_src", "192.0.2.77"),
            ("fc_src_port", "7777"),
            ("fc_dst", "<none>"),
            ("fc_dst_port", "<none>"),
            ("fc_rtt", "1"),
            ("fc_rtt(us)", "1500"),
            ("fc_rtt(x)", "!invalid args in fetch method 'fc_rtt' : expects 'us' or 'ms', got 'x'"),
            ("fc_rttvar", "<none>"),
            ("fc_unacked", "<none>"),
            ("fc_sacked", "<none>"),
            ("fc_retrans", "<none>"),
            ("fc_fackets", "<none>"),
            ("fc_lost", "<none>"),
            ("fc_reordering", "<none>"),
            ("bc_rtt", "2"),
            ("bc_rtt(us)", "2500"),
            ("bc_rttvar(ms)", "<none>"),
            ("bc_rtt(s)", "!invalid args in fetch method 'bc_rtt' : expects 'us' or 'ms', got 's'"),
            ("fc_saved_syn,hex", "4500002C"),
            ("bc_src", "<none>"),
            ("bc_src_port", "<none>"),
            ("bc_dst", "<none>"),
            ("bc_dst_port", "<none>"),
            ("bc_http_major", "1"),
            ("fc_http_major", "1"),
            ("fc_nb_streams", "1"),
            ("fc_settings_streams_limit", "1"),
            ("fc_glitches", "0"),
            ("fc_err", "13"),
            ("fc_err_name", "PRX_TIMEOUT"),
            ("fc_err_str", "Timeout while waiting for PROXY protocol header"),
            ("src_is_local", "0"),
            ("dst_is_local", "1"),
            ("fc_src_is_local", "0"),
            ("fc_dst_is_local", "1"),
        ];
        check_rows(&Scene::default(), &rows);
    }

    #[test]
    fn what_the_balancer_in_front_tells() {
        let rows = [
            ("fc_rcvd_proxy", "1"),
            ("fc_pp_authority", "a.b"),
            ("fc_pp_unique_id", "id-1"),
            ("fc_pp_tlv(AUTHORITY)", "a.b"),
            ("fc_pp_tlv(0x05)", "id-1"),
            ("fc_pp_tlv(5)", "id-1"),
            ("fc_pp_tlv(234)", "<none>"),
            ("fc_pp_tlv(300)", "!invalid args in fetch method 'fc_pp_tlv' : Invalid TLV Type '300'"),
            ("fc_pp_tlv(x)", "!invalid args in fetch method 'fc_pp_tlv' : Could not convert type 'x'"),
        ];
        check_rows(&Scene::default(), &rows);
    }
}
