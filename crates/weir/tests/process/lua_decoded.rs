//! Scripts with `http-request decompress-body`: actions, fetches, converters, services and filters read the original
//! bytes before the rule, and the decoded ones after it. Must never decode anything itself.

use crate::support::{DEFAULTS, Folder, Running, connect_unix};
use std::io::{Read, Write};

/// `look` stores what a script sees of the body and its fields; `see` changes the body and prints what it sees.
const SCRIPT: &str = r#"
local function show(body)
    if body and body:byte() == 31 then return "gzip" .. #body end
    return tostring(body)
end
local function one(headers, name) return headers[name] and headers[name][0] or "-" end
core.register_action("look", {"http-req"}, function(txn, name)
    local headers = txn.http:req_get_headers()
    txn:set_var("req." .. name, table.concat({
        show(txn.f:req_body()), txn.f:req_body_len(), txn.f:req_body_size(), txn.f:req_hdr("content-length") or "-",
        one(headers, "content-length"), one(headers, "content-encoding"), one(headers, "transfer-encoding"),
        tostring(txn.f:req_body_param("a")),
    }, " "))
end, 1)
core.register_action("judge", {"http-req"}, function(txn)
    core.msleep(1)
    local body = txn.f:req_body()
    if body == "evil" then txn:done(txn:reply{ status = 418, reason = "tea", body = "no" }) end
    if body == "deny" then return act.DENY end
end)
core.register_fetches("body", function(txn) return show(txn.f:req_body()) end)
core.register_converters("upper", function(text) return text:upper() end)
core.register_service("echo", "http", function(applet)
    local body = applet:receive()
    local text = table.concat({
        show(body), applet.length, one(applet.headers, "content-length"), one(applet.headers, "content-encoding"),
        one(applet.headers, "x-seen"),
    }, " ")
    applet:add_header("content-length", #text)
    applet:start_response()
    applet:send(text)
end)
local See = { flags = filter.FLT_CFG_FL_HTX }
See.__index = See
function See:new() return setmetatable({}, See) end
function See:start_analyze(txn, chn)
    if not chn:is_resp() then filter.register_data_filter(self, chn) end
end
function See:http_headers(txn, msg)
    if msg:is_resp() then return end
    local headers = msg:get_headers()
    if one(headers, "x-refuse") ~= "-" then return filter.ERROR end
    msg:set_header("x-seen", one(headers, "content-length") .. one(headers, "content-encoding"))
end
function See:http_payload(txn, msg)
    local body = msg:body()
    if not msg:is_resp() and body then
        print("seen " .. show(body))
        msg:set(body:upper())
    end
end
core.register_filter("see", See, function(own) return own end)
"#;

/// gzip of `a=hello&b=weir`, `evil`, `deny` and `a=second`.
const FORM: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\x4b\xb4\xcd\x48\xcd\xc9\xc9\x57\x4b\xb2\x2d\x4f\xcd\x2c\x02\0\xcc\x11\x86\xf5\x0e\0\0\0";
const EVIL: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\x4b\x2d\xcb\xcc\x01\0\x52\x31\xfb\x8d\x04\0\0\0";
const DENY: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\x4b\x49\xcd\xab\x04\0\x32\x39\xbb\x09\x04\0\0\0";
const SECOND: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\x4b\xb4\x2d\x4e\x4d\xce\xcf\x4b\x01\0\x14\x0b\x0a\xb7\x08\0\0\0";

const PROXIES: &str = "listen l
 bind FOLDER/l
 filter lua.see
 http-request wait-for-body time 100s
 http-request lua.look before
 http-request set-var(txn.before) lua.body
 http-request decompress-body
 http-request lua.look after
 http-request lua.judge
 http-request set-var(txn.after) lua.body
 http-request set-var(txn.upper) req.body,lua.upper
 http-request use-service lua.echo if { path /echo }
 http-request return status 200 content-type t/t lf-string \"%[var(req.before)] / %[var(req.after)]\" if { path /fields }
 http-request return status 200 content-type t/t lf-string \"%[var(txn.before)] %[var(txn.after)] %[var(txn.upper)]\" if { path /values }
 server s unix@FOLDER/inner
frontend inner
 bind FOLDER/inner
 http-request wait-for-body time 100s
 http-request return status 200 content-type t/t lf-string \"%[req.hdr(content-length)] %[req.hdr(content-encoding)] %[req.hdr(x-seen)] %[req.body]\"
";

fn begin(folder: &Folder) -> Running {
    let script = folder.write("s.lua", SCRIPT);
    let text = format!(
        "global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n log stdout format raw local0\n lua-load {script}\n\
         {DEFAULTS}{PROXIES}"
    );
    Running::weir(&["-f", &folder.write("weir.cfg", &text.replace("FOLDER", folder.text()))])
}

/// A compressed form; a chunked one has chunks of five bytes.
fn post(path: &str, body: &[u8], chunked: bool) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-encoding: gzip\r\n"
    )
    .into_bytes();
    if !chunked {
        request.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
        request.extend(body);
        return request;
    }
    request.extend(b"transfer-encoding: chunked\r\n\r\n");
    for piece in body.chunks(5) {
        request.extend(format!("{:x}\r\n", piece.len()).bytes());
        request.extend(piece);
        request.extend(b"\r\n");
    }
    request.extend(b"0\r\n\r\n");
    request
}

/// Sends all of the requests in pieces of that many bytes, and returns status and body of each answer.
fn ask(folder: &Folder, requests: &[Vec<u8>], piece: usize) -> Vec<(u16, String)> {
    let mut stream = connect_unix(&folder.path("l"));
    for piece in requests.concat().chunks(piece) {
        stream.write_all(piece).expect("sent");
    }
    requests
        .iter()
        .map(|_| {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a head");
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).expect("text");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.and_then(|text| text.parse().ok()).expect("a length")];
            stream.read_exact(&mut body).expect("a body");
            (head[9..12].parse().expect("a status"), String::from_utf8(body).expect("text"))
        })
        .collect()
}

#[test]
fn scripts_see_coded_bytes_before_the_rule_and_decoded_ones_after_it() {
    let folder = Folder::new();
    let mut weir = begin(&folder);
    for (chunked, piece) in [(false, 9999), (false, 7), (true, 9999), (true, 3)] {
        let came = if chunked { "gzip34 34 34 - - gzip chunked nil" } else { "gzip34 34 34 34 34 gzip - nil" };
        let rows = [
            ("/fields", format!("{came} / a=hello&b=weir 14 14 14 14 - - hello")),
            ("/values", "gzip34 a=hello&b=weir A=HELLO&B=WEIR".to_owned()),
            ("/echo", "A=HELLO&B=WEIR 14 14 - 14-".to_owned()),
            ("/", "14  14- A=HELLO&B=WEIR".to_owned()),
        ];
        for (path, expected) in rows {
            let requests = [post(path, FORM, chunked), post("/echo", SECOND, !chunked)];
            let second = "A=SECOND 8 8 - 8-".to_owned();
            let found = ask(&folder, &requests, piece);
            assert_eq!(found, [(200, expected), (200, second)], "{path} {chunked} {piece}");
        }
    }
    // The output of the filter: it has not seen a compressed body.
    for _ in 0..4 {
        for expected in ["seen a=second\n", "seen a=second\n", "seen a=hello&b=weir\n", "seen a=second\n"] {
            assert_eq!(weir.wait_for_line(|line| line.starts_with("seen ")), expected);
        }
        for expected in ["seen a=hello&b=weir\n", "seen a=second\n"] {
            assert_eq!(weir.wait_for_line(|line| line.starts_with("seen ")), expected);
        }
    }
}

#[test]
fn a_script_rejects_what_was_decoded_and_the_connection_goes_on() {
    let folder = Folder::new();
    let _weir = begin(&folder);
    for (chunked, piece) in [(false, 9999), (true, 3)] {
        let requests = [post("/", EVIL, chunked), post("/", DENY, chunked), post("/echo", SECOND, chunked)];
        let found = ask(&folder, &requests, piece);
        assert_eq!(found[0], (418, "no".to_owned()));
        assert_eq!(found[1].0, 403);
        assert_eq!(found[2], (200, "A=SECOND 8 8 - 8-".to_owned()));
    }
}

/// Filters see the head of a request to a service like any other.
#[test]
fn a_filter_refuses_what_a_service_would_answer() {
    let folder = Folder::new();
    let _weir = begin(&folder);
    let text = String::from_utf8_lossy(&post("/echo", b"", false)).replace("content-encoding: gzip", "x-refuse: 1");
    assert_eq!(ask(&folder, &[text.into_bytes()], 9999)[0].0, 400);
}
