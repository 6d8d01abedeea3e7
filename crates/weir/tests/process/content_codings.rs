//! Responses compressed by Weir are decoded by curl and by a browser to the server's bytes. A coding that this curl
//! does not support is skipped with a message.

use crate::browser::Browser;
use crate::support::{DEFAULTS, Folder, Running, connect, free_port, run};
use rustix::process::Signal;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

/// Returns the server's page: long text that repeats itself in part.
fn page() -> String {
    (0_u64..40_000).map(|number| format!("{:x} line {number}\n", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
}

/// Answers each request with the page: with a length, or in chunks.
fn answer(stream: TcpStream, page: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let (mut line, mut chunked) = (String::new(), false);
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            chunked |= line.starts_with("GET /chunks");
        }
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
        if chunked {
            write!(stream, "{head}Transfer-Encoding: chunked\r\n\r\n")?;
            for piece in page.as_bytes().chunks(7_001) {
                write!(stream, "{:x}\r\n", piece.len())?;
                stream.write_all(&[piece, b"\r\n"].concat())?;
            }
            write!(stream, "0\r\n\r\n")?;
        } else {
            write!(stream, "{head}Content-Length: {}\r\n\r\n{page}", page.len())?;
        }
    }
}

/// Runs a server with that page until the test's process ends.
fn serve(page: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = listener.local_addr().expect("its address");
    let served = page.to_owned();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let page = served.clone();
            thread::spawn(move || answer(stream, &page));
        }
    });
    server
}

#[test]
fn curl_decodes_every_coding_to_what_the_server_has_sent() {
    let version = Command::new("curl").arg("-V").output().map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    let Ok(version) = version else {
        eprintln!("skipped: curl is not installed");
        return;
    };
    let page = page();
    let server = serve(&page);
    let (folder, port) = (Folder::new(), free_port());
    let text = format!(
        "{DEFAULTS}listen l\n bind 127.0.0.1:{port}\n compression algo gzip deflate br zstd\n compression type text/html\n \
         server s {server}\n"
    );
    let file = folder.write("codings.cfg", &text);
    let weir = Running::weir(&["-db", "-f", &file]);
    drop(connect(port));
    for (coding, feature) in [("gzip", "libz"), ("deflate", "libz"), ("br", "brotli"), ("zstd", "zstd")] {
        if !version.contains(feature) {
            eprintln!("skipped: this curl does not decode {coding}");
            continue;
        }
        for path in ["/length", "/chunks"] {
            let url = format!("http://127.0.0.1:{port}{path}");
            let (accepts, heads) = (format!("Accept-Encoding: {coding}"), folder.path("heads"));
            let arguments = ["-s", "-m", "60", "--compressed", "-H", &accepts, &url, "-D"];
            let done = run(Command::new("curl").args(arguments).arg(&heads));
            assert_eq!(done.code(), Some(0), "{coding}: {done:?}");
            assert!(done.stdout == page, "{coding} {path}: other bytes");
            let head = std::fs::read_to_string(&heads).expect("heads");
            assert!(head.contains(&format!("content-encoding: {coding}\r\n")), "{coding}: {head}");
        }
    }
    weir.send(Signal::TERM);
}

/// Requests the page twice, and returns the codings and the contents.
const ASKS: &str = "(async () => { const told = []; for (const path of ['/length', '/chunks']) { const answer = await fetch(path); \
                    told.push([answer.headers.get('content-encoding'), await answer.text()]); } return told; })()";

#[test]
fn a_browser_decodes_every_coding_to_what_the_server_has_sent() {
    let folder = Folder::new();
    let Some(mut browser) = Browser::start(&folder) else { return };
    let page = page();
    let server = serve(&page);
    let algorithms = ["gzip", "deflate", "raw-deflate", "br", "zstd"].map(|algorithm| (algorithm, free_port()));
    let listeners = algorithms.map(|(algorithm, port)| {
        format!("listen {algorithm}\n bind 127.0.0.1:{port}\n compression algo {algorithm}\n server s {server}\n")
    });
    let file = folder.write("codings.cfg", &format!("{DEFAULTS}{}", listeners.concat()));
    let weir = Running::weir(&["-db", "-f", &file]);
    for (algorithm, port) in algorithms {
        drop(connect(port));
        browser.open(&format!("http://127.0.0.1:{port}/page"));
        browser.wait(&format!("location.port === '{port}' && document.readyState === 'complete'"));
        let told = browser.value(ASKS);
        let coding = algorithm.trim_start_matches("raw-");
        assert!(
            told == json!([[coding, page], [coding, page]]),
            "{algorithm}: other bytes, or coded as {}",
            told[0][0]
        );
    }
    weir.send(Signal::TERM);
}
