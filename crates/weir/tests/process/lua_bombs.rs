//! Scripts that never end, or allocate without limit: each is aborted with HAProxy's message, whatever it is registered
//! as, and other clients of the same thread are served.

use crate::support::{DEFAULTS, Folder, Running, connect_unix, exchange_on};
use std::io::{Read, Write};

/// Every bomb, registered in every way. The backtracking pattern runs inside the library.
const SCRIPT: &str = r#"
local function spin() while true do end end
local function backtracks(text) return tostring(text:find(".-.-.-.-.-.-b")) end
local bombs = {
    spin = spin,
    caught = function() while true do pcall(spin) end end,
    find = function() backtracks(("a"):rep(100000)) end,
    match = function() return ("a"):rep(100000):match(".-.-.-.-.-.-(b)") end,
    gmatch = function() for _ in ("a"):rep(100000):gmatch("a-a-a-a-a-b") do end end,
    gsub = function() return (("a"):rep(100000):gsub("a-a-a-a-a-b", "")) end,
    tables = function() local t = {} while true do t[#t + 1] = ("x"):rep(100000) .. #t end end,
    text = function() local t = "x" while true do t = t .. t end end,
    rep = function() return ("x"):rep(1 << 30) end,
    recurse = function() local function call(n) return 1 + call(n + 1) end return call(1) end,
    gc = function()
        for _ = 1, 10 do setmetatable({}, { __gc = spin }) end
        while true do collectgarbage() end
    end,
    move = function() table.move({ 1 }, 1, 1 << 61, 2) end,
    insert = function() table.insert(setmetatable({}, { __len = function() return 1 << 61 end }), 1, 1) end,
    concat = function() return table.concat(setmetatable({}, { __index = tostring }), "", 1, 1 << 61) end,
    nested = function() local function call(n) return (n:gsub(".", call)) end return call("1") end,
}
for name, bomb in pairs(bombs) do
    core.register_fetches(name, function() bomb() end)
    core.register_converters(name, function() bomb() end)
    core.register_action(name, { "http-req" }, function() bomb() end)
    core.register_service(name, "http", function() bomb() end)
    core.register_service(name .. "-bytes", "tcp", function() bomb() end)
    core.register_cli({ name }, "", function() bomb() end)
    core.register_cli({ "task-" .. name }, "", function() core.register_task(bomb) end)
    local class = { flags = filter.FLT_CFG_FL_HTX, http_headers = function() bomb() end }
    class.__index = class
    function class:new() return setmetatable({}, class) end
    core.register_filter(name, class, function(own) return own end)
end
"#;

fn begin(folder: &Folder, limits: &str, bombs: &[&str]) -> Running {
    let script = folder.write("s.lua", SCRIPT);
    let at = folder.text();
    let mut text = format!(
        "global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n log stdout format raw local0\n \
         stats socket {at}/cli level admin\n{limits} lua-load {script}\n{DEFAULTS}\
         frontend other\n bind {at}/other\n http-request return status 200\n\
         backend b\n server s unix@{at}/other\n"
    );
    for name in bombs {
        text += &format!(
            "frontend {name}\n log global\n bind {at}/{name}\n \
             http-request set-header x %[lua.{name}] if {{ path /fetch }}\n \
             http-request set-header x %[path,lua.{name}] if {{ path /converter }}\n \
             http-request lua.{name} if {{ path /action }}\n http-request use-service lua.{name} if {{ path /service }}\n \
             http-request return status 200\n\
             frontend {name}-filter\n log global\n bind {at}/{name}-filter\n filter lua.{name}\n default_backend b\n\
             frontend {name}-bytes\n mode tcp\n log global\n bind {at}/{name}-bytes\n \
             tcp-request content use-service lua.{name}-bytes\n"
        );
    }
    Running::weir(&["-f", &folder.write("weir.cfg", &text)])
}

/// The registrations of a bomb: socket, request, and its name in the log.
fn forms(name: &str) -> [(String, String, String); 8] {
    let get = |path: &str| format!("GET /{path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let http = |path: &str, said: &str| (name.to_owned(), get(path), format!("Lua {said}"));
    let cli = |typed: String, said: String| ("cli".to_owned(), format!("{typed}\n"), format!("Lua {said}"));
    [
        http("fetch", &format!("sample-fetch '{name}'")),
        http("converter", &format!("converter '{name}'")),
        http("action", &format!("function '{name}'")),
        http("service", &format!("applet http '<lua.{name}>'")),
        (format!("{name}-filter"), get(""), format!("Lua filter '{name}' ")),
        (format!("{name}-bytes"), "x".to_owned(), format!("Lua applet tcp '<lua.{name}-bytes>'")),
        cli(name.to_owned(), format!("cli '<lua.cli.{name}>'")),
        cli(format!("task-{name}"), "task".to_owned()),
    ]
}

/// Runs every form of the bombs, and serves another client at the same time.
fn light(folder: &Folder, weir: &mut Running, bombs: &[(&str, &[&str])]) {
    for (name, sentences) in bombs {
        for (place, sent, said) in forms(name) {
            let mut stream = connect_unix(&folder.path(&place));
            // A service may have ended before the request.
            let _ = stream.write_all(sent.as_bytes());
            let mut other = connect_unix(&folder.path("other"));
            let answer = exchange_on(&mut other, "GET / HTTP/1.1\r\nhost: x\r\n\r\n");
            assert_eq!(answer.0, 200, "{name} {place}");
            let line = weir.wait_for_line(|line| line.contains(&said));
            assert!(sentences.iter().any(|sentence| line.contains(sentence)), "{name} {place}: {line}");
            // The connection ends with its bomb.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
}

#[test]
fn what_never_ends_is_ended() {
    let folder = Folder::new();
    let limits = " tune.lua.burst-timeout 50ms\n tune.lua.session-timeout 80ms\n tune.lua.service-timeout 80ms\n \
                  tune.lua.task-timeout 80ms\n";
    let names = ["spin", "caught", "find", "match", "gmatch", "gsub", "gc", "move", "insert"];
    let mut weir = begin(&folder, limits, &names);
    // A function that may yield is forced to, and ends when its time is over.
    let timeouts = &["burst timeout.", "execution timeout."][..];
    light(&folder, &mut weir, &names.map(|name| (name, timeouts)));
}

/// A limit above that of the watchdog: the watchdog reports a function, but only its own limit aborts it.
#[test]
fn the_watchdog_lets_scripts_come_to_their_limits() {
    let folder = Folder::new();
    let limits = " tune.lua.burst-timeout 2500ms\n tune.lua.session-timeout 10s\n";
    let mut weir = begin(&folder, limits, &["spin"]);
    let mut stream = connect_unix(&folder.path("spin"));
    let answer = exchange_on(&mut stream, "GET /fetch HTTP/1.1\r\nhost: x\r\n\r\n");
    assert_eq!(answer.0, 200, "the connection outlives its script");
    weir.wait_for_line(|line| line.contains("Lua sample-fetch 'spin': burst timeout."));
    assert_eq!(exchange_on(&mut stream, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").0, 200);
}

#[test]
fn what_eats_memory_or_calls_itself_is_ended() {
    let folder = Folder::new();
    let limits = " tune.lua.burst-timeout 60s\n tune.lua.session-timeout 60s\n tune.lua.service-timeout 60s\n \
                  tune.lua.maxmem 8\n";
    let memory = &["out of memory error."][..];
    let deep = &["out of memory error.", "stack overflow"][..];
    let bombs = [
        ("tables", memory),
        ("text", memory),
        ("rep", memory),
        ("concat", memory),
        ("recurse", deep),
        ("nested", deep),
    ];
    let names = bombs.map(|(name, _)| name);
    let mut weir = begin(&folder, limits, &names);
    light(&folder, &mut weir, &bombs);
}
