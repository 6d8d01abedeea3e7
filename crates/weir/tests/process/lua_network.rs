//! Sockets, the HTTP client and maps of scripts: return values of every method, and errors for invalid arguments.

use crate::support::{DEFAULTS, Folder, Running, connect_unix};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};

const SCRIPT: &str = r#"
local function show(value)
    if type(value) ~= "table" then return tostring(value) end
    local pages = { ["Service Unavailable"] = true, ["Bad Gateway"] = true, ["Gateway Time-out"] = true }
    if value.status == 0 and pages[value.reason] and value.headers["content-type"][0] == "text/html" then
        return "0 " .. value.reason .. (value.body:find(value.reason, 1, true) and " page" or "")
    end
    return (value.status or "table") .. " " .. tostring(value.body)
end
local numbers = Map.new("NUMBERS", Map._int)
core.register_cli({"lua", "run"}, "lua run", function(applet)
    local code = applet:receive()
    local env = setmetatable({ peer = "PEER", http = "HTTP", early = "EARLY", numbers = numbers, list = core.get_patref("NUMBERS") }, { __index = _G })
    -- A socket whose peer has got these lines.
    function env.s(lines, seconds)
        local socket = core.tcp()
        socket:settimeout(seconds or 60)
        assert(socket:connect("PEER"))
        if lines then socket:send(lines .. "\n") end
        return socket
    end
    function env.all(socket, ...)
        local got = {}
        for _, pattern in ipairs({ ... }) do
            local received, why = socket:receive(pattern)
            got[#got + 1] = received or tostring(why)
        end
        return table.concat(got, "|")
    end
    -- The first byte of what has come as a whole; the rest is waited for no longer.
    function env.first(object)
        local byte = object:receive(1)
        object:settimeout(0.05)
        return byte
    end
    -- Two calls of a method.
    function env.both(object, first, second, ...)
        local one = table.pack(first(object, ...))
        for i = 1, one.n do one[i] = show(one[i]) end
        return table.concat(one, " ", 1, one.n), second(object, ...)
    end
    for line in code:gmatch("[^\n]+") do
        local made = table.pack(pcall(load("return " .. line, "=x", "t", env)))
        for i = 2, made.n do made[i] = show(made[i]) end
        applet:send(table.concat(made, " ", 2, made.n) .. "\n")
    end
end)
"#;

/// Echoes lines; for `raw …` the rest without its line end. `close` ends the connection.
fn serve(stream: UnixStream) {
    let mut writer = stream.try_clone().expect("a descriptor");
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let text = match line.strip_prefix("raw ") {
            Some(text) => text.replace("\\n", "\n").replace("\\r", "\r"),
            None if line == "close" => return,
            None => line + "\n",
        };
        if writer.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

/// Answers the head of a request without reading its body. `x: close`: then closes; `x: none`: closes without an
/// answer; `x: hang`: sends nothing and stays open.
fn refuse(stream: UnixStream) -> Option<UnixStream> {
    let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
    let (mut head, mut stream) = (String::new(), stream);
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).expect("a line");
    }
    let is = |what: &str| head.contains(&format!("x: {what}\r\n"));
    if is("none") {
        return None;
    }
    if is("hang") {
        return Some(stream);
    }
    if is("interim") {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").expect("a reader");
    }
    stream.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig").expect("a reader");
    (!is("close")).then_some(stream)
}

fn begin(folder: &Folder) -> Running {
    let at = |name: &str| folder.path(name).display().to_string();
    let listener = UnixListener::bind(folder.path("peer")).expect("own folder");
    // They run until the test's process ends.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    let listener = UnixListener::bind(folder.path("early")).expect("own folder");
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming().flatten() {
            open.extend(refuse(stream));
        }
    });
    let numbers = folder.write("numbers.map", "0 zero\n7 seven\n");
    let script = SCRIPT.replace("NUMBERS", &numbers).replace("PEER", &at("peer")).replace("HTTP", &at("http"));
    let script = script.replace("EARLY", &at("early"));
    let text = format!(
        "global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n stats socket {} level admin\n lua-load {}\n\
         {DEFAULTS}frontend f\n bind {}\n http-request return status 200 content-type t/t lf-string \"%[method] %[path]\"\n",
        at("cli"),
        folder.write("s.lua", &script),
        at("http"),
    );
    Running::weir(&["-f", &folder.write("weir.cfg", &text)])
}

/// Checks the result of each row's expression.
fn check(rows: &[(&str, &str)]) {
    let folder = Folder::new();
    let _weir = begin(&folder);
    let mut stream = connect_unix(&folder.path("cli"));
    let code: String = rows.iter().map(|(code, _)| format!("{code}\n")).collect();
    stream.write_all(format!("lua run <<\n{code}\n").as_bytes()).expect("sent");
    stream.shutdown(Shutdown::Write).expect("open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let got: Vec<&str> = answer.lines().collect();
    for (number, (code, expected)) in rows.iter().enumerate() {
        assert_eq!(got.get(number), Some(expected), "{code}: {answer}");
    }
}

#[test]
fn sockets_receive_what_a_pattern_says() {
    check(&[
        ("all(s('raw a\\\\nb\\\\r\\\\n\\\\nc\\nclose'), '*l', '*l', '*l', '*l', '*l')", "a|b||c|connection closed."),
        ("s('raw ab\\\\ncd\\nclose'):receive('*a') == 'ab\\ncd'", "true"),
        ("all(s('raw abcdefg\\nclose'), 2, '3', 0, 9, 1)", "ab|cde||fg|connection closed."),
        // Data that the script already has counts towards a number of bytes.
        ("s('raw abcdef'):receive(4, '<<')", "<<ab"),
        ("s('raw abc'):receive(2, '<<<')", "<<<"),
        ("s('abc'):receive('*l', '<<')", "<<abc"),
        ("s('raw ab\\nclose'):receive('*a', '<<')", "<<ab"),
        ("s('close'):receive('*a', '<<')", "<<"),
        // The partial data follows the error, and the socket stays open. Its first byte shows that all of it has
        // arrived.
        ("both(s('raw xpart'), first, function(o) return o:receive('*l') end)", "x nil timeout part"),
        ("both(s('raw xpart'), first, function(o) return o:receive(9, '<') end)", "x nil timeout <part"),
        ("s(nil, 0.05):receive()", "nil timeout "),
        (
            "both(s('raw xpart'), first, function(o) o:receive() o:settimeout(9) o:send('x\\n') return o:receive() end)",
            "x x",
        ),
        ("s(nil):receive(-1)", "Unsupported size."),
        ("s(nil):receive('*n')", "Unsupported pattern."),
        ("s(nil):receive(1.5)", "bad argument #1 to 'receive' (number has no integer representation)"),
        ("s(nil):receive('*l', 5)", "Expect a 'string' for the prefix"),
        ("s(nil):receive('*l', 'a', 'b')", "The 'receive' function requires between 1 and 3 arguments."),
    ]);
}

#[test]
fn sockets_are_connected_once_and_say_what_is_wrong() {
    check(&[
        ("s():connect(peer)", "connect: connect already performed"),
        ("both(s(), function(o) o:close() end, function(o) return o:connect(peer) end)", " nil closed"),
        (
            "both(s(), function(o) o:close() end, function(o) local a = o:settimeout(1) return a end)",
            "x:1: socket: not yet initialised, you can't set timeouts.",
        ),
        ("core.tcp():connect('127.0.0.1', 0)", "nil Can't connect"),
        ("core.tcp():connect('127.0.0.1', 70000)", "nil Can't connect"),
        ("core.tcp():connect('127.0.0.1')", "connect: port missing"),
        ("core.tcp():connect('127.0.0.1', 'a')", "bad argument #2 to 'connect' (number expected, got string)"),
        ("core.tcp().connect({}, peer)", "bad argument #1 to 'connect' (Socket expected)"),
        ("core.tcp().close(nil)", "bad argument #1 to 'close' (Socket expected)"),
        ("s():getpeername(), s():getsockname(), core.tcp():getpeername()", "unix unix nil"),
        ("s():send('abc', 2), s():send('abc', 9), s():send(42)", "2 0 2"),
        ("s():send('abc', 'x')", "bad argument #2 to 'send' (number expected, got string)"),
        ("s():send()", "'send' needs between 2 and 4 arguments"),
        ("s():settimeout('1.5'), s():settimeout(0), s():settimeout(2147483.647)", "1 1 1"),
        ("s():settimeout(2147484)", "settimeout: cannot set values larger than 2147483647 ms"),
        ("s():settimeout(-1)", "settimeout: cannot set negatives values"),
        ("s():settimeout('x')", "bad argument #1 to 'settimeout' (number expected, got string)"),
        ("s():settimeout()", "'settimeout' needs 2 arguments"),
    ]);
}

#[test]
fn requests_of_scripts_take_what_the_manual_names() {
    let get = |fields: &str| format!("core.httpclient():get{{url='http://weir.test/a', {fields}}}");
    let post = "core.httpclient():post{url='http://weir.test/a', dst='unix@' .. early, headers={}, timeout=20000, \
                body=('x'):rep(5000000)}"
        .to_owned();
    let dst = "dst='unix@' .. http";
    let rows = [
        (get(dst), "200 GET /a"),
        (get(&format!("{dst}, timeout=60000.0")), "200 GET /a"),
        (get(&format!("{dst}, timeout=0")), "200 GET /a"),
        (get("dst='unix@' .. peer, timeout=50"), "0 Bad Gateway page"),
        (get("dst='unix@' .. early, headers={x={'hang'}}, timeout=50.0"), "0 Gateway Time-out page"),
        (get("dst='unix@' .. peer .. 'none'"), "0 Service Unavailable page"),
        (get("dst='unix@' .. early, headers={x={'none'}}"), "0 Bad Gateway page"),
        // A server that rejects a body need not read it, nor close.
        (post.clone(), "413 big"),
        (post.replace("{}", "{x={'close'}}"), "413 big"),
        (post.replace("{}", "{x={'interim'}}"), "413 big"),
        (post.replace("{}", "{x={'none'}}"), "0 Bad Gateway page"),
        (get(&format!("{dst}, tiemout=1")), "'tiemout' invalid parameter name"),
        (get(&format!("{dst}, timeout='1'")), "invalid parameter in 'timeout', must be a number"),
        (get(&format!("{dst}, headers='a'")), "invalid parameter in 'headers', must be a table"),
        (get(&format!("{dst}, body={{}}")), "invalid parameter in 'body', must be a string"),
        (get("dst='not valid'"), "Can't use the 'dst' argument"),
        ("core.httpclient():get{url=5}".to_owned(), "invalid parameter in 'url', must be a string"),
        ("core.httpclient():get{}".to_owned(), "'get' need a 'url' argument"),
    ];
    let rows: Vec<(&str, &str)> = rows.iter().map(|(code, expected)| (&**code, *expected)).collect();
    check(&rows);
}

#[test]
fn numbers_are_looked_up_as_numbers() {
    check(&[
        ("numbers:lookup(7), numbers:lookup('7'), numbers:lookup('0x7'), numbers:slookup(8)", "seven seven seven "),
        ("numbers:lookup('abc')", "bad argument #1 to 'lookup' (number expected, got string)"),
        ("numbers:lookup(1.5)", "bad argument #1 to 'lookup' (number has no integer representation)"),
        ("numbers:lookup()", "'lookup' needs 2 arguments"),
        ("numbers.lookup({}, 1)", "bad argument #1 to 'lookup' (Map expected)"),
        ("Map.new('x', 1)", "'new': map: cannot load map at runtime."),
        // Results of a list show whether there was an entry; prepared entries exist together with current ones.
        ("list:del('9'), list:add('9', 'nine'), list:del('9')", "false true true"),
        (
            "list:prepare(), list:add('8', 'eight'), list:purge(), list:commit(), list['8'], list['7']",
            "nil true true true nil nil",
        ),
    ]);
}
