//! Tests of the parameters of a request to a FastCGI application: those of CGI/1.1, and those added by its section.

use testkit::{Peer, Service};

use crate::fcgi::{PLAIN, answered, app, receive_plain, request};
use crate::world::*;

#[test]
fn an_application_is_told_what_cgi_says() {
    app(" http-request set-header x-root %[fcgi.docroot]+%[fcgi.index]", " index i.php\n path-info ^(/.+\\.php)(/.*)?$\n set-param X %[method]\n set-param EMPTY %[req.hdr(no)]\n set-param FOR no if { path /other }\n pass-header te")
        .run(|_| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            client
                .send("GET /d/a.php/in%20fo?q=1&r HTTP/1.1\r\nHost: h:81\r\nX-A: 1\r\nx_b: 2\r\nAuthorization: Basic dXNlcjpw\r\nProxy: evil\r\n\r\n")
                .await;
            let mut server = s1.accept().await;
            let asked = request(&mut server).await;
            assert!(asked.keeps);
            let expected = [
                ("HTTP_HOST", "h:81"),
                ("HTTP_X_A", "1"),
                ("HTTP_X_ROOT", "/w+i.php"),
                ("AUTH_TYPE", "Basic"),
                ("REMOTE_USER", "user"),
                ("X", "GET"),
                ("GATEWAY_INTERFACE", "CGI/1.1"),
                ("DOCUMENT_ROOT", "/w"),
                ("SERVER_SOFTWARE", concat!("Weir ", env!("CARGO_PKG_VERSION"))),
                ("SCRIPT_NAME", "/d/a.php"),
                ("PATH_INFO", "/in fo"),
                ("REQUEST_URI", "/d/a.php/in%20fo?q=1&r"),
                ("REQUEST_METHOD", "GET"),
                ("QUERY_STRING", "q=1&r"),
                ("SERVER_NAME", "h:81"),
                ("SERVER_PROTOCOL", "HTTP/1.1"),
                ("SERVER_PORT", "80"),
            ];
            let found: Vec<_> = asked.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found[..expected.len()], expected);
            assert_eq!(asked.get("SCRIPT_FILENAME"), "/w/d/a.php");
            assert_eq!(asked.get("PATH_TRANSLATED"), "/w/in fo");
            assert_eq!(asked.get("CONTENT_LENGTH"), "0");
            server.send(answered(PLAIN)).await;
            receive_plain(&mut client).await;
        });
}

/// Parameters with the same value for all requests are encoded once, unless a rule may set them.
#[test]
fn an_application_without_rules_is_told_the_same() {
    let found = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    for rule in ["", " set-param X y\n set-param DOCUMENT_ROOT /other if { path /other }"] {
        let note = std::sync::Arc::clone(&found);
        app("", &format!(" index i.php\n{rule}")).workers(&[1]).seeds(0..1).run(move |_| {
            let note = std::sync::Arc::clone(&note);
            async move {
                let mut s1 = Service::at(S1);
                let mut client = Peer::connect(WEIR).await;
                client.send("GET /a.php HTTP/1.1\r\nHost: h\r\n\r\n").await;
                let mut server = s1.accept().await;
                let mut asked = request(&mut server).await;
                asked.parameters.retain(|(name, _)| name != "X" && name != "REMOTE_PORT");
                note.lock().unwrap().push(asked.parameters);
                server.send(answered(PLAIN)).await;
                receive_plain(&mut client).await;
            }
        });
    }
    let found = found.lock().unwrap();
    assert!(found[0].iter().any(|(name, value)| (&**name, &**value) == ("DOCUMENT_ROOT", "/w")), "{found:?}");
    assert_eq!(found[0], found[1]);
}

/// Parameters of a connection are kept for its next request, and encoded again if a rule sets other values.
#[test]
fn the_ends_of_a_connection_are_those_of_each_request() {
    app(" http-request set-src req.hdr(x-src) if { req.hdr(x-src) -m found }\n http-request set-dst-port req.hdr(x-port) if { req.hdr(x-port) -m found }", " index i.php")
        .run(|_| async move {
            let mut s1 = Service::at(S1);
            let mut client = Peer::connect(WEIR).await;
            let rows = [
                ("X-Src: 192.0.2.1\r\n", "192.0.2.1", "80"),
                ("X-Src: 192.0.2.1\r\n", "192.0.2.1", "80"),
                ("X-Src: 2001:db8::1\r\nX-Port: 81\r\n", "2001:db8::1", "81"),
                ("X-Port: 82\r\nX-Src: 2001:db8::1\r\n", "2001:db8::1", "82"),
                ("X-Src: 192.0.2.1\r\n", "192.0.2.1", "80"),
            ];
            let mut server = None;
            for (fields, address, port) in rows {
                client.send(format!("GET /a.php HTTP/1.1\r\nHost: h\r\n{fields}\r\n")).await;
                if server.is_none() {
                    server = Some(s1.accept().await);
                }
                let server = server.as_mut().unwrap();
                let asked = request(server).await;
                assert_eq!((asked.get("REMOTE_ADDR"), asked.get("SERVER_PORT")), (address, port), "{fields}");
                server.send(answered(PLAIN)).await;
                receive_plain(&mut client).await;
            }
        });
}
