//! Filters of scripts together with compression, caches, agents and FastCGI applications, in both orders. With the
//! first two, clients get the same responses as from HAProxy 3.5.

use crate::spoe;
use crate::support::{DEFAULTS, Folder, Running, connect_unix};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

/// `mark` appends `!` to a response; `see` prints the start of the payload that it sees.
const SCRIPT: &str = r#"
local function make(name, class)
    class.__index, class.flags = class, filter.FLT_CFG_FL_HTX
    function class:new() return setmetatable({}, class) end
    core.register_filter(name, class, function(own) return own end)
end
local function answers(self, txn, chn)
    if chn:is_resp() then filter.register_data_filter(self, chn) end
end
make("mark", {
    start_analyze = answers,
    http_headers = function(self, txn, msg)
        if msg:is_resp() then msg:set_body_len("chunked") else msg:set_header("x-mark", "marked") end
    end,
    http_payload = function(self, txn, msg) if msg:eom() then msg:append("!") end end,
})
make("see", {
    start_analyze = answers,
    http_payload = function(self, txn, msg)
        local body = msg:body()
        if body and #body > 0 then print("seen " .. (body:byte() == 31 and "gzip" or body)) end
    end,
})
"#;

/// Runs a configuration with these proxies, and a server `inner` that answers with its own text.
fn begin(folder: &Folder, proxies: &str) -> Running {
    let script = folder.write("s.lua", SCRIPT);
    let inner = folder.path("inner").display().to_string();
    let text = format!(
        "global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n log stdout format raw local0\n lua-load {script}\n\
         cache c\n total-max-size 4\n max-age 60\n{DEFAULTS}frontend inner\n bind {inner}\n \
         http-request return status 200 content-type text/plain hdr cache-control max-age=60 lf-string text-%[uuid]\n{proxies}"
    );
    Running::weir(&["-f", &folder.write("weir.cfg", &text.replace("FOLDER", folder.text()))])
}

/// Returns the head and the body of a response, with chunks decoded.
fn get(folder: &Folder, name: &str, fields: &str) -> (String, Vec<u8>) {
    let mut stream = connect_unix(&folder.path(name));
    let request = format!("GET /{name} HTTP/1.1\r\nhost: x\r\n{fields}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut rest = &answer[end..];
    if !head.contains("transfer-encoding: chunked") {
        return (head, rest.to_vec());
    }
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|bytes| bytes == b"\r\n").expect("a chunk");
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).expect("text"), 16).expect("a length");
        if length == 0 {
            return (head, body);
        }
        body.extend_from_slice(&rest[line + 2..line + 2 + length]);
        rest = &rest[line + 4 + length..];
    }
}

#[test]
fn compression_sees_what_a_script_made_and_the_other_way_round() {
    let folder = Folder::new();
    let orders = [("one", "compression", "lua.mark"), ("two", "lua.mark", "compression")];
    let seen = [("three", "compression", "lua.see"), ("four", "lua.see", "compression")];
    let proxies: String = orders
        .iter()
        .chain(&seen)
        .map(|(name, first, second)| {
            format!(
                "listen {name}\n bind FOLDER/{name}\n server s unix@FOLDER/inner\n filter {first}\n filter {second}\n \
                 compression algo gzip\n compression type text/plain\n"
            )
        })
        .collect();
    let mut weir = begin(&folder, &proxies);
    let fields = "accept-encoding: gzip\r\n";
    // The mark is appended to the compressed data.
    let (head, body) = get(&folder, "one", fields);
    assert!(head.contains("content-encoding: gzip") && body.starts_with(b"\x1f\x8b") && body.ends_with(b"!"), "{head}");
    let (head, body) = get(&folder, "two", fields);
    assert!(
        head.contains("content-encoding: gzip") && body.starts_with(b"\x1f\x8b") && !body.ends_with(b"!"),
        "{head}"
    );
    // A gzip file ends with the length of the text: the mark is included.
    assert_eq!(body[body.len() - 4..], 42_u32.to_le_bytes());
    for (name, expected) in [("three", "seen gzip"), ("four", "seen text-")] {
        get(&folder, name, fields);
        weir.wait_for_line(|line| line.starts_with(expected));
    }
}

#[test]
fn a_cache_keeps_what_passes_its_place() {
    let folder = Folder::new();
    let proxies: String = [("one", "cache c", "lua.mark"), ("two", "lua.mark", "cache c")]
        .iter()
        .map(|(name, first, second)| {
            format!(
                "listen {name}\n bind FOLDER/{name}\n server s unix@FOLDER/inner\n filter {first}\n filter {second}\n \
                 http-request cache-use c\n http-response cache-store c\n"
            )
        })
        .collect();
    let _weir = begin(&folder, &proxies);
    let texts = |name| [(); 2].map(|()| String::from_utf8(get(&folder, name, "").1).expect("text"));
    let [first, second] = texts("one");
    assert!(first.starts_with("text-") && first.ends_with('!'), "{first}");
    assert_eq!(second, first, "kept without the mark");
    let [first, second] = texts("two");
    assert!(first.starts_with("text-") && first.ends_with('!'), "{first}");
    assert_eq!(second, format!("{first}!"), "kept with the mark");
}

#[test]
fn agents_are_asked_beside_a_script() {
    let folder = Folder::new();
    let file = folder.write("engine.conf", spoe::ENGINE);
    let spoe = format!("spoe engine e config {file}");
    let mut proxies = "backend agents\n mode spop\n server a FOLDER/agent\n".to_owned();
    for (name, first, second) in [("one", &*spoe, "lua.mark"), ("two", "lua.mark", &*spoe)] {
        proxies += &format!(
            "frontend {name}\n bind FOLDER/{name}\n filter {first}\n filter {second}\n \
             http-request deny status 403 if {{ var(txn.waf.verdict) -m str deny }}\n \
             default_backend b\n"
        );
    }
    proxies += "backend b\n server s unix@FOLDER/inner\n";
    let listener = UnixListener::bind(folder.path("agent")).expect("own folder");
    let (sender, _told) = std::sync::mpsc::channel();
    // Runs until the test's process ends.
    std::thread::spawn(move || spoe::agent(&listener, &sender));
    let _weir = begin(&folder, &proxies);
    for name in ["one", "two"] {
        let (head, body) = get(&folder, name, "");
        assert!(head.starts_with("HTTP/1.1 200 ") && body.ends_with(b"!"), "{name}: {head}");
    }
    let mut stream = connect_unix(&folder.path("two"));
    stream.write_all(b"GET /evil HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

/// Answers a FastCGI request with the value of `HTTP_X_MARK`.
fn application(mut stream: UnixStream) -> Option<()> {
    let mut parameters = Vec::new();
    loop {
        let mut head = [0; 8];
        stream.read_exact(&mut head).ok()?;
        let (kind, length) = (head[1], usize::from(u16::from_be_bytes([head[4], head[5]])));
        let mut content = vec![0; length + usize::from(head[6])];
        stream.read_exact(&mut content).ok()?;
        match kind {
            4 => parameters.extend_from_slice(&content[..length]),
            5 if length == 0 => break,
            _ => {}
        }
    }
    let is_marked = parameters.windows(17).any(|bytes| bytes == b"HTTP_X_MARKmarked");
    let text = format!("Content-Type: text/plain\r\n\r\n{}", if is_marked { "told" } else { "not told" });
    let size = u8::try_from(text.len()).expect("short");
    let answer = [&[1, 6, 0, 1, 0, size, 0, 0], text.as_bytes(), &[1, 3, 0, 1, 0, 8, 0, 0], &[0; 8]].concat();
    stream.write_all(&answer).ok()
}

#[test]
fn applications_are_asked_beside_a_script() {
    let folder = Folder::new();
    let mut proxies = "fcgi-app app\n docroot /srv\n".to_owned();
    for (name, first, second) in [("one", "fcgi-app app", "lua.mark"), ("two", "lua.mark", "fcgi-app app")] {
        proxies += &format!(
            "listen {name}\n bind FOLDER/{name}\n use-fcgi-app app\n filter {first}\n filter {second}\n \
             server s unix@FOLDER/app proto fcgi\n"
        );
    }
    let listener = UnixListener::bind(folder.path("app")).expect("own folder");
    // Runs until the test's process ends.
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            std::thread::spawn(move || application(stream));
        }
    });
    let _weir = begin(&folder, &proxies);
    for name in ["one", "two"] {
        let (head, body) = get(&folder, name, "");
        let text = String::from_utf8_lossy(&body);
        assert!(head.starts_with("HTTP/1.1 200 ") && text == "told!", "{name}: {head}{text}");
    }
}
