--: arguments "this is not an hello world"
--: tcp tcp-request inspect-delay 10s
--: tcp tcp-request content use-service lua.hello_world
--: ask tcp => this is not an hello world\n
local words = table.pack(...)
core.register_service("hello_world", "tcp", function(applet) applet:send(words[1] .. "\n") end)
