//! Filters of scripts: heads and bodies that they see and change, waiting and rejecting. The responses are HAProxy
//! 3.5's, except where the page on Lua says otherwise.

use crate::support::{DEFAULTS, Folder, Running, connect_unix, exchange_on, weir};
use std::io::{Read, Write};

const SCRIPT: &str = r#"
local function make(name, methods)
    methods.flags = filter.FLT_CFG_FL_HTX
    methods.__index = methods
    function methods:new()
        local own = setmetatable({ calls = 0, args = self.args, seen = {} }, methods)
        return own
    end
    core.register_filter(name, methods, function(own, args) own.args = table.concat(args, ",") return own end)
end
local function answers(self, txn, chn) if chn:is_resp() then filter.register_data_filter(self, chn) end end
local function chunked(self, txn, msg) if msg:is_resp() then msg:set_body_len("chunked") end end
local function show(...)
    local shown = table.pack(...)
    for i = 1, shown.n do shown[i] = tostring(shown[i]) end
    return table.concat(shown, " ", 1, shown.n)
end

make("head", { http_headers = function(self, txn, msg)
    local line = msg:get_stline()
    msg:add_header("x-flt", "1")
    msg:add_header("x-flt", "2")
    msg:set_header("x-set", "s")
    msg:rep_header("x-flt", "^1$", "one")
    msg:rep_value("x-set", "s", "S")
    msg:del_header("x-gone")
    if msg:is_resp() then
        msg:set_header("x-line", show(line.version, line.code, line.reason, msg:set_path("/x"), self.args, txn:get_priv()))
        msg:set_status(201, "Fine")
    else
        msg:set_header("x-line", show(line.method, line.uri, line.version, msg:set_status(200), tostring(msg), txn.f:path()))
        msg:set_path("/new") msg:set_query("q=1") msg:set_method("PUT")
        txn:set_priv("kept")
    end
    return filter.CONTINUE
end })
make("three", { start_analyze = answers, http_payload = function(self, txn, msg)
    self.calls = self.calls + 1
    if self.calls < 4 then return 3 end
end })
make("wait", { start_analyze = answers, http_payload = function(self, txn, msg)
    self.calls = self.calls + 1
    if self.calls < 3 then filter.wake_time(1) return filter.WAIT end
    msg:set(self.calls .. "23456789abcdefg", 0)
end })
make("head_waits", {
    start_analyze = function(self, txn, chn)
        self.calls = self.calls + 1
        if self.calls < 3 then filter.wake_time(1) return filter.WAIT end
    end,
    http_headers = function(self, txn, msg)
        self.calls = self.calls + 1
        if self.calls < 6 then filter.wake_time(1) return filter.WAIT end
        msg:set_header("x-calls", self.calls)
        return filter.CONTINUE
    end,
})
make("refuse_start", { start_analyze = function() return filter.ERROR end })
make("refuse_request", { http_headers = function() return filter.ERROR end })
make("refuse_answer", { http_headers = function(self, txn, msg) if msg:is_resp() then return filter.ERROR end end })
make("fail", { http_headers = function() error("boom") end })
make("pause", { http_headers = function() core.msleep(1) end })
make("spin", { http_headers = function() while true do end end })
make("edit", { start_analyze = answers, http_headers = chunked, http_payload = function(self, txn, msg)
    if self.calls > 0 then return end
    self.calls = 1
    local log = {}
    local function say(...) log[#log + 1] = show(...) end
    say(msg:insert("<I>"), msg:input(), msg:prepend("<P>"), msg:body())
    say(msg:append("<A>"), msg:insert("<5>", 5), msg:insert("<-2>", -2), msg:body())
    say(msg:remove(0, 2), msg:remove(-3), msg:body(), msg:body(1, 2), msg:body(-2))
    say(msg:set("S", 3, 4), msg:body(), msg:send("SENT"), msg:forward(2), msg:body(), msg:input())
    say(pcall(msg.insert, msg, "x", 9999)) say(pcall(msg.remove, msg, 2, 9999)) say(pcall(msg.body, msg, 0, -5))
    say(msg:body(0, 9999) == msg:body(), msg:body(-9999) == msg:body(), msg:remove(0, -1), msg:forward(9999))
    msg:set(table.concat(log, "\n"))
end })
make("append", { start_analyze = answers, http_headers = chunked, http_payload = function(self, txn, msg)
    if msg:eom() then msg:append(" THE END") end
end })
make("shorter", { start_analyze = answers, http_headers = function(self, txn, msg)
    if msg:is_resp() then msg:set_body_len(5) end
end, http_payload = function(self, txn, msg) msg:set("12345") end })
make("longer", { start_analyze = answers, http_payload = function(self, txn, msg) msg:append("HTTP/1.1 200 OK") end })
make("cut", { start_analyze = answers, http_payload = function(self, txn, msg) msg:remove(0, 3) end })
make("once", { start_analyze = answers, http_payload = function(self, txn, msg)
    msg:set("0123456789ABCDEF")
    filter.unregister_data_filter(self, msg.channel)
end })
make("upload", { start_analyze = function(self, txn, chn) filter.register_data_filter(self, chn) end,
    http_payload = function(self, txn, msg)
        local body = msg:body()
        if body and not msg:is_resp() then msg:set(body:upper()) end
    end })
make("channels", { http_headers = function(self, txn, msg)
    local _, first = pcall(msg.channel.append, msg.channel, "x")
    local _, second = pcall(txn.req.data, txn.req)
    if msg:is_resp() then msg:set_header("x-line", show(tostring(msg.channel), first == second, first)) end
end })
make("done", { http_headers = function(self, txn, msg)
    if not msg:is_resp() then txn:done() end
end })
local function ends(txn)
    local reply = txn:reply({ status = 403, body = "no" })
    reply:add_header("x-why", "filter")
    txn:done(reply)
end
make("replies", { http_headers = function(self, txn, msg) if not msg:is_resp() then ends(txn) end end })
make("replies_late", { http_headers = function(self, txn, msg) if msg:is_resp() then ends(txn) end end })
make("replies_first", { start_analyze = function(self, txn, chn) if not chn:is_resp() then ends(txn) end end })
make("replies_wrong", { http_headers = function(self, txn, msg)
    txn:done(txn:reply({ status = 403, reason = "a\nb" }))
end })
make("status", { http_headers = function(self, txn, msg) if msg:is_resp() then msg:set_status("202") end end })
make("chunks", { http_headers = function(self, txn, msg)
    if not msg:is_resp() then msg:set_body_len("chunked") end
end })
make("refuse_upload", { start_analyze = function(self, txn, chn) filter.register_data_filter(self, chn) end,
    http_payload = function(self, txn, msg) if not msg:is_resp() then return filter.ERROR end end })
make("ends", { start_analyze = answers, http_end = function(self, txn, msg)
    print("end of " .. (msg:is_resp() and "an answer" or "a request"))
end })
make("past", { start_analyze = answers, http_headers = chunked, http_payload = function(self, txn, msg)
    local first = msg:eom()
    msg:unset_eom()
    local second = msg:eom()
    msg:set_eom()
    msg:set(show(first, second, msg:eom(), msg:body(16), msg:body(0, 0)))
end })
local Broken = { flags = filter.FLT_CFG_FL_HTX, new = function() error("no object") end }
core.register_filter("broken", Broken, function(own) return own end)
core.register_filter("raw", { new = function() error("never") end }, function(own) return own end)
core.register_filter("ignored", { new = function() error("never") end }, function() return nil end)
core.register_filter("without", {}, function(own) return own end)
local Bytes = { flags = 0 }
Bytes.__index = Bytes
function Bytes:new() return setmetatable({ events = {} }, Bytes) end
function Bytes:start_analyze(txn, chn) filter.register_data_filter(self, chn) end
function Bytes:tcp_payload(txn, chn)
    if chn:is_resp() then
        local data = chn:data()
        if data then chn:set(data:upper()) end
    else
        local line = chn:line()
        if line and line:sub(1, 1) == "x" then chn:remove(0, 1) chn:prepend("<" .. tostring(txn.http) .. ">") end
    end
end
local Late = { flags = 0 }
Late.__index = Late
function Late:new() return setmetatable({ calls = 0 }, Late) end
function Late:start_analyze(txn, chn) filter.register_data_filter(self, chn) end
function Late:tcp_payload(txn, chn)
    if chn:input() == 0 or self.calls > 3 then return end
    self.calls = self.calls + 1
    if self.calls < 3 then filter.wake_time(1) return filter.WAIT end
end
core.register_service("made", "http", function(applet)
    applet:set_status(200)
    applet:start_response()
    applet:send("made")
end)
core.register_filter("late", Late, function(own) return own end)
core.register_filter("bytes", Bytes, function(own) return own end)
"#;

/// Frontends with one filter each.
const NAMES: &[&str] = &[
    "head",
    "three",
    "wait",
    "head_waits",
    "refuse_start",
    "refuse_request",
    "refuse_answer",
    "fail",
    "pause",
    "spin",
    "edit",
    "append",
    "shorter",
    "longer",
    "cut",
    "once",
    "upload",
    "channels",
    "ignored",
    "without",
    "done",
    "replies",
    "replies_late",
    "replies_first",
    "replies_wrong",
    "status",
    "chunks",
    "refuse_upload",
    "ends",
    "past",
    "broken",
    "raw",
];

/// Changes by a filter do not count as errors of the server: otherwise it would be down from then on.
fn begin(folder: &Folder) -> Running {
    let script = folder.write("s.lua", SCRIPT);
    let at = |name: &str| folder.path(name).display().to_string();
    let mut text = format!(
        "global\n nbthread 2\n tune.lua.bool-sample-conversion normal\n tune.lua.burst-timeout 1s\n \
         log stdout format raw local0\n lua-load {script}\n{DEFAULTS}backend b\n server s unix@{server} \
         check inter 1h observe layer7 error-limit 1 on-error mark-down\n\
         frontend server\n bind {server}\n http-request wait-for-body time 9s\n \
         http-request return status 200 content-type t/t lf-string \"%[method] %[url] %[req.hdr(x-line)] %[req.body]\" \
         hdr x-gone 1 if {{ path /new /head /echo }}\n http-request return status 200 content-type t/t string 0123456789abcdef\n\
         frontend tcp\n mode tcp\n bind {}\n filter lua.bytes\n default_backend tb\n\
         frontend late\n mode tcp\n bind {}\n filter lua.late\n default_backend tb\n\
         backend tb\n mode tcp\n server s unix@{}\nfrontend sink\n mode http\n bind {}\n \
         http-request return status 200 content-type t/t lf-string \"%[path]\"\n",
        at("tcp"),
        at("late"),
        at("sink"),
        at("sink"),
        server = at("server"),
    );
    for name in NAMES {
        text += &format!(
            "frontend {name}\n log global\n bind {}\n filter lua.{name} a b\n http-request use-service lua.made if {{ path /made }}\n \
             default_backend b\n",
            at(name)
        );
    }
    Running::weir(&["-f", &folder.write("weir.cfg", &text)])
}

fn answer(folder: &Folder, name: &str, request: &str) -> String {
    let mut stream = connect_unix(&folder.path(name));
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

const CLOSE: &str = "HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

#[test]
fn heads_are_seen_and_changed() {
    let folder = Folder::new();
    let _weir = begin(&folder);
    let whole = answer(&folder, "head", &format!("GET /head?a=b {CLOSE}"));
    assert!(whole.starts_with("HTTP/1.1 201 Fine\r\n"), "{whole}");
    for line in ["x-flt: one", "x-flt: 2", "x-set: S", "x-line: HTTP/1.1 200 OK false a,b kept"] {
        assert!(whole.contains(&format!("\r\n{line}\r\n")), "{line}: {whole}");
    }
    assert!(!whole.contains("x-gone"), "{whole}");
    let body = whole.split("\r\n\r\n").nth(1).expect("a body");
    assert_eq!(body, "PUT /new?q=1 GET /head?a=b HTTP/1.1 false HAProxy class HTTPMessage /head ");
    let whole = answer(&folder, "channels", &format!("GET / {CLOSE}"));
    let line = "x-line: HAProxy class Channel true Cannot manipulate HAProxy channels in HTTP mode.";
    assert!(whole.contains(line), "{whole}");
}

#[test]
fn filters_wait_refuse_and_fail() {
    let folder = Folder::new();
    let mut weir = begin(&folder);
    let whole = answer(&folder, "head_waits", &format!("GET / {CLOSE}"));
    assert!(whole.contains("\r\nx-calls: 8\r\n") && whole.ends_with("0123456789abcdef"), "{whole}");
    for (name, status) in [
        ("refuse_start", 400),
        ("refuse_request", 400),
        ("refuse_answer", 502),
        ("fail", 400),
        ("broken", 400),
        ("done", 400),
        ("replies_wrong", 400),
        ("pause", 200),
        ("spin", 200),
    ] {
        let whole = answer(&folder, name, &format!("GET / {CLOSE}"));
        assert!(whole.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {whole}");
    }
    let rows = [
        ("replies", "/"),
        ("replies_late", "/"),
        ("replies_first", "/"),
        ("replies", "/made"),
        ("replies_first", "/made"),
    ];
    for (name, path) in rows {
        let request = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabcGET {path} {CLOSE}");
        let whole = answer(&folder, name, &request);
        let parts: Vec<&str> = whole.split("HTTP/1.1 403 Forbidden\r\nx-why: filter\r\n").collect();
        // Both are answered: the connection continues.
        assert_eq!((parts.len(), parts[0]), (3, ""), "{name}: {whole}");
        assert!(parts[1..].iter().all(|part| part.ends_with("\r\n\r\nno")), "{name}: {whole}");
    }
    // Workers log in any order.
    let mut expected = vec![
        "Lua filter 'fail' : [state-id 0] runtime error: ",
        "Lua filter 'replies_wrong' : a field would begin another line.",
        "Lua filter 'pause': yield functions like core.tcp() or core.sleep() are not allowed from 'http_headers' callback.",
        "Lua filter 'spin' : 'http_headers' callback burst timeout.",
    ];
    while !expected.is_empty() {
        let line = weir.wait_for_line(|line| expected.iter().any(|said| line.contains(said)));
        expected.retain(|said| !line.contains(said));
    }
}

#[test]
fn bodies_are_seen_and_changed() {
    let folder = Folder::new();
    let _weir = begin(&folder);
    let edited = "3 19 3 <P><I>0123456789abcdef\n3 3 4 <P><I<5>>0123456789abcdef<<-2>A>\n\
                  2 3 ><I<5>>0123456789abcdef<<-2 <I -2\n1 ><IS0123456789abcdef<<-2 4 2 IS0123456789abcdef<<-2 22\n\
                  false offset out of range.\nfalse length out of range.\nfalse length out of range.\ntrue true 22 0";
    let rows = [
        ("append", "0123456789abcdef THE END"),
        ("edit", &format!("SENT><{edited}")),
        ("past", "true false true nil nil"),
    ];
    for (name, expected) in rows {
        // In one chunk.
        let whole = answer(&folder, name, &format!("GET / {CLOSE}"));
        let chunk = format!("{:x}\r\n{expected}\r\n0\r\n\r\n", expected.len());
        assert!(whole.contains("transfer-encoding: chunked\r\n") && whole.ends_with(&chunk), "{name}: {whole}");
    }
    let rows = [
        ("three", "0123456789abcdef"),
        ("wait", "323456789abcdefg"),
        ("shorter", "12345"),
        ("longer", "0123456789abcdef"),
        ("once", "0123456789ABCDEF"),
        ("ignored", "0123456789abcdef"),
        ("without", "0123456789abcdef"),
        // It is not a filter of HTTP streams.
        ("raw", "0123456789abcdef"),
        // A request without a body stays without one, whatever its filter does.
        ("chunks", "0123456789abcdef"),
    ];
    for (name, expected) in rows {
        let mut stream = connect_unix(&folder.path(name));
        for _ in 0..2 {
            let got = exchange_on(&mut stream, "GET / HTTP/1.1\r\nhost: x\r\n\r\n");
            assert_eq!(got, (200, expected.to_owned()), "{name}");
        }
    }
    // If less than announced is sent, the connection ends.
    let whole = answer(&folder, "cut", "GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(whole.contains("content-length: 16\r\n") && !whole.ends_with("f"), "{whole}");
    let post = "POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello";
    assert!(answer(&folder, "upload", post).ends_with("POST /echo  HELLO"));
    // The client receives an error about its rejected body.
    let whole = answer(&folder, "refuse_upload", post);
    assert!(whole.starts_with("HTTP/1.1 400 ") && whole.ends_with("</html>\n"), "{whole}");
    assert!(answer(&folder, "status", &format!("GET / {CLOSE}")).starts_with("HTTP/1.1 202 "));
}

#[test]
fn the_end_of_a_message_is_told_to_who_sees_its_body() {
    let folder = Folder::new();
    let mut weir = begin(&folder);
    answer(&folder, "ends", &format!("GET / {CLOSE}"));
    assert_eq!(weir.wait_for_line(|line| line.starts_with("end of ")).trim_end(), "end of an answer");
}

#[test]
fn bytes_of_sessions_are_seen_and_changed() {
    let folder = Folder::new();
    let _weir = begin(&folder);
    let whole = answer(&folder, "tcp", &format!("GET /path {CLOSE}"));
    assert!(whole.starts_with("HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 5\r\n") && whole.ends_with("/PATH"), "{whole}");
    // Bytes held back by a filter are forwarded when its time is over, even if no more arrive.
    let whole = answer(&folder, "late", &format!("GET /path {CLOSE}"));
    assert!(whole.ends_with("/path"), "{whole}");
}

#[test]
fn a_filter_that_no_script_registered_is_refused() {
    let folder = Folder::new();
    let script = folder.write("s.lua", SCRIPT);
    let text = format!(
        "global\n tune.lua.bool-sample-conversion normal\n lua-load {script}\n{DEFAULTS}frontend f\n bind {}\n filter lua.nope\n",
        folder.path("s").display()
    );
    let run = weir(["-c", "-f", &folder.write("weir.cfg", &text)]);
    assert!(run.code() == Some(1) && run.stderr.contains("'filter' : unknown keyword 'lua.nope'"), "{}", run.stderr);
}
