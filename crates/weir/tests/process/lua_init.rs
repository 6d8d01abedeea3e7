//! Objects that scripts create in functions of `core.register_init`, between loading and serving: they exist while the
//! process serves, for every thread, rules, scripts and the runtime API. Errors of scripts are reported and counted.

use crate::reload::Service;
use crate::support::{DEFAULTS, Folder, Running, connect, connect_unix, exchange, exchange_on, get, wait_until, weir};
use std::io::{Read, Write};

/// A firewall: `register_init` creates the map, a task fills it, an action looks it up.
const FIREWALL: &str = r#"
local map, maps, late, shared
core.register_init(function()
    core.msleep(1)
    map = Map.new("BANS", Map._ip)
    maps = {}
    for _, method in ipairs({ "str", "beg", "sub", "dir", "dom", "end", "reg" }) do
        maps[#maps + 1] = Map.new("VALUES", Map["_" .. method])
    end
    maps[#maps + 1] = Map.new("virt@numbers", Map._int)
    shared = Map.new("SHARED", Map._sub)
    core.set_map("VALUES", "b", "two")
    local ok, why = pcall(Map.new, "BANS.missing", Map._str)
    late = tostring(ok) .. tostring(why:find("failed to open pattern file <BANS.missing>", 1, true) ~= nil)
    for _, list in ipairs({ "BANS", "VALUES", "virt@numbers", "ACL" }) do core.get_patref(list) end
    core.add_acl("ACL", "/listed")
    core.backends["b"].servers["s"]:set_weight("7")
    core.register_init(function() late = late .. "inner" end)
    core.register_task(function()
        core.set_map("BANS", "10.0.0.0/8", "ban")
        core.set_map("SHARED", "by-task", "yes")
    end)
    core.register_cli({ "show", "late" }, "show late: what was made last", function(applet) applet:send(late .. "\n") end)
end)
core.register_action("allow", { "http-req" }, function(txn)
    if map:lookup(txn.f:hdr("x-ip")) == "ban" then txn:set_var("req.denied", true) end
    local found = {}
    for index, one in ipairs(maps) do
        found[index] = one:slookup(index == #maps and 5 or "b")
    end
    txn:set_var("req.found", table.concat(found, ",") .. (shared:lookup("/by-task/x") or "-"))
end)
"#;

fn command(folder: &Folder, line: &str) -> String {
    let mut stream = connect_unix(&folder.path("cli"));
    stream.write_all(format!("{line}\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn asked(folder: &Folder, path: &str, ip: &str) -> (u16, String) {
    let mut stream = connect_unix(&folder.path("socket"));
    exchange_on(&mut stream, &format!("GET {path} HTTP/1.1\r\nhost: a\r\nx-ip: {ip}\r\n\r\n"))
}

/// Returns an entire answer.
fn whole(folder: &Folder, path: &str) -> String {
    let mut stream = connect_unix(&folder.path("socket"));
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn what_init_functions_make_is_there_while_serving() {
    for keyword in ["lua-load", "lua-load-per-thread"] {
        let folder = Folder::new();
        let (bans, values) = (folder.write("bans.map", ""), folder.write("values.map", "a one\n"));
        let (acl, shared) = (folder.write("listed.acl", "/never\n"), folder.write("shared.map", "never no\n"));
        let script = FIREWALL.replace("BANS", &bans).replace("VALUES", &values).replace("ACL", &acl);
        let script = folder.write("s.lua", &script.replace("SHARED", &shared));
        let at = folder.path("").display().to_string();
        let text = format!(
            "global\n nbthread 3\n tune.lua.bool-sample-conversion normal\n stats socket {at}/cli level admin\n {keyword} \
             {script}\n{DEFAULTS}frontend f\n bind {at}/socket\n http-request lua.allow\n http-request deny status 403 if {{ \
             var(req.denied) -m bool }}\n http-request return status 418 if {{ path -f {acl} }}\n http-request return status 404 \
             if {{ req.hdr(x-ip),map({shared}) -m str yes }}\n http-request return status 200 content-type t/t lf-string \
             %[var(req.found)]\nbackend b\n server s 127.0.0.1:9\n"
        );
        let _weir = Running::weir(&["-f", &folder.write("weir.cfg", &text)]);
        wait_until("the task has filled the map", || asked(&folder, "/", "10.1.2.3").0 == 403);
        // Every thread sees it.
        for _ in 0..12 {
            assert_eq!(asked(&folder, "/", "10.1.2.3").0, 403, "{keyword}");
            assert_eq!(
                asked(&folder, "/", "192.0.2.1"),
                (200, "two,two,two,two,two,two,two,yes".to_owned()),
                "{keyword}"
            );
        }
        assert_eq!((asked(&folder, "/listed", "").0, asked(&folder, "/", "by-task").0), (418, 404));
        // The runtime API shows and changes it.
        let lists = command(&folder, "show map");
        for name in [&bans, &values, "virt@numbers"] {
            let line = lists
                .lines()
                .find(|line| line.contains(&format!("({name}) pattern loaded from file '{name}' used by map at file")));
            assert!(line.is_some_and(|line| line.contains(&script)), "{lists}");
        }
        assert!(command(&folder, &format!("show map {bans}")).contains(" 10.0.0.0/8 ban\n"));
        assert!(command(&folder, &format!("show acl {acl}")).contains(" /listed\n"));
        command(&folder, &format!("add map {bans} 192.0.2.0/24 ban"));
        assert_eq!(asked(&folder, "/", "192.0.2.1").0, 403);
        command(&folder, &format!("clear map {bans}"));
        assert_eq!(asked(&folder, "/", "10.1.2.3").0, 200);
        command(&folder, "add map virt@numbers 5 five");
        assert!(asked(&folder, "/", "").1.contains("two,five"));
        assert_eq!(command(&folder, "show late"), "falsetrueinner\n\n");
        assert!(command(&folder, "get weight b/s").starts_with("7 "));
        assert!(command(&folder, "show info").contains("FailedScripts: 0\n"));
    }
}

const FAILING: &str = r#"
core.register_task(function() error("taskboom") end)
core.register_action("fail", { "http-req" }, function() error("actionboom") end)
core.register_fetches("fail", function() error("fetchboom") end)
core.register_service("fail", "http", function() error("serviceboom") end)
core.register_cli({ "fail" }, "fail", function() error("commandboom") end)
"#;

#[test]
fn what_fails_in_a_script_is_reported_with_its_place_and_counted() {
    let folder = Folder::new();
    let script = folder.write("failing.lua", FAILING);
    let at = folder.path("").display().to_string();
    let text = format!(
        "global\n nbthread 1\n tune.lua.bool-sample-conversion normal\n log stdout format raw local0\n stats socket {at}/cli level \
         admin\n lua-load {script}\n{DEFAULTS}frontend f\n log global\n bind {at}/socket\n http-request use-service prometheus-exporter if {{ path /metrics }}\n \
         http-request lua.fail\n http-request set-var(req.x) lua.fail\n http-request use-service lua.fail\n"
    );
    let mut running = Running::weir(&["-f", &folder.write("weir.cfg", &text)]);
    running.wait_for_line(|line| line.contains(&format!("{script}:2: taskboom")));
    assert_eq!(asked(&folder, "/", "").0, 500);
    command(&folder, "fail");
    for place in ["3: actionboom", "4: fetchboom", "5: serviceboom", "6: commandboom"] {
        running.wait_for_line(|line| line.contains(&format!("{script}:{place}")));
    }
    assert!(command(&folder, "show info").contains("FailedScripts: 5\n"));
    let metrics = whole(&folder, "/metrics");
    assert!(metrics.contains("haproxy_process_failed_scripts 5\n"), "{metrics}");
}

#[test]
fn an_init_function_that_fails_ends_the_start() {
    let folder = Folder::new();
    for (body, why) in [
        ("error('initboom')", "initboom"),
        ("core.tcp():connect('127.0.0.1', 9)", "is not allowed before the process serves"),
    ] {
        let script = folder.write("s.lua", &format!("core.register_init(function()\n{body}\nend)"));
        let text = format!("global\n lua-load {script}\n{DEFAULTS}frontend f\n bind {}\n", folder.path("s").display());
        let finished = weir(["-f", &folder.write("weir.cfg", &text)]);
        let expected = format!("Lua init: {script}:2: ");
        assert!(finished.code() == Some(1), "{}", finished.stderr);
        assert!(finished.stderr.contains(&expected) && finished.stderr.contains(why), "{}", finished.stderr);
    }
}

/// Libraries register the same name for requests and for responses, with separate functions.
#[test]
fn an_action_of_one_name_is_registered_for_requests_and_for_answers() {
    let folder = Folder::new();
    let script = folder.write(
        "s.lua",
        r#"core.register_action("cross", { "http-req" }, function(txn, origin) txn:set_var("txn.origin", origin) end, 1)
        core.register_action("cross", { "http-res" }, function(txn)
            txn.http:res_set_header("x-origin", txn:get_var("txn.origin"))
        end, 0)"#,
    );
    let at = folder.path("").display().to_string();
    let text = format!(
        "global\n tune.lua.bool-sample-conversion normal\n lua-load {script}\n{DEFAULTS}frontend f\n bind {at}/socket\n \
         http-request lua.cross here\n http-response lua.cross\n use_backend b if TRUE\nbackend b\n server s \
         unix@{at}/server\nfrontend g\n bind {at}/server\n http-request return status 200\n"
    );
    let config = folder.write("weir.cfg", &text);
    let checked = weir(["-c", "-f", &config]);
    assert!(!checked.stderr.contains("more than once"), "{}", checked.stderr);
    let _weir = Running::weir(&["-f", &config]);
    let answer = whole(&folder, "/");
    assert!(answer.contains("\r\nx-origin: here\r\n"), "{answer}");
}

/// A service may take longer than `timeout server`, and a script receives the rest of a body while it waits.
#[test]
fn services_take_their_time_and_bodies_come_while_scripts_wait() {
    let folder = Folder::new();
    let script = folder.write(
        "s.lua",
        r#"core.register_service("slow", "http", function(applet)
            core.msleep(60)
            applet:set_status(200)
            applet:add_header("content-length", "4")
            applet:start_response()
            applet:send("slow")
        end)
        core.register_action("body", { "http-req" }, function(txn)
            local rounds = 0
            while tonumber(txn.sf:req_body_len()) == 0 and rounds < 2000 do
                core.msleep(5)
                rounds = rounds + 1
            end
            txn:set_var("req.body", txn.sf:req_body())
        end)"#,
    );
    let at = folder.path("").display().to_string();
    let text = format!(
        "global\n tune.lua.bool-sample-conversion normal\n lua-load {script}\n{DEFAULTS} timeout server 20ms\nfrontend f\n bind \
         {at}/socket\n http-request lua.body if {{ method POST }}\n http-request return status 200 content-type t/t lf-string \
         %[var(req.body)] if {{ method POST }}\n http-request use-service lua.slow\n"
    );
    let _weir = Running::weir(&["-f", &folder.write("weir.cfg", &text)]);
    assert_eq!(asked(&folder, "/", ""), (200, "slow".to_owned()));
    let mut stream = connect_unix(&folder.path("socket"));
    stream.write_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n").expect("sent");
    // The head was received, and the script waits.
    std::thread::yield_now();
    assert_eq!(exchange_on(&mut stream, "hello"), (200, "hello".to_owned()));
}

/// What a script reads of the process and its counts before connections are accepted.
const ASKS: &str = r#"
local told = {}
core.register_init(function()
    local info = core.get_info()
    told = { info.Name, info.Nbthread, info.CurrConns }
    for _, stats in ipairs({
        core.backends["b"].servers["s"]:get_stats(), core.backends["b"]:get_stats(), core.frontends["f"]:get_stats(),
    }) do
        told[#told + 1] = stats.svname .. " " .. stats.status .. " " .. (stats.weight or "-")
    end
end)
core.register_cli({ "show", "told" }, "show told: what was read", function(applet)
    applet:send(table.concat(told, ",") .. "\n")
end)
"#;

#[test]
fn what_is_counted_can_be_read_before_serving() {
    for keyword in ["lua-load", "lua-load-per-thread"] {
        let folder = Folder::new();
        let (script, at) = (folder.write("s.lua", ASKS), folder.path("").display().to_string());
        let text = format!(
            "global\n nbthread 2\n tune.lua.bool-sample-conversion normal\n stats socket {at}/cli level admin\n {keyword} \
             {script}\n{DEFAULTS}frontend f\n bind {at}/socket\n default_backend b\nbackend b\n server s 127.0.0.1:9 \
             weight 7\n"
        );
        let _weir = Running::weir(&["-f", &folder.write("weir.cfg", &text)]);
        wait_until("it answers", || std::os::unix::net::UnixStream::connect(folder.path("cli")).is_ok());
        let told = command(&folder, "show told");
        assert_eq!(told, "Weir,2,0,s no check 7,BACKEND UP 7,FRONTEND OPEN -\n\n", "{keyword}");
    }
}

/// A script's functions of `core.register_init` run again: its maps are there, as it makes them.
#[test]
fn a_reload_makes_the_maps_of_scripts_again() {
    let folder = Folder::new();
    let script = folder.path("s.lua").display().to_string();
    let map = folder.write("bans.map", "");
    let say = |word: &str| {
        let text = "local map\ncore.register_init(function()\n map = Map.new(\"MAP\", Map._ip)\nend)\n\
                    core.register_task(function() core.set_map(\"MAP\", \"192.0.2.0/24\", \"WORD\") end)\n\
                    core.register_fetches(\"found\", function(txn) return map:lookup(\"192.0.2.1\") or \"-\" end)\n";
        folder.write("s.lua", &text.replace("MAP", &map).replace("WORD", word));
    };
    say("one");
    let global = format!("    tune.lua.bool-sample-conversion normal\n    lua-load {script}\n");
    let sections = |word: &str| {
        format!(
            "frontend web\n    bind 127.0.0.1:PORT\n    http-request return status 200 content-type text/plain lf-string \
             \"{word} %[lua.found]\"\n"
        )
    };
    let service = Service::start_with(&global, &sections("a"), Folder::new());
    let answer = || exchange(&mut connect(service.port), &get("/")).1;
    wait_until("the task has filled the map", || answer() == "a one");
    let worker = service.worker();
    service.ask("master", &format!("@1 add map {map} 198.51.100.1 more"));
    say("two");
    service.write(&global, &sections("b"));
    let told = service.reload();
    assert!(told.starts_with("Success=1") && told.contains("A new worker is started."), "{told}");
    wait_until("the map is made again", || answer() == "b two");
    assert_ne!(service.worker(), worker);
    let shown = service.ask("master", &format!("@1 show map {map}"));
    assert!(shown.contains(" 192.0.2.0/24 two\n") && !shown.contains("198.51.100.1"), "{shown}");
}
