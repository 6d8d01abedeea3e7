//! Configurations with QUIC addresses: the compiled addresses and limits, and messages.

use super::limits;
use crate::compile::tls::tests::compile_text;
use crate::program::{
    Bind, BindAddress, MuxProtocol, Program, QuicConnecting, QuicListening, QuicServerLimits, QuicStreamLimits,
};
use config::spec::{GlobalSpec, QuicCongestion, QuicServerTuneSpec, QuicTuneSpec, SocketKind};
use std::time::Duration;

/// Compiles a configuration with lines in the global section, and lines in a frontend `f` in HTTP mode.
fn compile(global: &[&str], frontend: &[&str]) -> (Option<Program>, Vec<String>) {
    let lines = |lines: &[&str]| lines.iter().map(|line| format!(" {line}\n")).collect::<String>();
    let times = "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n";
    compile_text(&format!("global\n nbthread 4\n{}{times}frontend f\n{}", lines(global), lines(frontend)))
}

fn binds(global: &[&str], frontend: &[&str]) -> Vec<Bind> {
    let (program, messages) = compile(global, frontend);
    let program = program.unwrap_or_else(|| panic!("{messages:?}"));
    program.proxies[0].frontend.as_ref().unwrap().binds.clone()
}

/// The messages of a configuration that cannot be compiled.
fn refused(global: &[&str], frontend: &[&str]) -> Vec<String> {
    let (program, messages) = compile(global, frontend);
    assert!(program.is_none(), "{messages:?}");
    messages
}

#[test]
fn each_address_of_a_line_has_its_own_protocol() {
    let found = binds(
        &["tune.quic.fe.cc.max-win-size 2m", "cluster-secret x"],
        &[
            "bind :1,quic4@192.0.2.1:1 ssl crt rsa.pem",
            "bind quic6@[::1]:2 ssl crt rsa.pem quic-cc-algo bbr(1m) quic-force-retry proto quic shards 2",
            "bind quic4@:3 ssl crt-list alpn.list quic-cc-algo nocc",
        ],
    );
    let [tcp, first, second, third] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(tcp.address, BindAddress::Inet("0.0.0.0:1".parse().unwrap()));
    assert_eq!(tcp.listening.quic, None);
    assert_eq!(first.address, BindAddress::Quic("192.0.2.1:1".parse().unwrap()));
    let cubic = QuicListening {
        congestion: QuicCongestion::Cubic,
        max_window: 2 << 20,
        forces_retry: false,
        webtransport: false,
    };
    assert_eq!(first.listening.quic, Some(cubic));
    assert_eq!(second.address, BindAddress::Quic("[::1]:2".parse().unwrap()));
    let bbr =
        QuicListening { congestion: QuicCongestion::Bbr, max_window: 1 << 20, forces_retry: true, webtransport: false };
    assert_eq!((second.listening.quic, second.shards), (Some(bbr), 1));
    let offered = |bind: &Bind| -> Vec<Vec<String>> {
        let entries = bind.tls.as_ref().unwrap().entries();
        let text = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
        entries.iter().map(|entry| entry.settings.alpn.iter().map(text).collect()).collect()
    };
    assert_eq!(offered(tcp), [["h2", "http/1.1"]]);
    assert_eq!((offered(first), offered(second)), (vec![vec!["h3".to_owned()]], vec![vec!["h3".to_owned()]]));
    // A line of a crt-list speaks of TCP.
    assert_eq!(offered(third), [["h3"]]);
}

#[test]
fn wrong_quic_lines() {
    let rows: &[(&[&str], &str)] = &[
        (
            &["mode tcp", "bind quic4@:1 ssl crt rsa.pem"],
            "proxy 'f' : MUX protocol 'quic' is not usable for 'bind quic4@:1' at [x:10].",
        ),
        (
            &["bind quic4@:1 ssl crt rsa.pem proto h2"],
            "proxy 'f' : MUX protocol 'h2' is not usable for 'bind quic4@:1' at [x:9].",
        ),
        (&["bind :1 proto quic"], "proxy 'f' : MUX protocol 'quic' is not usable for 'bind :1' at [x:9]."),
        (&["bind quic4@:1 ssl"], "Proxy 'f': no SSL certificate specified for bind 'quic4@:1' at [x:9] (use 'crt')."),
        (
            &["bind quic4@:1 ssl crt rsa.pem ssl-max-ver TLSv1.2"],
            "Proxy 'f': QUIC needs TLSv1.3, which is disabled for bind 'quic4@:1' at [x:9].",
        ),
        (
            &["bind quic4@:1 ssl crt rsa.pem", "bind quic4@*:1 ssl crt rsa.pem"],
            "'bind quic4@*:1' : the line at [x:9] has this QUIC address already.",
        ),
    ];
    for (lines, expected) in rows {
        let messages = refused(&[], lines);
        assert!(messages.iter().any(|message| message == expected), "{expected}: {messages:#?}");
    }
}

#[test]
fn quic_addresses_that_differ_in_their_network_are_different() {
    let lines = [
        "bind quic4@:1 ssl crt rsa.pem",
        "bind quic4@:1 ssl crt rsa.pem interface lo",
        "bind quic4@:2 ssl crt rsa.pem",
        "bind quic6@:1 ssl crt rsa.pem",
        "bind :1 ssl crt rsa.pem",
    ];
    assert_eq!(binds(&[], &lines).len(), lines.len());
}

#[test]
fn quic_limits_have_the_defaults_of_the_manual() {
    let found = limits(&GlobalSpec::default(), 16_384);
    assert!(found.listens && found.refuses_privileged_ports && found.segments);
    assert_eq!((found.cluster_secret, found.retry_threshold), (None, None));
    assert_eq!((found.idle_timeout, found.glitches, found.transmit_memory), (Some(Duration::from_secs(30)), 0, None));
    assert_eq!(found.send_buffer, None);
    // 90 % of 100 buffers.
    let streams =
        QuicStreamLimits { concurrent: 100, total: 0, connection_window: 1_638_400, stream_window: 1_474_560 };
    assert_eq!(found.streams, streams);
    let mut written = GlobalSpec { cluster_secret: Some("s".to_owned()), ..GlobalSpec::default() };
    assert_eq!(limits(&written, 16_384).retry_threshold, Some(100));
    written.tune.sndbuf_frontend = Some(4_096);
    written.tune.quic = QuicTuneSpec {
        listen: Some(false),
        transmit_memory: Some(1 << 30),
        reject_privileged_ports: Some(false),
        idle_timeout: Some(0),
        max_window: None,
        glitches: Some(7),
        retry_threshold: Some(0),
        streams: Some(10),
        total_streams: Some(1_000),
        receive_buffer: Some(100_000),
        data_ratio: Some(50),
        segmentation: Some(false),
        servers: QuicServerTuneSpec { idle_timeout: Some(0), receive_buffer: Some(50_000), ..Default::default() },
    };
    let found = limits(&written, 16_384);
    assert!(!found.listens && !found.refuses_privileged_ports && !found.segments);
    assert_eq!((found.cluster_secret.as_deref(), found.retry_threshold), (Some(&b"s"[..]), Some(0)));
    assert_eq!((found.idle_timeout, found.glitches, found.transmit_memory), (None, 7, Some(1 << 30)));
    assert_eq!(found.send_buffer, Some(4_096));
    // Half of it, in whole buffers.
    let streams = QuicStreamLimits { concurrent: 10, total: 1_000, connection_window: 100_000, stream_window: 65_536 };
    assert_eq!(found.streams, streams);
    // 90 %, in whole buffers.
    let servers = QuicServerLimits {
        idle_timeout: None,
        glitches: 0,
        segments: true,
        connection_window: 50_000,
        stream_window: 49_152,
    };
    assert_eq!(found.servers, servers);
    written.tune.quic.data_ratio = Some(0);
    assert_eq!(limits(&written, 16_384).streams.stream_window, 16_384);
}

#[test]
fn an_inherited_descriptor_belongs_to_one_line() {
    let found = binds(&[], &["bind quic+fd@9 ssl crt rsa.pem"]);
    assert_eq!(found[0].address, BindAddress::Descriptor { fd: 9, kind: SocketKind::Quic, is_carrier: false });
    assert!(found[0].listening.quic.is_some());
    let twice = ["bind quic+fd@9 ssl crt rsa.pem", "bind quic+fd@9 ssl crt rsa.pem"];
    let expected = "'bind' : file descriptor '9' is that of the line at [x:9] already.";
    assert!(refused(&[], &twice).iter().any(|message| message == expected));
}

/// Compiles a configuration with lines in a backend `b` in HTTP mode, and QUIC's experimental lines permitted.
fn towards(backend: &[&str]) -> (Option<Program>, Vec<String>) {
    let lines: String = backend.iter().map(|line| format!(" {line}\n")).collect();
    let times = "defaults\n mode http\n timeout server 1s\n timeout connect 1s\n";
    compile_text(&format!("global\n expose-experimental-directives\n{times}backend b\n{lines}"))
}

#[test]
fn servers_over_quic_have_their_protocol() {
    let lines = [
        "default-server ssl verify none alpn h2,http/1.1",
        "server tcp 192.0.2.1:1",
        "server quic quic4@192.0.2.1:1 quic-cc-algo newreno(1m) ws h1",
        "server plain quic6@[::1]:1 proto quic alpn h2",
    ];
    let (program, messages) = towards(&lines);
    let program = program.unwrap_or_else(|| panic!("{messages:?}"));
    let servers = &program.proxies[0].backend.as_ref().unwrap().servers;
    let connecting = |name: &str| {
        let server = servers.iter().find(|server| &*server.name == name).unwrap();
        std::sync::Arc::clone(&server.connecting)
    };
    let tcp = connecting("tcp");
    assert_eq!((tcp.quic, tcp.negotiates, tcp.protocol), (None, true, None));
    let newreno = QuicConnecting { congestion: QuicCongestion::NewReno, max_window: 1 << 20, webtransport: false };
    let cubic = QuicConnecting { congestion: QuicCongestion::Cubic, max_window: 480 << 10, webtransport: false };
    for (name, expected) in [("quic", newreno), ("plain", cubic)] {
        let found = connecting(name);
        assert_eq!((found.quic, found.negotiates, found.websockets), (Some(expected), false, None), "{name}");
        assert_eq!(found.protocol, Some(MuxProtocol::Quic), "{name}");
        let tls = found.tls.as_ref().unwrap();
        assert!(tls.client.offers(b"h3") && !tls.client.offers(b"h2"), "{name}");
    }
}

#[test]
fn wrong_servers_over_quic() {
    let rows: &[(&[&str], &str)] = &[
        (&["server s quic4@192.0.2.1:1"], "'server b/s' : QUIC needs TLS, but 'ssl' is missing."),
        (
            &["server s quic4@192.0.2.1:1 ssl verify none ssl-max-ver TLSv1.2"],
            "'server b/s' : QUIC needs TLSv1.3, which is disabled.",
        ),
        (
            &["server s quic4@192.0.2.1:1 ssl verify none send-proxy-v2"],
            "'server b/s' : 'send-proxy-v2' is not possible over QUIC.",
        ),
        (
            &["server s quic4@192.0.2.1:1 ssl verify none socks4 192.0.2.9:1"],
            "'server b/s' : 'socks4' is not possible over QUIC.",
        ),
        (
            &["mode tcp", "server s quic4@192.0.2.1:1 ssl verify none"],
            "backend 'b' : MUX protocol 'quic' is not usable for server 's' at [x:9].",
        ),
        (
            &["server s quic4@192.0.2.1:1 ssl verify none proto h2"],
            "backend 'b' : MUX protocol 'h2' is not usable for server 's' at [x:8].",
        ),
        (
            &["server s 192.0.2.1:1 proto quic"],
            "backend 'b' : MUX protocol 'quic' is not usable for server 's' at [x:8].",
        ),
    ];
    for (lines, expected) in rows {
        let (program, messages) = towards(lines);
        assert!(program.is_none() && messages.iter().any(|message| message == expected), "{expected}: {messages:#?}");
    }
}

/// `webtransport` needs a QUIC address; sessions have connections of their own there.
#[test]
fn sessions_need_a_server_over_quic() {
    let (program, messages) = towards(&["server one quic4@192.0.2.1:1 ssl verify none webtransport"]);
    let program = program.unwrap_or_else(|| panic!("{messages:?}"));
    let connecting = &program.proxies[0].backend.as_ref().unwrap().servers[0].connecting;
    assert_eq!(connecting.quic.map(|quic| quic.webtransport), Some(true));
    assert_eq!(connecting.websockets, Some(MuxProtocol::Quic));
    let (program, messages) = towards(&["server one 192.0.2.1:1 ssl verify none webtransport"]);
    assert!(program.is_none());
    let is_told = |message: &String| message.contains("'webtransport' needs a QUIC address.");
    assert!(messages.iter().any(is_told), "{messages:?}");
}

#[test]
fn sessions_are_those_of_a_line() {
    let found = binds(&[], &["bind quic4@:1 ssl crt rsa.pem webtransport", "bind quic4@:2 ssl crt rsa.pem"]);
    let of = |at: usize| found[at].listening.quic.map(|quic| quic.webtransport);
    assert_eq!([of(0), of(1)], [Some(true), Some(false)]);
}
