//! Table of addresses. Every row with an error contains the sentence that HAProxy 3.5 prints for it.

use super::*;
use SocketKind::{Datagram, Quic, Stream};

fn environment() -> Environment {
    let mut environment = Environment::new();
    environment.set("ADDR", "10.0.0.1").unwrap();
    environment
}

fn show(text: &str, rules: &AddressRules) -> String {
    match parse(text, rules, &environment()) {
        Err(error) => error.to_string(),
        Ok(AddressSpec::Inet { host, family, port, kind, multipath }) => {
            let multipath = if multipath { " mptcp" } else { "" };
            let host = match host {
                HostSpec::Any => "*".to_owned(),
                HostSpec::Ip(ip) => ip.to_string(),
                HostSpec::Name(name) => format!("name {name}"),
            };
            let family = match family {
                Family::Unspecified => "",
                Family::V4 => " v4",
                Family::V6 => " v6",
            };
            let port = match port {
                PortSpec::None => String::new(),
                PortSpec::Exact(port) => format!(" port {port}"),
                PortSpec::Range(low, high) => format!(" ports {low} to {high}"),
                PortSpec::Offset(offset) => format!(" port {offset:+}"),
            };
            format!("{host}{family}{port}{}{multipath}", shown(kind))
        }
        Ok(AddressSpec::Unix { path, kind }) => format!("path {path}{}", shown(kind)),
        Ok(AddressSpec::Abstract { name, unpadded, kind }) => {
            format!("{} {name}{}", if unpadded { "unpadded" } else { "abstract" }, shown(kind))
        }
        Ok(AddressSpec::Reverse { server }) => format!("reverse {server}"),
        Ok(AddressSpec::Descriptor { fd, kind, is_carrier: true }) => format!("carrier {fd}{}", shown(kind)),
        Ok(AddressSpec::Descriptor { fd, kind, .. }) => format!("descriptor {fd}{}", shown(kind)),
    }
}

fn shown(kind: SocketKind) -> &'static str {
    match kind {
        Stream => "",
        Datagram => " datagram",
        Quic => " quic",
    }
}

fn check(rules: &AddressRules, rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(show(text, rules), *expected, "{text}");
    }
}

#[test]
fn listening_addresses() {
    check(
        &AddressRules::BIND,
        &[
            ("*:80", "* port 80"),
            (":80", "* port 80"),
            ("0.0.0.0:80", "* port 80"),
            ("1.2.3.4:80", "1.2.3.4 port 80"),
            ("1.2.3.4:080", "1.2.3.4 port 80"),
            ("1.2.3.4:65535", "1.2.3.4 port 65535"),
            ("1.2.3.4:80-90", "1.2.3.4 ports 80 to 90"),
            ("1.2.3.4:80-80", "1.2.3.4 port 80"),
            ("[::1]:80-81", "::1 ports 80 to 81"),
            (":::80", "* v6 port 80"),
            ("[::]:80", "* v6 port 80"),
            ("::1:80", "::1 port 80"),
            ("[::1]:80", "::1 port 80"),
            ("[1.2.3.4]:80", "1.2.3.4 port 80"),
            ("1:2:3:4:5:6:7:8:80", "1:2:3:4:5:6:7:8 port 80"),
            ("::ffff:1.2.3.4:80", "::ffff:1.2.3.4 port 80"),
            ("localhost:80", "name localhost port 80"),
            ("127.1:80", "name 127.1 port 80"),
            ("ipv4@1.2.3.4:80", "1.2.3.4 v4 port 80"),
            ("ipv4@:80", "* v4 port 80"),
            ("ipv4@*:80", "* v4 port 80"),
            ("ipv6@*:80", "* v6 port 80"),
            ("ipv6@:::80", "* v6 port 80"),
            ("ipv6@[::1]:80", "::1 v6 port 80"),
            ("ip@::1:80", "::1 port 80"),
            ("tcp@1.2.3.4:80", "1.2.3.4 port 80"),
            ("tcp4@localhost:80", "name localhost v4 port 80"),
            ("tcp6@::1:80", "::1 v6 port 80"),
            ("stream+:80", "* port 80"),
            ("stream+ipv4@:80", "* v4 port 80"),
            ("stream+tcp@:80", "* port 80"),
            ("unix@foo", "path foo"),
            ("unix@a:b", "path a:b"),
            ("/foo", "path /foo"),
            ("/foo:80", "path /foo:80"),
            ("unix@", "path "),
            ("uxst@/x", "path /x"),
            ("abns@x", "abstract x"),
            ("abnsz@x", "unpadded x"),
            ("fd@3", "descriptor 3"),
            ("stream+fd@0", "descriptor 0"),
        ],
    );
}

#[test]
fn wrong_listening_addresses() {
    check(
        &AddressRules::BIND,
        &[
            ("", "'' resolves to an empty address (environment variable missing?)"),
            ("*", "missing port specification in '*'"),
            ("80", "missing port specification in '80'"),
            ("::", "missing port specification in '::'"),
            ("1.2.3.4:", "missing port specification in '1.2.3.4:'"),
            ("[::1]", "missing port specification in '[::1]'"),
            ("[::1]80", "missing port specification in '[::1]80'"),
            ("*:0", "invalid port '0'"),
            ("1.2.3.4:65536", "invalid port '65536'"),
            ("1.2.3.4:80-", "invalid port ''"),
            ("1.2.3.4:80-99999", "invalid port '99999'"),
            ("1.2.3.4:90-80", "invalid port range '90-80'"),
            ("1.2.3.4:+1", "port offset not permitted here in '1.2.3.4:+1'"),
            ("1.2.3.4:-1", "port offset not permitted here in '1.2.3.4:-1'"),
            ("1.2.3.4:80x", "invalid character 'x' in port number '80x' in '1.2.3.4:80x'"),
            ("1.2.3.4: 80", "invalid character ' ' in port number ' 80' in '1.2.3.4: 80'"),
            ("1.2.3.4:80-9x", "invalid character 'x' in port number '9x' in '1.2.3.4:80-9x'"),
            ("::1", "invalid address: ':' in '::1'"),
            ("[::1", "invalid address: '[:' in '[::1'"),
            ("[]:80", "invalid address: '[]' in '[]:80'"),
            ("[foo]:80", "invalid address: '[foo]' in '[foo]:80'"),
            ("[*]:80", "invalid address: '[*]' in '[*]:80'"),
            ("[::1]x:80", "invalid address: '[::1]x' in '[::1]x:80'"),
            ("fe80::1%lo:80", "invalid address: 'fe80::1%lo' in 'fe80::1%lo:80'"),
            ("foo bar:80", "invalid address: 'foo bar' in 'foo bar:80'"),
            (".:80", "invalid address: '.' in '.:80'"),
            ("ipv4@::1:80", "invalid address: '::1' in 'ipv4@::1:80'"),
            ("ipv6@1.2.3.4:80", "invalid address: '1.2.3.4' in 'ipv6@1.2.3.4:80'"),
            ("IPV4@:80", "invalid address: 'IPV4@' in 'IPV4@:80'"),
            ("stream+stream+ip@:80", "invalid address: 'stream+ip@' in 'stream+stream+ip@:80'"),
            ("fd@", "file descriptor '' is not a valid integer in 'fd@'"),
            ("fd@x", "file descriptor 'x' is not a valid integer in 'fd@x'"),
            ("fd@-1", "file descriptor '-1' is not a valid integer in 'fd@-1'"),
            ("fd@+1", "file descriptor '+1' is not a valid integer in 'fd@+1'"),
            ("udp@1.2.3.4:80", "dgram-type address not acceptable in 'udp@1.2.3.4:80'"),
            ("uxdg@/x", "dgram-type address not acceptable in 'uxdg@/x'"),
            ("dgram+unix@/x", "dgram-type address not acceptable in 'dgram+unix@/x'"),
            ("stream+udp@:80", "dgram-type address not acceptable in 'stream+udp@:80'"),
        ],
    );
}

#[test]
fn server_addresses() {
    check(
        &AddressRules::SERVER,
        &[
            ("1.2.3.4", "1.2.3.4"),
            ("1.2.3.4:", "1.2.3.4"),
            ("1.2.3.4:0", "1.2.3.4 port 0"),
            ("1.2.3.4:+100", "1.2.3.4 port +100"),
            ("1.2.3.4:-5", "1.2.3.4 port -5"),
            ("1.2.3.4:+", "1.2.3.4 port +0"),
            (":+5", "* port +5"),
            ("*", "*"),
            ("[::1]", "::1"),
            ("udp@1.2.3.4:53", "1.2.3.4 port 53 datagram"),
            ("1.2.3.4:80-90", "port range not permitted here in '1.2.3.4:80-90'"),
            ("fd@3", "a file descriptor is not acceptable here in 'fd@3'"),
            ("*:80,*:81", "invalid address: '*:80,*' in '*:80,*:81'"),
        ],
    );
}

#[test]
fn log_addresses() {
    check(
        &AddressRules::LOG,
        &[
            ("127.0.0.1", "127.0.0.1 datagram"),
            ("127.0.0.1:514", "127.0.0.1 port 514 datagram"),
            ("/dev/log", "path /dev/log datagram"),
            ("tcp@1.2.3.4:80", "1.2.3.4 port 80"),
            ("stream+fd@3", "descriptor 3"),
            ("fd@1", "descriptor 1 datagram"),
            ("1.2.3.4:+5", "port offset not permitted here in '1.2.3.4:+5'"),
        ],
    );
}

#[test]
fn prefixes_that_are_not_served_yet() {
    for text in
        ["quic4@:80", "quic6@:80", "quic+ipv4@:80", "quic+fd@3", "mptcp@:80", "mptcp4@:1", "mptcp6@:1", "rhttp@be/srv"]
    {
        let shown = show(text, &AddressRules::BIND);
        assert!(shown.contains("not supported yet") && shown.contains(text), "{shown}");
    }
}

#[test]
fn quic_addresses_are_for_the_lines_of_proxies() {
    check(
        &AddressRules::PROXY_BIND,
        &[
            ("quic4@:443", "* v4 port 443 quic"),
            ("quic4@0.0.0.0:443", "* v4 port 443 quic"),
            ("quic6@:443", "* v6 port 443 quic"),
            ("quic6@[::1]:443-444", "::1 v6 ports 443 to 444 quic"),
            ("quic+ipv4@localhost:443", "name localhost v4 port 443 quic"),
            ("quic+ip@::1:443", "::1 port 443 quic"),
            ("quic+:443", "* port 443 quic"),
            ("quic+fd@3", "descriptor 3 quic"),
            ("quic+tcp4@:443", "* v4 port 443"),
            ("quic4@", "missing port specification in 'quic4@'"),
            ("quic4@:0", "invalid port '0'"),
            ("quic4@[::1]:443", "invalid address: '[::1]' in 'quic4@[::1]:443'"),
            ("quic6@192.0.2.1:443", "invalid address: '192.0.2.1' in 'quic6@192.0.2.1:443'"),
            ("quic+unix@/run/x", "QUIC needs an IPv4 or IPv6 address in 'quic+unix@/run/x'"),
            ("quic+/run/x", "QUIC needs an IPv4 or IPv6 address in 'quic+/run/x'"),
            ("quic+abns@x", "QUIC needs an IPv4 or IPv6 address in 'quic+abns@x'"),
            ("quic+fd@x", "file descriptor 'x' is not a valid integer in 'quic+fd@x'"),
        ],
    );
    assert_eq!(show("quic4@192.0.2.1:443", &AddressRules::PROXY_SERVER), "192.0.2.1 v4 port 443 quic");
    for rules in [AddressRules::SERVER, AddressRules::LOG, AddressRules::SOURCE, AddressRules::DGRAM_BIND] {
        assert!(show("quic4@192.0.2.1:443", &rules).contains("not supported yet"));
    }
}

#[test]
fn carriers_are_for_addresses_and_servers_of_proxies() {
    for rules in [&AddressRules::PROXY_BIND, &AddressRules::PROXY_SERVER] {
        assert_eq!(show("sockpair@3", rules), "carrier 3");
        assert_eq!(show("sockpair@x", rules), "file descriptor 'x' is not a valid integer in 'sockpair@x'");
        assert_eq!(show("sockpair@", rules), "file descriptor '' is not a valid integer in 'sockpair@'");
    }
    for rules in [&AddressRules::BIND, &AddressRules::LOG, &AddressRules::SOURCE, &AddressRules::SERVER] {
        assert_eq!(show("sockpair@3", rules), "a file descriptor is not acceptable here in 'sockpair@3'");
    }
}

#[test]
fn multipath_is_for_addresses_and_servers_of_proxies() {
    for rules in [&AddressRules::PROXY_BIND, &AddressRules::PROXY_SERVER] {
        for (text, wanted) in
            [("mptcp@1.2.3.4:80", true), ("mptcp4@:80", true), ("mptcp6@[::1]:80", true), ("tcp@:80", false)]
        {
            let shown = show(text, rules);
            assert_eq!(shown.ends_with(" mptcp"), wanted, "{text}: {shown}");
        }
    }
}

#[test]
fn reverse_addresses_name_a_server() {
    check(&AddressRules::PROXY_BIND, &[("rhttp@be/srv", "reverse be/srv"), ("rhttp@", "reverse ")]);
}

#[test]
fn variables_need_no_quotes() {
    check(
        &AddressRules::BIND,
        &[
            ("$ADDR:80", "10.0.0.1 port 80"),
            ("${ADDR}:80", "10.0.0.1 port 80"),
            ("${NOPE}:80", "* port 80"),
            ("$NOPE", "'$NOPE' resolves to an empty address (environment variable missing?)"),
            ("${NOPE-x}:80", "invalid address: '-x}' in '${NOPE-x}:80'"),
        ],
    );
}

#[test]
fn long_paths_are_refused() {
    let path = format!("/{}", "a".repeat(96));
    assert_eq!(show(&path, &AddressRules::BIND), format!("path {path}"));
    assert_eq!(show(&format!("{path}a"), &AddressRules::BIND), format!("socket path '{path}a' too long (max 97)"));
    let name = format!("abns@{}", "a".repeat(108));
    assert_eq!(show(&name, &AddressRules::BIND), format!("socket path '{name}' too long (max 107)"));
}

#[test]
fn lists_are_cut_at_commas() {
    assert_eq!(split_list("*:80,,/x").collect::<Vec<_>>(), [(0, "*:80"), (5, ""), (6, "/x")]);
}

#[test]
fn expansion_ends() {
    let mut environment = Environment::new();
    environment.set("A", &"a".repeat(3000)).unwrap();
    let text = "$A".repeat(1000);
    assert!(expand(&text, &environment).len() < 10_000);
}

#[test]
fn helpful_hints() {
    let hint = |text| parse(text, &AddressRules::BIND, &Environment::new()).unwrap_err().hint();
    assert!(hint("::1").unwrap().contains("brackets"));
    assert!(hint("80").unwrap().contains("colon"));
}
