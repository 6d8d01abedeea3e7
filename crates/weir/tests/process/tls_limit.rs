//! `maxsslconn`: TLS connections of the whole process, which cannot be counted in a process with other tests.

use crate::support::{Folder, Running, connect, connect_unix, exchange, free_port, get};
use std::io::{Read as _, Write as _};
use std::path::Path;

/// Returns a column of `show info`.
fn column(socket: &Path, name: &str) -> String {
    let mut stream = connect_unix(socket);
    stream.write_all(b"show info\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_else(|| panic!("{name} in {text}")).to_owned()
}

/// A plain client's request is a TLS connection on each side of the inner proxy: two fit, three do not.
#[test]
fn connections_by_tls_are_limited() {
    let certificate = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/site.pem");
    for (most, status) in [(2, 200), (1, 503)] {
        let (folder, near, far) = (Folder::new(), free_port(), free_port());
        let socket = folder.path("stats");
        let text = format!(
            "global\n maxsslconn {most}\n stats socket {}\n\
             defaults\n mode http\n timeout connect 20s\n timeout client 20s\n timeout server 20s\n retries 0\n\
             listen outer\n bind 127.0.0.1:{near}\n server inner 127.0.0.1:{far} ssl verify none\n\
             listen inner\n bind 127.0.0.1:{far} ssl crt {}\n http-request return status 200\n",
            socket.display(),
            certificate.display()
        );
        let file = folder.write("weir.cfg", &text);
        let _weir = Running::weir(&["-db", "-f", &file]);
        assert_eq!(exchange(&mut connect(near), &get("/")).0, status, "{most}");
        assert_eq!(column(&socket, "MaxSslConns"), most.to_string());
        // The connection is idle; if the handshake was refused, there is none.
        let open = if status == 200 { "2" } else { "0" };
        crate::support::wait_until("connections", || column(&socket, "CurrSslConns") == open);
    }
}
