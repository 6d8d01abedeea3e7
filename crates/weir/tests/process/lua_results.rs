//! Return values of script functions, and where they may wait: missing results, values that are too long or of the
//! wrong type, and actions on data to the client, which cannot wait.

use crate::support::{DEFAULTS, Folder, Running, connect_unix};
use std::io::{Read, Write};

const SCRIPT: &str = r#"
core.register_action("late", { "http-after-res" }, function(txn)
    local sum = 0
    for _ = 1, 200000 do sum = sum + 1 end
    txn.http:res_set_header("x-sum", sum)
end)
core.register_action("sleepy", { "http-after-res" }, function(txn)
    core.msleep(1)
    txn.http:res_set_header("x-never", "1")
end)
core.register_action("again", { "http-after-res" }, function() return act.YIELD end)
core.register_action("spread", { "http-req" }, function(txn)
    local function three(...) return 1, 2, ... end
    local function add(a, b, c) return a + b + c end
    local sum = 0
    for _ = 1, 50000 do sum = sum + add(three(3)) end
    txn:set_var("txn.text", tostring(sum))
end)
core.register_action("level", { "http-req" }, function(txn)
    txn:set_var("txn.text", tostring(pcall(txn.set_loglevel, txn, 99)) .. tostring(pcall(txn.log, txn, -1, "x")))
end)
core.register_action("done", { "http-req", "http-res" }, function() return act.DONE end)
core.register_fetches("nothing", function() return end)
core.register_converters("none", function() return end)
core.register_fetches("nil", function() return nil end)
core.register_fetches("long", function(txn)
    txn:set_var("txn.long", ("x"):rep(100000))
    return tostring(#txn:get_var("txn.long"))
end)
core.register_fetches("made", function(txn)
    local made = txn:reply({ status = "x", reason = 5, headers = 5, body = {} })
    return made.status .. made.reason .. #made.headers .. made.body .. txn:reply("x").status
end)
core.register_service("early", "http", function(applet)
    applet:set_status(100)
    applet:start_response()
end)
"#;

const RULES: &str = r#" http-request set-var(txn.path) path
 http-request lua.spread if { path /spread }
 http-request lua.level if { path /level }
 http-request use-service lua.early if { path /early }
 http-request return status 200 content-type t/t lf-string "<%[var(txn.text)]>" if { path /spread /level }
 http-request return status 200 content-type t/t lf-string "<%[lua.nothing]%[path,lua.none]%[lua.nil]>" if { path /nothing }
 http-request return status 200 content-type t/t lf-string "<%[lua.long]>" if { path /long }
 http-request return status 200 content-type t/t lf-string "<%[lua.made]>" if { path /made }
 http-request lua.done if { path /done }
 http-request return status 200 content-type t/t string "<answered>"
 default_backend b
 http-after-response lua.late if { var(txn.path) -m str /late }
 http-after-response lua.sleepy if { var(txn.path) -m str /sleepy }
 http-after-response lua.again if { var(txn.path) -m str /again }
backend b
 http-request return status 200 content-type t/t string "<backend>"
"#;

fn get(folder: &Folder, path: &str) -> String {
    let mut stream = connect_unix(&folder.path("socket"));
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn results_are_read_as_haproxy_reads_them_and_actions_wait_where_they_may() {
    let folder = Folder::new();
    let script = folder.write("s.lua", SCRIPT);
    let socket = folder.path("socket").display().to_string();
    let text = format!(
        "global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n log stdout format raw local0\n lua-load {script}\n\
         {DEFAULTS}frontend f\n log global\n bind {socket}\n{RULES}"
    );
    let mut weir = Running::weir(&["-f", &folder.write("weir.cfg", &text)]);
    let rows = [
        ("/spread", "<300000>"),
        ("/level", "<falsefalse>"),
        ("/nothing", "<0>"),
        ("/long", "<100000>"),
        ("/made", "<200OK0200>"),
        ("/done", "<backend>"),
        ("/late", "<answered>"),
        ("/sleepy", "<answered>"),
        ("/again", "<answered>"),
    ];
    for (path, expected) in rows {
        let answer = get(&folder, path);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with(expected), "{path}: {answer}");
        assert_eq!(answer.contains("x-sum: 200000\r\n"), path == "/late", "{answer}");
        assert!(!answer.contains("x-never"), "{answer}");
    }
    assert!(get(&folder, "/early").starts_with("HTTP/1.1 500 "), "an informational status is no answer");
    weir.wait_for_line(|line| line.contains("Lua function 'sleepy': yield not allowed."));
    weir.wait_for_line(|line| line.contains("Lua function 'again': unable to yield, aborted Lua execution."));
}
