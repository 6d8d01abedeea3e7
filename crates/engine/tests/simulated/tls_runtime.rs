//! Tests of TLS changes at run time: files of authorities and revocation lists, certificate lists, ticket keys, cached
//! sessions, and servers whose TLS is switched.

use testkit::{Peer, Service, sleep};
use tls::Client;
use tls::provider::Version;

use crate::api::{SOCKET, ask, order};
use crate::secure::{Secure, client, known_client, read_file};
use crate::world::*;

const SECURE: &str = "10.0.0.1:443";
const ALSO: &str = "10.0.0.1:444";
const VERSIONS: [(Version, Version); 2] = [(Version::Tls12, Version::Tls12), (Version::Tls13, Version::Tls13)];

fn payload(file: &str) -> String {
    String::from_utf8(read_file(file).unwrap()).unwrap()
}

/// The answer about a request's connection; `None`: the client was rejected.
async fn found(at: &str, client: &Client) -> Option<String> {
    let mut own = Secure::connect(at, client, 1_000).await.ok()?;
    let answer = own.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    Some(body.to_owned())
}

/// Clients are verified only by the committed files: sessions that began before are not resumed.
#[test]
fn files_of_authorities_are_exchanged() {
    for versions in VERSIONS {
        let lines = format!(
            "listen l\n bind {SECURE} ssl crt a.pem ca-file ca.pem verify required\n\
             http-request return status 200 content-type text/plain lf-string %[ssl_fc_is_resumed]\n"
        );
        config(&lines).global(SOCKET).workers(&[1]).seeds(0..1).run(move |world| async move {
            let client = known_client(versions);
            assert_eq!(found(SECURE, &client).await.as_deref(), Some("0"));
            assert_eq!(found(SECURE, &client).await.as_deref(), Some("1"));
            let former = payload("ca.pem");
            let other = payload("other.pem");
            let other = &other[..other.find("-----BEGIN PRIVATE").unwrap()];
            assert_eq!(
                ask(&format!("set ssl ca-file ca.pem <<EOF\n{other}EOF\n")).await,
                "transaction created for CA ca.pem!\n\n"
            );
            assert_eq!(
                ask("show ssl ca-file").await,
                "# transaction\n*ca.pem - 1 certificate(s)\n# filename\nca.pem - 1 certificate(s)\n\n"
            );
            assert_eq!(found(SECURE, &client).await.as_deref(), Some("1"), "nothing has changed before the commit");
            assert_eq!(ask("commit ssl ca-file ca.pem").await, "Committing ca.pem.\nSuccess!\n\n");
            assert_eq!(found(SECURE, &client).await, None);
            // An unusable set changes nothing, and stays in its transaction.
            let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
            ask(&format!("set ssl ca-file ca.pem <<\n{broken}\n")).await;
            let refused = ask("commit ssl ca-file ca.pem").await;
            assert!(refused.starts_with("Committing ca.pem\n") && refused.ends_with("\nFailed!\n\n"), "{refused}");
            assert!(ask("show ssl ca-file").await.starts_with("# transaction\n*ca.pem - 1 certificate(s)\n"));
            assert_eq!(ask("abort ssl ca-file ca.pem").await, "Transaction aborted for certificate 'ca.pem'!\n\n");
            assert_eq!(found(SECURE, &client).await, None);
            // In addition to the existing one.
            ask(&format!("add ssl ca-file ca.pem <<\n{former}\n")).await;
            assert_eq!(ask("commit ssl ca-file ca.pem").await, "Committing ca.pem.\nSuccess!\n\n");
            assert!(ask("show ssl ca-file").await.contains("\nca.pem - 2 certificate(s)\n"));
            assert_eq!(found(SECURE, &known_client(versions)).await.as_deref(), Some("0"));
            world.forget_log();
        });
    }
}

#[test]
fn revocation_lists_are_exchanged() {
    let lines = format!(
        "listen l\n bind {SECURE} ssl crt a.pem ca-file ca.pem crl-file none.crl verify required\n\
         http-request return status 200 content-type text/plain lf-string %[ssl_fc_is_resumed]\n"
    );
    config(&lines).global(SOCKET).workers(&[1]).seeds(0..1).run(|world| async move {
        let client = known_client(VERSIONS[1]);
        assert_eq!(found(SECURE, &client).await.as_deref(), Some("0"));
        ask(&format!("set ssl crl-file none.crl <<\n{}\n", payload("client.crl"))).await;
        assert!(ask("show ssl crl-file none.crl").await.contains("\nNo Revoked Certificates.\n"));
        let told =
            "\nRevoked Certificates:\n    Serial Number: 02\n        Revocation Date: Jan  1 00:00:00 2020 GMT\n";
        assert!(ask("show ssl crl-file *none.crl").await.contains(told));
        assert_eq!(found(SECURE, &client).await.as_deref(), Some("1"));
        assert_eq!(ask("commit ssl crl-file none.crl").await, "Committing none.crl.\nSuccess!\n\n");
        assert_eq!(found(SECURE, &client).await, None, "it would resume its session");
        ask(&format!("set ssl crl-file none.crl <<\n{}\n", payload("none.crl"))).await;
        ask("commit ssl crl-file none.crl").await;
        assert!(found(SECURE, &client).await.is_some());
        world.forget_log();
    });
}

/// Files named by lines that verify nothing are in memory: they can be replaced, and new lines can name them.
#[test]
fn files_are_kept_where_nothing_is_verified() {
    let lines = format!(
        "listen l\n bind {SECURE} ssl crt-list certs.list ca-file ca.pem crl-file none.crl\n\
         http-request return status 200 content-type text/plain lf-string %[ssl_c_used]\n\
         server s 10.0.0.9:443 ssl verify none ca-file other.pem\n"
    );
    config(&lines).global(SOCKET).workers(&[1]).seeds(0..1).run(|world| async move {
        let shown = ask("show ssl ca-file").await;
        assert_eq!(shown, "# filename\nca.pem - 1 certificate(s)\nother.pem - 1 certificate(s)\n\n");
        assert!(ask("show ssl crl-file").await.contains("\nnone.crl\n"));
        let other = payload("other.pem");
        let other = &other[..other.find("-----BEGIN PRIVATE").unwrap()];
        for (file, more) in [("ca.pem", other), ("other.pem", &payload("ca.pem"))] {
            ask(&format!("add ssl ca-file {file} <<\n{more}\n")).await;
            let done = ask(&format!("commit ssl ca-file {file}")).await;
            assert_eq!(done, format!("Committing {file}.\nSuccess!\n\n"));
            assert!(ask("show ssl ca-file").await.contains(&format!("\n{file} - 2 certificate(s)\n")));
        }
        assert_eq!(found(SECURE, &known_client(VERSIONS[1])).await.as_deref(), Some("0"));
        let line = "a.pem [ca-file ca.pem crl-file none.crl verify required] b.example";
        let added = ask(&format!("add ssl crt-list certs.list <<\n{line}\n")).await;
        assert!(added.ends_with("Success!\n\n"), "{added}");
        world.forget_log();
    });
}

/// Lines are added and removed; a new one names a file of authorities that was created at run time.
#[test]
fn lines_of_lists_come_and_go() {
    let lines = format!(
        "listen l\n bind {SECURE} ssl strict-sni crt-list certs.list\n bind {ALSO} ssl crt-list certs.list\n\
         http-request return status 200 content-type text/plain lf-string '%[ssl_c_used] %[ssl_fc_alpn]'\n"
    );
    config(&lines).global(SOCKET).workers(&[1]).seeds(0..1).run(|world| async move {
        let known = || known_client(VERSIONS[1]);
        assert_eq!(found(SECURE, &known()).await.as_deref(), Some("0 "));
        assert_eq!(ask("show ssl crt-list -n certs.list").await, "# certs.list\na.pem:2 [alpn http/1.1] a.example\n\n");
        let refused = ask("del ssl crt-list certs.list a.pem").await;
        assert!(refused.starts_with("Can't delete the entry: certificate 'a.pem' cannot be deleted, it is used as"));
        for (line, why) in [
            ("nothing.pem", "certificate 'nothing.pem' does not exist!"),
            ("a.pem [ca-file new.ca verify required] a.example", "'ca-file' : unable to load new.ca"),
            ("a.pem [foo]", "parsing [CLI:1]: unknown ssl keyword foo"),
            ("a.pem a\na.pem b", "only one line of payload is supported!"),
            ("a.pem [key b.key] a", "'key' cannot be used in lines that are added at run time, 'a.pem'"),
            (
                "a.pem [ocsp-update on] a",
                "'a.pem' is already instantiated with incompatible parameters:\n - different parameter 'ocsp-update' : \
                 previously 'default' (ocsp-update.mode off) vs 'on'",
            ),
            (
                "a.pem [jwt on] a",
                "'a.pem' is already instantiated with incompatible parameters:\n Can't use the certificate previously \
                 defined without any keyword with these keywords:",
            ),
        ] {
            let answer = ask(&format!("add ssl crt-list certs.list <<\n{line}\n")).await;
            assert_eq!(answer, format!("Can't edit the crt-list: {why}\n\n"));
        }
        let answer = ask("add ssl crt-list certs.list <<\na.pem [verify required] b.example\n").await;
        let why = "verify is enabled but no CA file specified for bind '10.0.0.1:443' at ";
        assert!(answer.contains(why) && answer.ends_with("Failed!\n\n"), "{answer}");
        assert!(!ask("show ssl crt-list certs.list").await.contains("b.example"));
        ask("new ssl ca-file new.ca").await;
        ask(&format!("set ssl ca-file new.ca <<\n{}\n", payload("ca.pem"))).await;
        assert_eq!(ask("commit ssl ca-file new.ca").await, "Committing new.ca\nSuccess!\n\n");
        ask("new ssl cert b.pem").await;
        ask(&format!("set ssl cert b.pem <<\n{}\n", payload("a.pem"))).await;
        ask("commit ssl cert b.pem").await;
        assert_eq!(
            ask("add ssl crt-list certs.list <<\nb.pem [ca-file new.ca verify required] *.example !c.example\n").await,
            "Inserting certificate 'b.pem' in crt-list 'certs.list'..\nSuccess!\n\n"
        );
        let names = ask("show ssl sni -f l").await;
        assert_eq!(names.matches("\t*.example\t!c.example \tecdsa\tb.pem\t").count(), 2, "{names}");
        assert!(ask("del ssl ca-file new.ca").await.contains("in use, can't be deleted!"));
        assert!(ask("show ssl cert b.pem").await.contains("Status: Used\n"));
        assert_eq!(
            ask("del ssl crt-list certs.list b.pem").await,
            "Entry 'b.pem' deleted in crtlist 'certs.list'!\n\n"
        );
        assert!(ask("show ssl cert b.pem").await.contains("Status: Unused\n"));
        assert_eq!(ask("del ssl ca-file new.ca").await, "CA file 'new.ca' deleted!\n\n");
        assert_eq!(ask("del ssl cert b.pem").await, "Certificate 'b.pem' deleted!\n\n");
        // Options of a line for an unused certificate apply from then on.
        ask("new ssl cert c.pem").await;
        ask(&format!("set ssl cert c.pem <<\n{}\n", payload("a.pem"))).await;
        ask("commit ssl cert c.pem").await;
        let added = ask("add ssl crt-list certs.list <<\nc.pem [ocsp-update on jwt on] d.example\n").await;
        assert!(added.ends_with("Success!\n\n"), "{added}");
        let shown = ask("show ssl cert c.pem").await;
        assert!(shown.contains("\nOption: ocsp-update on\nOption: jwt on\n"), "{shown}");
        assert_eq!(ask("show ssl jwt").await, "# filename\nc.pem\n\n");
        let refused = ask("add ssl crt-list certs.list <<\nc.pem e.example\n").await;
        assert!(refused.ends_with("previously 'on' vs 'default' (ocsp-update.mode off)\n\n"), "{refused}");
        world.forget_log();
    });
}

/// Tickets of one address are valid at another one with the same keys, until their key is removed.
#[test]
fn keys_of_tickets_are_shared_and_rotate() {
    for versions in VERSIONS {
        let lines = format!(
            "listen l\n bind {SECURE} ssl crt a.pem tls-ticket-keys ticket.keys\n\
             bind {ALSO} ssl crt a.pem tls-ticket-keys ticket.keys\n\
             http-request return status 200 content-type text/plain lf-string %[ssl_fc_is_resumed]\n"
        );
        config(&lines).global(SOCKET).workers(&[2]).seeds(0..1).run(move |world| async move {
            assert_eq!(ask("show tls-keys").await, "# id (file)\n0 (ticket.keys)\n\n");
            let line = |place: usize, letters: &str| format!("0.{place} {}\n", letters.repeat(16));
            let shown =
                ["# id secret\n# 0 (ticket.keys)\n", &line(0, "BBBB"), &line(1, "CCCC"), &line(2, "DDDD"), "\n"];
            assert_eq!(ask("show tls-keys *").await, shown.concat());
            let client = client(versions);
            assert_eq!(found(SECURE, &client).await.as_deref(), Some("0"));
            assert_eq!(found(ALSO, &client).await.as_deref(), Some("1"));
            let rotate = format!("set ssl tls-key #0 {}", "EEEE".repeat(16));
            assert_eq!(ask(&rotate).await, "TLS ticket key updated!\n\n");
            assert_eq!(found(SECURE, &client).await.as_deref(), Some("1"));
            // The ticket of a resumed session is encrypted by the key of that time; the third change removes all of
            // those keys.
            for _ in 0..3 {
                ask(&rotate).await;
            }
            let last = format!("set ssl tls-key ticket.keys {}", "FFFF".repeat(16));
            for _ in 0..3 {
                ask(&last).await;
            }
            assert_eq!(found(SECURE, &client).await.as_deref(), Some("0"));
            let short = ask("set ssl tls-key #0 AAAA").await;
            assert_eq!(short, "'set ssl tls-key' received a key of wrong size.\n\n");
            world.forget_log();
        });
    }
}

/// Sessions of clients without tickets are cached for all addresses and threads, and counted.
#[test]
fn sessions_are_remembered_for_all_addresses() {
    for versions in VERSIONS {
        for (size, resumed, counted) in [("20000", "1", (1, 0)), ("0", "0", (0, 0))] {
            let lines = format!(
                "listen l\n bind {SECURE} ssl crt a.pem no-tls-tickets\n bind {ALSO} ssl crt a.pem no-tls-tickets\n\
                 http-request return status 200 content-type text/plain lf-string %[ssl_fc_is_resumed]\n"
            );
            let global = format!("{SOCKET}\n tune.ssl.cachesize {size}");
            config(&lines).global(&global).workers(&[2]).seeds(0..1).run(move |world| async move {
                let client = client(versions);
                assert_eq!(found(SECURE, &client).await.as_deref(), Some("0"));
                assert_eq!(found(ALSO, &client).await.as_deref(), Some(resumed));
                let (lookups, misses) = counted;
                let info = ask("show info").await;
                let wanted = format!("SslCacheLookups: {lookups}\nSslCacheMisses: {misses}\n");
                assert!(info.contains(&wanted), "{wanted}{info}");
                world.forget_log();
            });
        }
    }
}

/// After a reload in place, earlier sessions of clients are resumed, by tickets and from the cache, unless the
/// requirements have changed.
#[test]
fn sessions_go_on_over_a_reload_in_place() {
    for versions in VERSIONS {
        for options in ["", "no-tls-tickets"] {
            let served = move |more: &str| {
                config(&format!(
                    "listen l\n bind {SECURE} ssl crt a.pem {options} {more}\n http-request return status 200 content-type text/plain \
                     lf-string %[ssl_fc_is_resumed]\n"
                ))
                .global(SOCKET)
            };
            served("").workers(&[2]).seeds(0..1).run(move |world| async move {
                let client = client(versions);
                assert_eq!(found(SECURE, &client).await.as_deref(), Some("0"));
                for next in [served("alpn http/1.1"), served("")] {
                    assert_eq!(world.adopt(&next), Ok(()));
                    sleep(10).await;
                    assert_eq!(found(SECURE, &client).await.as_deref(), Some("1"), "{versions:?} {options}");
                }
                assert_eq!(world.adopt(&served("ca-file ca.pem verify optional")), Ok(()));
                sleep(10).await;
                assert_eq!(found(SECURE, &client).await.as_deref(), Some("0"), "{versions:?} {options}");
                assert_eq!(found(SECURE, &client).await.as_deref(), Some("1"), "{versions:?} {options}");
                assert_eq!(world.adopt(&served("ca-file ca.pem verify required")), Ok(()));
                sleep(10).await;
                assert_eq!(found(SECURE, &client).await, None, "{versions:?} {options}");
                world.forget_log();
            });
        }
    }
}

/// Requests use TLS or not as set last; a link of the other kind is not reused.
#[test]
fn tls_towards_a_server_is_switched() {
    let lines = format!(
        "listen l\n bind {WEIR}\n http-reuse always\n default-server ssl verify none\n\
         server plain {S1} no-ssl\n server fixed {S2} backup\n\
         listen inner\n bind {SECURE} ssl crt a.pem\n http-request return status 204\n"
    );
    config(&lines).global(SOCKET).workers(&[1]).seeds(0..1).run(|world| async move {
        let shown = async |name: &str| {
            let text = ask("show servers state l").await;
            let line = text.lines().find(|line| line.split(' ').nth(3) == Some(name)).unwrap().to_owned();
            line.split(' ').nth(20).unwrap().to_owned()
        };
        assert_eq!((shown("plain").await, shown("fixed").await), ("-1".to_owned(), "1".to_owned()));
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut peer = s1.accept().await;
        assert!(peer.receive_head().await.unwrap().starts_with("GET / "));
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        client.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        assert_eq!(ask("set server l/plain ssl on").await, "server ssl setting updated.\n\n");
        assert_eq!(shown("plain").await, "1");
        peer.expect_end().await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let mut peer = s1.accept().await;
        assert_eq!(peer.receive(3).await, [22, 3, 1], "a hello");
        peer.reset();
        assert_eq!(ask("set server l/plain ssl off").await, "server ssl setting updated.\n\n");
        assert_eq!(shown("plain").await, "0");
        assert_eq!(ask("set server l/plain ssl maybe").await, "'set server <srv> ssl' expects 'on' or 'off'.\n\n");
        order("disable server l/plain").await;
        drop(client);
        sleep(1_000).await;
        world.forget_log();
    });
}

/// Tokens are verified by certificates that are allowed for that, as long as they are.
#[test]
fn certificates_are_allowed_for_tokens() {
    let lines = format!(
        "listen l\n bind {WEIR}\n bind {SECURE} ssl crt a.pem\n http-request set-var(txn.name) req.hdr(name)\n\
         http-request return status 200 content-type text/plain lf-string %[str(YQ.YQ.YWE),jwt_verify_cert(ES256,txn.name)]\n"
    );
    config(&lines).global(SOCKET).workers(&[1]).seeds(0..1).run(|world| async move {
        let verified = async |name: &str| {
            let mut client = Peer::connect(WEIR).await;
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nName: {name}\r\nConnection: close\r\n\r\n")).await;
            let answer = String::from_utf8(client.receive_rest().await).unwrap();
            answer.split_once("\r\n\r\n").unwrap().1.to_owned()
        };
        const UNKNOWN: &str = "Can't display the certificate: Not found or the certificate is a bundle!\n\n";
        assert_eq!((verified("a.pem").await, verified("b.pem").await), ("-7".to_owned(), "-5".to_owned()));
        assert_eq!(ask("add ssl jwt b.pem").await, UNKNOWN);
        order("add ssl jwt a.pem").await;
        assert_eq!(ask("show ssl jwt").await, "# filename\na.pem\n\n");
        let shown = ask("show ssl cert a.pem").await;
        assert!(shown.contains("\nOption: jwt on\nStatus: Used for JWT verification\n"), "{shown}");
        assert_eq!(verified("a.pem").await, "0", "another key has signed it");
        order("del ssl jwt a.pem").await;
        assert_eq!((verified("a.pem").await, verified("b.pem").await), ("-7".to_owned(), "-5".to_owned()));
        assert_eq!(ask("show ssl jwt").await, "# filename\n\n");
        ask("new ssl cert b.pem").await;
        ask(&format!("set ssl cert b.pem <<\n{}\n", payload("other.pem"))).await;
        assert_eq!(ask("add ssl jwt *b.pem").await, UNKNOWN);
        ask("commit ssl cert b.pem").await;
        order("add ssl jwt b.pem").await;
        let refused =
            "Can't remove the certificate: certificate 'b.pem' in use for JWT validation, can't be deleted!\n\n";
        assert_eq!(ask("del ssl cert b.pem").await, refused);
        order("del ssl jwt b.pem").await;
        assert_eq!(ask("del ssl cert b.pem").await, "Certificate 'b.pem' deleted!\n\n");
        assert_eq!(verified("b.pem").await, "-5");
        world.forget_log();
    });
}

/// Certificates without a key verify tokens, whether a section loads them or a converter names them: they are shown,
/// changed and deleted like others.
#[test]
fn certificates_without_a_key_are_for_tokens() {
    let lines =
        format!("crt-store\n load crt ca.pem jwt on\nlisten l\n bind {SECURE} ssl crt a.pem\n http-request deny\n");
    config(&lines).global(SOCKET).workers(&[1]).seeds(0..1).run(|world| async move {
        const UNKNOWN: &str = "Can't display the certificate: Not found or the certificate is a bundle!\n\n";
        let shown = async |name: &str| ask(&format!("show ssl cert {name}")).await;
        assert_eq!(ask("show ssl cert").await, "# filename\na.pem\nca.pem\n\n");
        let start = "Filename: ca.pem\nCrt filename: ca.pem\nOption: ocsp-update off\nOption: jwt on\nStatus: Used for JWT \
                     verification\nSerial: ";
        let found = shown("ca.pem").await;
        assert!(found.starts_with(start) && found.ends_with("\nOCSP Response Key: \n\n"), "{found}");
        assert_eq!(ask("dump ssl cert ca.pem").await, format!("{}\n", payload("ca.pem").replace('\r', "")));
        let refused = ask("del ssl cert ca.pem").await;
        assert!(refused.contains("certificate 'ca.pem' in use for JWT validation"), "{refused}");
        order("del ssl jwt ca.pem").await;
        assert!(shown("ca.pem").await.contains("\nOption: jwt off\nStatus: Unused\nSerial: "));
        order("add ssl jwt ca.pem").await;
        order("del ssl jwt ca.pem").await;
        assert_eq!(ask("del ssl cert ca.pem").await, "Certificate 'ca.pem' deleted!\n\n");
        assert_eq!((shown("ca.pem").await, ask("add ssl jwt ca.pem").await), (UNKNOWN.to_owned(), UNKNOWN.to_owned()));
        // A certificate without contents may be for tokens, and then needs no key.
        ask("new ssl cert x.pem").await;
        order("add ssl jwt x.pem").await;
        assert!(shown("x.pem").await.contains("\nOption: jwt on\nStatus: Empty\n"));
        let set = async |text: &str| {
            ask(&format!("set ssl cert x.pem <<EOF\n{text}EOF\n")).await;
            ask("commit ssl cert x.pem").await
        };
        let done = "Committing x.pem\nSuccess!\n\n";
        assert_eq!(set(&payload("ca.pem")).await, done);
        assert!(shown("x.pem").await.contains("\nStatus: Used for JWT verification\nSerial: "));
        assert_eq!(ask("show ssl jwt").await, "# filename\nx.pem\n\n");
        assert_eq!(set(&payload("other.pem")).await, done);
        order("del ssl jwt x.pem").await;
        assert!(set(&payload("ca.pem")).await.contains("passed a null parameter.\nFailed!"));
        assert!(shown("x.pem").await.contains("\nOption: jwt off\nStatus: Unused\nSerial: "));
        world.forget_log();
    });
}

/// `ssl-f-use` lines are a list named like the frontend; the last of them is the default.
#[test]
fn lines_of_a_frontend_come_and_go() {
    let lines = format!(
        "listen l\n bind {SECURE} ssl\n ssl-f-use crt a.pem ssl-max-ver TLSv1.3 alpn http/1.1\n ssl-f-use crt address.pem\n\
         http-request return status 200\n"
    );
    config(&lines).global(SOCKET).workers(&[1]).seeds(0..1).run(|world| async move {
        assert_eq!(ask("show ssl crt-list").await, "@l\n\n");
        let all = "# @l\naddress.pem:0\na.pem:0 [alpn http/1.1 ssl-max-ver TLSv1.3]\n\n";
        assert_eq!(ask("show ssl crt-list -n @l").await, all);
        let refused = ask("del ssl crt-list @l address.pem").await;
        assert!(
            refused.starts_with("Can't delete the entry: certificate 'address.pem' cannot be deleted, it is used as")
        );
        assert_eq!(ask("del ssl crt-list @l a.pem").await, "Entry 'a.pem' deleted in crtlist '@l'!\n\n");
        assert_eq!(ask("show ssl crt-list @l").await, "# @l\naddress.pem\n\n");
        let added = ask("add ssl crt-list @l <<\na.pem [alpn h2] b.example\n").await;
        assert_eq!(added, "Inserting certificate 'a.pem' in crt-list '@l'.\nSuccess!\n\n");
        assert_eq!(ask("show ssl crt-list -n @l").await, "# @l\naddress.pem:0\na.pem:1 [alpn h2] b.example\n\n");
        world.forget_log();
    });
}

/// The key of `b.crt` is `b.key` if extensions are replaced (`ssl-load-extra-del-ext`), and `b.crt.key` otherwise.
#[test]
fn a_key_is_set_by_the_name_of_its_file() {
    let lines = format!("listen l\n bind {SECURE} ssl crt a.pem\n http-request deny\n");
    config(&lines).global(SOCKET).workers(&[1]).seeds(0..1).run(|world| async move {
        let text = payload("a.pem");
        let key = &text[text.find("-----BEGIN PRIVATE KEY").unwrap()..];
        ask("new ssl cert b.crt").await;
        ask(&format!("set ssl cert b.crt <<\n{text}\n")).await;
        ask("commit ssl cert b.crt").await;
        for name in ["b.key", "b.crt.key"] {
            let answer = ask(&format!("set ssl cert {name} <<\n{key}\n")).await;
            assert_eq!(answer, "Transaction created for certificate b.crt!\n\n", "{name}");
            assert_eq!(ask("commit ssl cert b.crt").await, "Committing b.crt\nSuccess!\n\n");
        }
        assert!(ask(&format!("set ssl cert c.key <<\n{key}\n")).await.contains("not referenced"));
        world.forget_log();
    });
}
