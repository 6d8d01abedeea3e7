//! Scripts that send the mails of `mailers` sections: the settings that they see, that they get every event, and that
//! Weir itself sends no mails then.

use crate::support::{DEFAULTS, Folder, Running, connect_unix};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

/// Sends mails like HAProxy's `examples/lua/mailers.lua`: events fill a queue, and a task empties it.
const SCRIPT: &str = r#"
core.use_native_mailers_config()
local mails = core.queue()
local function told(event, data)
    local mailers = data.reference:get_proxy():get_mailers()
    if event == "SERVER_STATE" then mails:push({ mailers, data.name .. " is " .. data.state.new_state }) end
end
core.register_init(function()
    for _, server in pairs(core.backends.b.servers) do server:event_sub({ "SERVER_STATE" }, told) end
end)
core.register_task(function()
    while true do
        local mailers, text = table.unpack(mails:pop_wait())
        for _, address in pairs(mailers.mailservers) do
            local tcp = core.tcp()
            tcp:settimeout(mailers.mailservers_timeout / 1000)
            tcp:connect(address)
            local function say(line)
                tcp:receive("*l")
                tcp:send(line .. "\r\n")
            end
            say("HELO script." .. mailers.smtp_hostname)
            say("MAIL FROM: <" .. mailers.smtp_from .. ">")
            say("RCPT TO: <" .. mailers.smtp_to .. ">")
            say("DATA")
            say("Subject: " .. text .. "\r\n.")
            say("QUIT")
            tcp:close()
        end
    end
end)
"#;

/// Receives a mail and returns its lines.
fn receive(stream: TcpStream) -> Vec<String> {
    let mut writer = stream.try_clone().expect("a descriptor");
    let mut lines: Vec<String> = Vec::new();
    let mut say = |text: &str| writer.write_all(text.as_bytes()).expect("a reader");
    say("220 here\r\n");
    let mut is_content = false;
    for line in BufReader::new(stream).lines() {
        let line = line.expect("a line");
        match line.as_str() {
            "QUIT" => break,
            "DATA" => {
                is_content = true;
                say("354 go\r\n");
            }
            "." => {
                is_content = false;
                say("250 kept\r\n");
            }
            _ if is_content => {}
            _ => say("250 fine\r\n"),
        }
        lines.push(line);
    }
    lines
}

fn order(folder: &Folder, command: &str) {
    let mut stream = connect_unix(&folder.path("cli"));
    stream.write_all(format!("{command}\n").as_bytes()).expect("sent");
    stream.shutdown(Shutdown::Write).expect("open");
    stream.read_to_string(&mut String::new()).expect("an answer");
}

#[test]
fn a_script_that_sends_the_mails_is_the_only_one_that_does() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let script = folder.write("mailers.lua", SCRIPT);
    let text = format!(
        "global\n tune.lua.bool-sample-conversion normal\n stats socket {} level admin\n lua-load {script}\n{DEFAULTS}\
         mailers m\n mailer one {address}\n\
         frontend f\n bind {}\n default_backend b\n\
         backend b\n email-alert mailers m\n email-alert from f@x\n email-alert to t@x\n email-alert level info\n \
         server s1 127.0.0.1:9\n",
        folder.path("cli").display(),
        folder.path("f").display(),
    );
    let _weir = Running::weir(&["-f", &folder.write("weir.cfg", &text)]);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    // A mail from elsewhere would be among these.
    for (command, state) in [("health down", "STOPPED"), ("health up", "RUNNING"), ("state maint", "STOPPED")] {
        order(&folder, &format!("set server b/s1 {command}"));
        let (stream, _) = listener.accept().expect("a mail");
        let expected = [
            &format!("HELO script.{}", host.trim()),
            "MAIL FROM: <f@x>",
            "RCPT TO: <t@x>",
            "DATA",
            &format!("Subject: s1 is {state}"),
            ".",
        ];
        assert_eq!(receive(stream), expected, "{command}");
    }
}
