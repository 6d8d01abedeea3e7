--: tcp tcp-request inspect-delay 10s
--: tcp tcp-request content use-service lua.hello_world
--: ask tcp => hello world\n
core.register_service("hello_world", "tcp", function(applet) applet:send("hello world\n") end)
