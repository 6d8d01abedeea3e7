//! Classes of scripts that access the whole process: commands of the runtime API, events of servers, proxies and
//! tables. The results are HAProxy 3.5's.

use crate::support::{DEFAULTS, Folder, Running, connect_unix, wait_until};
use std::io::{Read, Write};
use std::path::Path;

const SCRIPT: &str = r#"
local function show(value)
    if type(value) ~= "table" then return tostring(value) end
    local keys, shown = {}, {}
    for key in pairs(value) do keys[#keys + 1] = key end
    table.sort(keys)
    for _, key in ipairs(keys) do shown[#shown + 1] = key .. "=" .. show(value[key]) end
    return "{" .. table.concat(shown, ",") .. "}"
end
core.register_cli({"lua", "args"}, "lua args : shows arguments", function(applet, ...)
    applet:send(table.concat({...}, ",") .. "\n")
end)
core.register_cli({"lua", "read"}, "", function(applet)
    core.msleep(1)
    applet:send("<" .. applet:getline() .. "><" .. applet:receive() .. ">\n")
    applet:set_var("txn.a", "b")
    applet:send(applet:get_var("txn.a") .. "\n")
end)
core.register_cli({"lua", "fail"}, "lua fail", function(applet) error("boom") end)
core.register_cli({"lua", "longer", "name"}, "lua longer", function(applet) applet:send("long") end)

local events = {}
local function keep(name)
    return function(event, data, sub, when)
        core.msleep(1)
        local more = data.admin and show(data.admin.new_admin) or data.state and show(data.state) or ""
        events[#events + 1] = name .. " " .. event .. " " .. data.proxy_name .. "/" .. data.name .. " "
            .. data.puid .. data.proxy_uuid .. math.type(when) .. tostring(data.reference and data.reference:get_name())
            .. more
        if name == "own" then sub:unsub() end
    end
end
core.event_sub({"SERVER"}, keep("all"))
core.register_init(function()
    core.backends.b.servers.s1:event_sub({"SERVER_DOWN", "SERVER_UP"}, keep("own"))
end)
core.register_cli({"lua", "events"}, "lua events", function(applet)
    applet:send(table.concat(events, "\n") .. "\n")
end)
core.register_cli({"lua", "run"}, "lua run", function(applet)
    local code = applet:receive()
    local p, s1, s2 = core.proxies, core.backends.b.servers.s1, core.backends.b.servers.s2
    local env = setmetatable({ p = p, s1 = s1, s2 = s2, m = core.get_patref("MAP") }, { __index = _G })
    for line in code:gmatch("[^\n]+") do
        local made = table.pack(pcall(load("return " .. line, "x", "t", env)))
        for i = 2, made.n do made[i] = show(made[i]) end
        applet:send(table.concat(made, " ", 2, made.n) .. "\n")
    end
end)
"#;

fn begin(folder: &Folder) -> Running {
    let map = folder.write("a.map", "k1 v1\n");
    let script = folder.write("s.lua", &SCRIPT.replace("MAP", &map));
    let at = |name: &str| folder.path(name).display().to_string();
    let text = format!(
        "global\n nbthread 2\n tune.lua.bool-sample-conversion normal\n log stdout format raw local0\n stats socket {} level admin\n lua-load {script}\n\
         {DEFAULTS}frontend f\n bind {} name one\n bind {}\n \
         http-request set-header x %[path,map({map})]\n default_backend b\nbackend b\n balance roundrobin\n \
         email-alert mailers m\n email-alert from f@x\n email-alert to t@x\n \
         server s1 127.0.0.1:81 weight 10\n server s2 unix@{} backup maxconn 30 weight 7\n\
         backend st\n stick-table type ip size 1m expire 60s store gpc0,conn_rate(3s)\n\
         backend words\n stick-table type string size 1k store gpc0\n\
         backend numbers\n stick-table type integer size 1k store gpc0\n\
         backend six\n stick-table type ipv6 size 1k store gpc0\n\
         backend arrays\n stick-table type string size 1k store gpc(2)\n\
         mailers m\n mailer one 127.0.0.1:25\n",
        at("cli"),
        at("f"),
        at("f2"),
        at("s2"),
    );
    Running::weir(&["-f", &folder.write("weir.cfg", &text)])
}

fn ask(socket: &Path, text: &str) -> String {
    let mut stream = connect_unix(socket);
    stream.write_all(text.as_bytes()).expect("sent");
    stream.shutdown(std::net::Shutdown::Write).expect("open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn commands_of_scripts_are_called_with_their_words_and_read_their_payload() {
    let folder = Folder::new();
    let mut weir = begin(&folder);
    let socket = folder.path("cli");
    let rows = [
        ("lua args x y\n", "lua,args,x,y\n\n"),
        ("lua args\n", "lua,args\n\n"),
        ("lua read <<\none\ntwo\n\n", "<one\n><two\n>\nb\n\n"),
        ("lua longer name\n", "long\n"),
        ("lua args a; lua args b\n", "lua,args,a\n\nlua,args,b\n\n"),
        ("lua fail\n", "\n"),
        ("prompt\nlua args z\n", "\n> lua,args,z\n\n> "),
    ];
    for (typed, expected) in rows {
        assert_eq!(ask(&socket, typed), expected, "{typed}");
    }
    let help = ask(&socket, "help lua\n");
    assert!(help.contains("\n  lua args : shows arguments\n") && help.contains("\n  lua fail\n"), "{help}");
    assert!(ask(&socket, "lua\n").starts_with("Unknown command: 'lua'"), "not a whole name");
    let said = weir.wait_for_line(|line| line.contains("Lua cli"));
    assert!(said.contains("Lua cli '<lua.cli.lua.fail>': [state-id 0] runtime error: "), "{said}");
    assert!(said.contains(": boom from [C]: in global 'error', "), "{said}");
}

#[test]
fn scripts_are_told_of_what_happens_to_servers() {
    let folder = Folder::new();
    let _weir = begin(&folder);
    let socket = folder.path("cli");
    for command in [
        "disable server b/s1",
        "enable server b/s1",
        "set server b/s1 state drain",
        "set server b/s1 health down",
        "set server b/s1 addr 127.0.0.1 port 82",
        "add server b/s3 127.0.0.1:9",
    ] {
        ask(&socket, &format!("{command}\n"));
    }
    let told = || ask(&socket, "lua events\n");
    wait_until("the server that comes", || told().contains("SERVER_ADD"));
    ask(&socket, "del server b/s3\n");
    let none = "CMAINT=false,DRAIN=false,FDRAIN=false,FMAINT=false,IDRAIN=false,IMAINT=false,MAINT=false,RMAINT=false";
    let out = none.replace("FMAINT=false", "FMAINT=true").replace(",MAINT=false", ",MAINT=true");
    let drained = none.replace("DRAIN=false,FDRAIN=false", "DRAIN=true,FDRAIN=true");
    let state = |old: &str, new: &str| format!("{{admin=true,cause=,new_state={new},old_state={old},requeued=0}}");
    let (down, up) = (state("RUNNING", "STOPPED"), state("STOPPED", "RUNNING"));
    let expected = [
        format!("all SERVER_ADMIN b/s1 13integers1{{{out}}}"),
        "own SERVER_DOWN b/s1 13integers1".to_owned(),
        "all SERVER_DOWN b/s1 13integers1".to_owned(),
        format!("all SERVER_STATE b/s1 13integers1{down}"),
        format!("all SERVER_ADMIN b/s1 13integers1{{{none}}}"),
        "all SERVER_UP b/s1 13integers1".to_owned(),
        format!("all SERVER_STATE b/s1 13integers1{up}"),
        format!("all SERVER_ADMIN b/s1 13integers1{{{drained}}}"),
        "all SERVER_DOWN b/s1 13integers1".to_owned(),
        "all SERVER_STATE b/s1 13integers1{admin=false,cause=changed from CLI,new_state=STOPPED,old_state=RUNNING,requeued=0}".to_owned(),
        "all SERVER_INETADDR b/s1 13integers1".to_owned(),
        "all SERVER_ADD b/s3 33integers3".to_owned(),
        "all SERVER_DEL b/s3 33integernil".to_owned(),
    ];
    wait_until("the last event", || told().contains("SERVER_DEL"));
    let mut told: Vec<String> = told().lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    // The order between functions is not defined.
    told.sort();
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(told, expected);
}

#[test]
fn proxies_and_their_parts_tell_and_change_what_the_manual_says() {
    let folder = Folder::new();
    let _weir = begin(&folder);
    let socket = folder.path("cli");
    ask(&socket, "set table st key 1.2.3.4 data.gpc0 5\n");
    ask(&socket, "set table st key 1.2.3.5 data.gpc0 2\n");
    for set in [
        "words key a\\ b=c data.gpc0 1",
        "numbers key 300 data.gpc0 3",
        "six key ::ffff:1.2.3.4 data.gpc0 6",
        "arrays key x data.gpc[0] 5 data.gpc[1] 7",
    ] {
        assert_eq!(ask(&socket, &format!("set table {set}\n")), "\n", "{set}");
    }
    let rows = [
        (
            "p.f:get_name(), p.f:get_cap(), p.f:get_mode(), p.b:get_cap(), type(p.f:get_uuid())",
            "f frontend http backend string",
        ),
        ("p.b:get_srv_act(), p.b:get_srv_bck(), tostring(p.b), p.f.name", "1 1 HAProxy class Proxy f"),
        (
            "next(p.f.servers), p.b.servers.s2:get_name(), p.f.stktable, tostring(p.f.listeners['sock-2'])",
            "nil s2 nil HAProxy class Listener",
        ),
        ("p.b:get_stats().svname, p.f:get_stats().svname, math.type(p.b:get_stats().stot)", "BACKEND FRONTEND integer"),
        (
            "p.f:get_mailers(), p.b:get_mailers()",
            "nil {log_level=1,mailservers={one=127.0.0.1:25},mailservers_timeout=10000,smtp_from=f@x,smtp_hostname=HOST,smtp_to=t@x,track_server_health=false}",
        ),
        (
            "s1:get_name(), s1:get_puid(), s1:get_rid(), s1:is_draining(), s1:is_backup(), s1:is_dynamic()",
            "s1 1 0 false false false",
        ),
        (
            "s1:get_cur_sess(), s1:get_pend_conn(), s1:get_maxconn(), s1:get_weight(), s1:get_addr()",
            "0 0 0 10 127.0.0.1:81",
        ),
        (
            "s2:get_maxconn(), s2:get_weight(), s2:is_backup(), s2:get_proxy():get_name(), s2:tracking(), #s2:get_trackers()",
            "30 7 true b nil 0",
        ),
        ("s1:set_weight('50%'), s1:get_weight()", "nil 5"),
        ("s1:set_weight('bad')", "Empty weight string empty or preceded by garbage"),
        ("s1:set_weight(20), s1:get_weight()", "nil 20"),
        ("s1:set_weight()", "bad argument #2 to 'set_weight' (string expected, got no value)"),
        ("s1:set_maxconn('55'), s1:get_maxconn()", "nil 55"),
        (
            "s1:set_addr('127.0.0.3', '82'), s1:get_addr()",
            "IP changed from '127.0.0.1' to '127.0.0.3', port changed from '81' to '82' by 'Lua script' 127.0.0.3:82",
        ),
        ("s1:set_drain(), s1:is_draining(), s1:set_maint(), s1:is_draining(), s1:set_ready()", "nil true nil false"),
        ("s1:get_stats().svname, s1:get_stats().slim", "s1 55"),
        (
            "p.st.stktable:info()",
            "{data={conn_rate=3000,gpc0=-1},expire=60000,length=4,nopurge=false,size=1048576,type=ip,used=2}",
        ),
        ("p.st.stktable:lookup('1.2.3.4').gpc0, p.st.stktable:lookup('9.9.9.9')", "5 nil"),
        ("p.st.stktable:dump()", "{1.2.3.4={conn_rate=0,gpc0=5},1.2.3.5={conn_rate=0,gpc0=2}}"),
        ("p.st.stktable:dump({{'gpc0', 'gt', 3}})", "{1.2.3.4={conn_rate=0,gpc0=5}}"),
        ("p.st.stktable:dump({{'gpc0', 'xx', 3}})", "nil Unknown operator in filter table (entry #1)"),
        (
            "p.st.stktable:dump({{'nope', 'gt', 3}})",
            "nil Filter table data column not present in stick table (entry #1)",
        ),
        ("p.st.stktable:lookup(), p.st.stktable:lookup({}), p.st.stktable:lookup('::ffff:1.2.3.4')", "nil nil nil"),
        ("p.st.stktable:lookup('1.2.3.4').use, p.st.stktable:lookup('1.2.3.4').expire > 0", "0 true"),
        ("p.st.stktable:dump(5)", "nil filter table expected"),
        (
            "p.st.stktable:dump({{'gpc0', 'gt'}})",
            "nil Filter table entry must be a triplet: {\"data_col\", \"op\", val} (entry #1)",
        ),
        ("p.st.stktable:dump({{1, 'gt', 3}})", "nil Filter table data column must be string (entry #1)"),
        ("p.st.stktable:dump({{'gpc0', 1, 3}})", "nil Filter table operator must be string (entry #1)"),
        ("p.st.stktable:dump({{}, {}, {}, {}, {}})", "nil Filter table too large (len > 4)"),
        ("p.st.stktable:dump({x = {'gpc0', 'le', '2'}})", "{1.2.3.5={conn_rate=0,gpc0=2}}"),
        ("p.st.stktable:dump({{'gpc0', 'eq', 2.5}})", "{}"),
        ("p.words.stktable:dump()", "{a b=c={gpc0=1}}"),
        ("p.words.stktable:lookup('a b=c').gpc0", "1"),
        ("p.numbers.stktable:dump()[300].gpc0, p.numbers.stktable:lookup('300').gpc0", "3 3"),
        ("p.six.stktable:lookup('::ffff:1.2.3.4').gpc0, p.six.stktable:lookup('1.2.3.4')", "6 nil"),
        ("p.arrays.stktable:dump()", "{x={gpc=5,gpc0=5,gpc1=7}}"),
        ("m:is_map(), m.k1, m.none, tostring(m), m:add('k2', 'v2'), m.k2", "true v1 nil HAProxy class Patref true v2"),
        ("m:set('k2', 'V'), m.k2, m:set('no', 'V')", "true V nil entry not found"),
        ("m:set('no', 'V', true), m.no, m:del('no'), m.no", "true V true nil"),
        ("m:add_bulk({ a = '1', b = '2' }), m.a, m.b", "true 1 2"),
        ("m:prepare(), m:add('n1', 'w1'), m.n1, m.k1, core.get_patref(m:get_name()).n1", "nil true w1 nil nil"),
        ("core.get_patref('nope')", "'get_patref': unknown pattern reference 'nope'"),
        ("core.set_map('nope', 's', 'v')", "'set_map': unknown map file 'nope'"),
        ("core.event_sub({'NOPE'}, print)", "bad argument #1 to 'event_sub' ('NOPE' event type is unknown)"),
        ("core.event_sub({5}, print)", "bad argument #1 to 'event_sub' (table of strings expected, got table)"),
        ("core.event_sub({'SERVER_UP'}, print, 5)", "'event_sub' needs 2 arguments"),
        ("core.event_sub({'SERVER_INETADDR'}, print).unsub()", "bad argument #1 to 'unsub' (EventSub expected)"),
        ("core.event_sub({}, print)", "event_sub: no valid event types were provided"),
        ("core.event_sub({'SERVER_UP'}, 5)", "bad argument #2 to 'event_sub' (function expected, got number)"),
        ("tostring(core.event_sub({'ACME'}, print))", "HAProxy class EventSub"),
        ("core.register_cli({'x'}, 'x', print)", "register_cli: not available outside of body context"),
    ];
    let typed: Vec<&str> = rows.iter().map(|(code, _)| *code).collect();
    let answer = ask(&socket, &format!("lua run <<\n{}\n\n", typed.join("\n")));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    for ((code, expected), line) in rows.iter().zip(answer.lines()) {
        let expected = &expected.replace("HOST", host.trim());
        // An error contains its position.
        let line = line.split_once(".lua:").and_then(|(_, rest)| rest.split_once(": ")).map_or(line, |(_, why)| why);
        let line = line.strip_prefix("[string \"x\"]:1: ").unwrap_or(line);
        assert_eq!(line, *expected, "{code}");
    }
}
