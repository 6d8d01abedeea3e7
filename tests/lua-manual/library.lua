--: file lines.lua local lines = {}\nfunction lines.connect(given)\n  local own = { socket = given.socket }\n  function own:ask(text) self.socket:send(text .. "\\n") return self.socket:receive("*l") end\n  return own\nend\nreturn lines\n
--: global lua-prepend-path FOLDER/?.lua
--: http http-request use-service lua.ask if { path /ask }
--: tcp tcp-request inspect-delay 10s
--: tcp tcp-request content use-service lua.echo
--: ask http GET /ask => \r\n\r\necho: ping
local lines = require("lines")
core.register_service("echo", "tcp", function(applet) applet:send("echo: " .. applet:getline()) end)
core.register_service("ask", "http", function(applet)
    local socket = core.tcp()
    socket:settimeout(10)
    socket:connect("unix@FOLDER/tcp")
    local text = lines.connect({ socket = socket }):ask("ping")
    socket:close()
    applet:add_header("content-length", #text)
    applet:start_response()
    applet:send(text)
end)
