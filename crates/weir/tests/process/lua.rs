//! Scripts in the finished program: rules use what they register, and their errors affect no other request.

use crate::support::{DEFAULTS, Folder, Running, connect_unix, exchange_on, weir};
use std::io::{Read, Write};

const SCRIPT: &str = r#"
core.register_fetches("tell", function(txn, a, b)
    return (a or "-") .. (b or "-") .. txn.f:path() .. "/" .. txn.sf:req_hdr("x-in") .. "/" .. txn.c:upper("c")
end)
core.register_fetches("fail", function(txn) error("boom") end)
core.register_fetches("spin", function(txn) while true do pcall(function() while true do end end) end end)
core.register_fetches("eat", function(txn) local t = {} while true do t[#t + 1] = ("x"):rep(100000) .. #t end end)
local map, networks = Map.new("MAP", Map._str), Map.new("NETWORKS", Map._ip)
core.register_fetches("mapped", function(txn)
    return map:lookup("a") .. map:slookup("b") .. tostring(map:lookup("b")) .. networks:lookup("10.1.2.3")
end)
core.register_converters("twice", function(text, by) return text .. (by or "") .. text end)
core.register_action("mark", {"http-req", "http-res"}, function(txn, name, value)
    if txn.f:res_ver() == nil then
        txn.http:req_set_header(name, value)
        txn:set_var("txn.count", 1)
        txn:set_priv({ name = name })
    else
        txn.http:res_add_header(name, value .. txn:get_var("txn.count") .. txn:get_priv().name)
    end
end, 2)
core.register_action("slow", {"http-req"}, function(txn)
    for _ = 1, 3 do core.msleep(1) end
    for i = 1, 100000 do local _ = i end
    txn:set_var("req.slow", "done")
end)
core.register_action("refuse", {"http-req"}, function(txn) return act.DENY end)
core.register_action("reply", {"http-req"}, function(txn)
    txn:done{ status = 418, reason = "tea", headers = { ["x-a"] = { "1", "2" } }, body = "hi" }
end)
core.register_service("echo", "http", function(applet)
    local body = applet:receive()
    applet:set_status(201)
    applet:add_header("content-length", #body + 2)
    applet:start_response()
    core.msleep(1)
    applet:send("<" .. body)
    applet:send(">")
end)
core.register_service("broken", "http", function(applet) error("late") end)
core.register_service("lines", "tcp", function(applet)
    local line = applet:getline()
    applet:send("<" .. line .. ">" .. tostring(applet:receive(100, 1)))
    applet:send(applet:receive(3) .. tostring(applet:receive()) .. applet.f:fe_name())
end)
core.register_service("ask", "http", function(applet)
    local socket = core.tcp()
    socket:settimeout(60)
    socket:connect("unix@" .. applet.headers["x-socket"][0])
    socket:send("one\n")
    local first = socket:receive(9)
    socket:send("abc")
    local response = core.httpclient():post{
        url = "http://weir.test/echo", dst = "unix@" .. applet.headers["x-http"][0], body = "body",
    }
    local body = first .. response.status .. response.body .. response.headers["content-length"][0]
    socket:close()
    applet:add_header("content-length", #body)
    applet:start_response()
    applet:send(body)
end)
"#;

const RULES: &str = "http-request return status 200 content-type t/t lf-string %[lua.tell(a,b)] if { path /tell }
 http-request return status 200 content-type t/t lf-string %[lua.mapped] if { path /mapped }
 http-request return status 200 content-type t/t lf-string \"%[path,lua.twice(-)]\" if { path /twice }
 http-request return status 200 content-type t/t lf-string \"<%[lua.fail]>\" if { path /fail }
 http-request return status 200 content-type t/t lf-string \"<%[lua.spin]>\" if { path /spin }
 http-request return status 200 content-type t/t lf-string \"<%[lua.eat]>\" if { path /eat }
 http-request lua.mark x-m \"a b\" if { path /mark }
 http-request lua.slow if { path /slow }
 http-request return status 200 content-type t/t lf-string \"%[req.hdr(x-m)]%[var(req.slow)]\" if { path /mark /slow }
 http-request lua.refuse if { path /refuse }
 http-request lua.reply if { path /reply }
 http-request use-service lua.ask if { path /ask }
 http-request use-service lua.broken if { path /broken }
 http-request use-service lua.echo";

fn configuration(folder: &Folder, (keyword, limits): (&str, &str), rules: &str) -> String {
    let map = folder.write("a.map", "a one\n");
    let networks = folder.write("networks.map", "10.0.0.0/8 ten\n");
    let script = folder.write("s.lua", &SCRIPT.replace("MAP", &map).replace("NETWORKS", &networks));
    let socket = folder.path("socket").display().to_string();
    let text = format!(
        "global\n nbthread 2\n tune.lua.bool-sample-conversion normal\n{limits} {keyword} {script}\n{DEFAULTS}frontend f\n \
         bind {socket}\n {rules}\n"
    );
    folder.write("weir.cfg", &text)
}

#[test]
fn what_scripts_register_serves_requests() {
    for keyword in ["lua-load", "lua-load-per-thread"] {
        let folder = Folder::new();
        let limits = " tune.lua.burst-timeout 1s\n tune.lua.maxmem 24\n";
        let config = configuration(&folder, (keyword, limits), RULES);
        let _weir = Running::weir(&["-f", &config]);
        let mut stream = connect_unix(&folder.path("socket"));
        let rows = [
            ("GET /tell", "", 200, "ab/tell/in/C"),
            ("GET /mapped", "", 200, "onenilten"),
            ("GET /twice", "", 200, "/twice-/twice"),
            ("GET /fail", "", 200, "<>"),
            ("GET /mark", "", 200, "a b"),
            ("GET /slow", "", 200, "done"),
            ("GET /spin", "", 200, "<>"),
            ("GET /eat", "", 200, "<>"),
            ("GET /tell", "", 200, "ab/tell/in/C"),
            ("POST /echo", "body", 201, "<body>"),
            ("GET /reply", "", 418, "hi"),
        ];
        for (line, body, status, expected) in rows {
            let request =
                format!("{line} HTTP/1.1\r\nhost: a\r\nx-in: in\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let answer = exchange_on(&mut stream, &request);
            assert_eq!(answer, (status, expected.to_owned()), "{line}");
        }
        for (path, status) in [("/refuse", 403), ("/broken", 500)] {
            let mut stream = connect_unix(&folder.path("socket"));
            assert_eq!(
                exchange_on(&mut stream, &format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).0,
                status,
                "{path}"
            );
        }
    }
}

#[test]
fn names_that_no_script_registered_and_scripts_that_fail_are_refused() {
    let folder = Folder::new();
    let rows = [
        ("http-request use-service lua.nope", "'lua.nope' unknown service name."),
        ("http-request lua.nope", "but got 'lua.nope'."),
        ("http-response lua.slow", "but got 'lua.slow'."),
        ("http-request lua.mark x", "while parsing 'http-request lua.mark' rule : expect 2 arguments."),
        ("http-request set-header a %[lua.nope]", "unknown fetch method 'lua.nope'"),
        ("http-request set-header a %[path,lua.nope]", "unknown converter 'lua.nope'"),
    ];
    for (rule, expected) in rows {
        let config = configuration(&folder, ("lua-load", ""), rule);
        let run = weir(["-c", "-f", &config]);
        assert!(run.code() == Some(1) && run.stderr.contains(expected), "{rule}: {}", run.stderr);
    }
    let rows = [
        ("x = = 1", "error in Lua file 'NAME': NAME:1: unexpected symbol near '='"),
        ("\nerror('boom')", "Lua runtime error: NAME:2: boom"),
        ("core.register_fetches('x')", "Lua runtime error: NAME:1: 'register_fetches' needs 2 arguments"),
    ];
    for (script, expected) in rows {
        let name = folder.write("bad.lua", script);
        let text = format!(
            "global\n tune.lua.bool-sample-conversion normal\n lua-load {name}\n{DEFAULTS}frontend f\n bind {}\n",
            folder.path("s").display()
        );
        let run = weir(["-c", "-f", &folder.write("bad.cfg", &text)]);
        let expected = format!("bad.cfg:3] : {}", expected.replace("NAME", &name));
        assert!(run.code() == Some(1) && run.stderr.contains(&expected), "{expected}: {}", run.stderr);
    }
}

#[test]
fn services_of_bytes_and_connections_of_scripts() {
    let folder = Folder::new();
    let config = configuration(&folder, ("lua-load", ""), RULES);
    let (tcp, http) = (folder.path("tcp"), folder.path("socket"));
    let text = std::fs::read_to_string(&config).expect("a file");
    let more = format!(
        "frontend t\n mode tcp\n bind {}\n tcp-request inspect-delay 60s\n tcp-request content use-service lua.lines\n",
        tcp.display()
    );
    let _weir = Running::weir(&["-f", &folder.write("weir.cfg", &(text + &more))]);
    let mut stream = connect_unix(&tcp);
    stream.write_all(b"hello\n").expect("sent");
    let mut first = [0; 11];
    stream.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"<hello\n>nil");
    stream.write_all(b"abcdef").expect("sent");
    stream.shutdown(std::net::Shutdown::Write).expect("open");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("an answer");
    assert_eq!(rest, "abcdeft");
    let mut stream = connect_unix(&http);
    let request =
        format!("GET /ask HTTP/1.1\r\nhost: a\r\nx-socket: {}\r\nx-http: {}\r\n\r\n", tcp.display(), http.display());
    assert_eq!(exchange_on(&mut stream, &request), (200, "<one\n>nil201<body>6".to_owned()));
}

/// A service of a session is logged like a server that ends, its bytes are counted like one's, and a client that sends nothing
/// more does not end it.
#[test]
fn services_of_bytes_are_logged_like_servers() {
    let folder = Folder::new();
    let script = folder.write(
        "s.lua",
        "core.register_service('hello', 'tcp', function(applet) applet:send('hi\\n') end)\n\
         core.register_service('read', 'tcp', function(applet) applet:getline() applet:getline() applet:send('end\\n') end)\n\
         core.register_service('late', 'tcp', function(applet) core.msleep(700) applet:send('late\\n') end)\n",
    );
    let at = folder.path("").display().to_string();
    let text = format!(
        "global\n tune.lua.bool-sample-conversion normal\n lua-load {script}\n log stdout format raw local0\n stats socket \
         {at}/cli level admin\ndefaults\n log global\n option tcplog\n timeout client 300ms\nfrontend t\n mode tcp\n bind \
         {at}/tcp\n tcp-request inspect-delay 60s\n tcp-request content use-service lua.hello if {{ req.payload(0,1) -m str h \
         }}\n tcp-request content use-service lua.read if {{ req.payload(0,1) -m str r }}\n tcp-request content use-service \
         lua.late if {{ req.payload(0,1) -m str l }}\n"
    );
    let mut weir = Running::weir(&["-f", &folder.write("weir.cfg", &text)]);
    for (sent, ends, answer, name, state) in [
        ("h\n", false, "hi\n", "hello", "3 --"),
        ("r\n", true, "end\n", "read", "4 --"),
        // The client's time is over: the service reads the end, and answers.
        ("r\n", false, "end\n", "read", "4 cD"),
        ("l\n", true, "late\n", "late", "5 --"),
        ("l\n", false, "late\n", "late", "5 cD"),
    ] {
        let mut stream = connect_unix(&folder.path("tcp"));
        stream.write_all(sent.as_bytes()).expect("sent");
        if ends {
            stream.shutdown(std::net::Shutdown::Write).expect("open");
        }
        let mut found = String::new();
        stream.read_to_string(&mut found).expect("an answer");
        let line = weir.wait_for_line(|line| line.contains(" t/<lua."));
        let is_logged = line.contains(&format!(" t/<lua.{name}> ")) && line.contains(&format!(" {state} "));
        assert!(found == answer && is_logged, "{sent} {ends}: {found} {line}");
    }
    let mut cli = connect_unix(&folder.path("cli"));
    cli.write_all(b"show stat t 1 -1\n").expect("sent");
    let mut shown = String::new();
    cli.read_to_string(&mut shown).expect("an answer");
    let (columns, row) = shown.trim_start_matches("# ").split_once('\n').expect("a row");
    let at = columns.split(',').position(|name| name == "bout").expect("a column");
    assert_eq!(row.split(',').nth(at), Some("21"), "{shown}");
}
