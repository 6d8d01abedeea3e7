//! Scripts of the shape of those that others publish (docs/lua.md): one asks a service about each request and passes its refusal to
//! the client, one asks for the decision about an address, remembers it in a map of its own, and lets in who has solved a riddle.

use crate::support::{DEFAULTS, Folder, Running, connect_unix, wait_until};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

const SCRIPT: &str = r#"
local map
core.register_init(function() map = Map.new("DECISIONS", Map._str) end)

local function ask(method, request) return core.httpclient()[method](core.httpclient(), request) end

core.register_action("intercept", { "http-req" }, function(txn, named)
    txn:set_var("txn.passed", false)
    local user = txn.sf:req_hdr("x-user")
    local answer = ask("get", { url = "http://sso/check", dst = "unix@SSO", headers = { ["x-user"] = { user } } })
    if answer.status == 200 then
        txn:set_var("txn.passed", true)
        txn.http:req_set_header("x-authenticated", answer.headers["x-name"][0])
        return
    end
    local reply = txn:reply{ status = answer.status, body = answer.body }
    for name, values in pairs(answer.headers) do
        if named:find(name, 1, true) then
            for _, value in pairs(values) do reply:add_header(name, value) end
        end
    end
    txn:done(reply)
end, 1)

core.register_action("decide", { "http-req" }, function(txn)
    local address = txn.sf:req_hdr("x-address")
    local decision = map:lookup(address)
    if not decision then
        decision = ask("get", { url = "http://api/" .. address, dst = "unix@API" }).body
        core.set_map("DECISIONS", address, decision)
    end
    if decision == "none" then return end
    if decision == "captcha" then
        if core.frontends["guarded"].stktable:lookup(address) then return end
        local solution = txn.sf:req_body_param("solution")
        if solution ~= "" then
            local answer = ask("post", { url = "http://verifier/", dst = "unix@VERIFIER", body = "x=" .. solution })
            if answer.body == "success" then
                txn:set_var("req.page", txn.sf:req_body_param("page"))
                decision = "solved"
            end
        end
    end
    txn:set_var("req.decision", decision)
end)
core.register_service("riddle", "http", function(applet)
    applet:set_status(200)
    applet:add_header("content-length", 6)
    applet:start_response()
    applet:send("riddle")
end)
"#;

const FRONTENDS: &str = "frontend intercepted
 bind AT/intercepted
 http-request lua.intercept www-authenticate,x-reason
 http-request deny status 418 unless { var(txn.passed) -m bool }
 default_backend apps
frontend guarded
 bind AT/guarded
 option http-buffer-request
 stick-table type string len 40 size 100 expire 1h
 http-request lua.decide
 http-request track-sc0 req.hdr(x-address) if { var(req.decision) -m str solved }
 http-request redirect location %[var(req.page)] if { var(req.decision) -m str solved }
 http-request use-service lua.riddle if { var(req.decision) -m str captcha }
 http-request deny if { var(req.decision) -m found }
 default_backend apps
backend apps
 server app unix@AT/app
frontend app
 bind AT/app
 http-request return status 200 content-type t/t lf-string \"app %[req.hdr(x-authenticated)]\"
frontend sso
 bind AT/sso
 http-request return status 200 content-type t/t string ok hdr x-name ann if { req.hdr(x-user) a }
 http-request return status 401 content-type t/t string who? hdr www-authenticate Basic hdr x-reason unknown hdr x-secret s
frontend api
 bind AT/api
 http-request return status 200 content-type t/t string ban if { path /192.0.2.1 }
 http-request return status 200 content-type t/t string captcha if { path /192.0.2.2 }
 http-request return status 200 content-type t/t string none
frontend verifier
 bind AT/verifier
 option http-buffer-request
 http-request return status 200 content-type t/t string success if { req.body_param(x) -m str right }
 http-request return status 200 content-type t/t string failure
";

struct Stage {
    folder: Folder,
    _weir: Running,
}

impl Stage {
    fn new() -> Self {
        let folder = Folder::new();
        let at = folder.path("").display().to_string();
        let at = at.trim_end_matches('/');
        let decisions = folder.write("decisions.map", "");
        let paths = [("SSO", "sso"), ("API", "api"), ("VERIFIER", "verifier")];
        let script = paths.iter().fold(SCRIPT.replace("DECISIONS", &decisions), |script, (word, name)| {
            script.replace(&format!("unix@{word}"), &format!("unix@{at}/{name}"))
        });
        let script = folder.write("s.lua", &script);
        let text = format!(
            "global\n tune.lua.bool-sample-conversion normal\n stats socket {at}/cli level admin\n lua-load \
             {script}\n{DEFAULTS}{}",
            FRONTENDS.replace("AT/", &format!("{at}/"))
        );
        let weir = Running::weir(&["-f", &folder.write("weir.cfg", &text)]);
        wait_until("it listens", || UnixStream::connect(folder.path("verifier")).is_ok());
        Self { folder, _weir: weir }
    }

    /// A whole answer.
    fn ask(&self, socket: &str, request: &str) -> String {
        let mut stream = connect_unix(&self.folder.path(socket));
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn get(&self, socket: &str, field: &str) -> String {
        self.ask(socket, &format!("GET /page HTTP/1.1\r\nhost: a\r\n{field}\r\nconnection: close\r\n\r\n"))
    }

    fn solve(&self, address: &str, solution: &str) -> String {
        let body = format!("solution={solution}&page=/page");
        self.ask(
            "guarded",
            &format!(
                "POST / HTTP/1.1\r\nhost: a\r\nx-address: {address}\r\nconnection: close\r\ncontent-type: \
                 application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            ),
        )
    }
}

#[test]
fn a_refusal_is_passed_to_the_client() {
    let stage = Stage::new();
    assert!(stage.get("intercepted", "x-user: a").ends_with("\r\n\r\napp ann"));
    let refused = stage.get("intercepted", "x-user: b");
    let (head, body) = refused.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 401 ") && body == "who?", "{refused}");
    assert!(head.contains("\r\nwww-authenticate: Basic") && head.contains("\r\nx-reason: unknown"), "{refused}");
    assert!(!head.contains("x-secret"), "{refused}");
}

#[test]
fn decisions_are_asked_for_once_and_a_solved_riddle_lets_in() {
    let stage = Stage::new();
    let status = |answer: &str| answer.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
    for _ in 0..2 {
        assert!(stage.get("guarded", "x-address: 192.0.2.9").ends_with("\r\n\r\napp "));
        assert_eq!(status(&stage.get("guarded", "x-address: 192.0.2.1")), Some(403));
        assert!(stage.get("guarded", "x-address: 192.0.2.2").ends_with("\r\n\r\nriddle"));
    }
    assert!(stage.solve("192.0.2.2", "wrong").ends_with("\r\n\r\nriddle"));
    let solved = stage.solve("192.0.2.2", "right");
    assert!(status(&solved) == Some(302) && solved.contains("\r\nlocation: /page\r\n"), "{solved}");
    assert!(stage.get("guarded", "x-address: 192.0.2.2").ends_with("\r\n\r\napp "));
    // A ban has no riddle.
    assert_eq!(status(&stage.solve("192.0.2.1", "right")), Some(403));
    let decisions = stage.ask("cli", &format!("show map {}\n", stage.folder.path("decisions.map").display()));
    assert_eq!(decisions.lines().filter(|line| line.contains(" 192.0.2.")).count(), 3, "{decisions}");
}
