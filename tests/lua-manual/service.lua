--: http http-request use-service lua.hello-world
--: ask http GET / => content-type: text/plain\r\n
--: ask http GET / => \r\n\r\nHello World !
core.register_service("hello-world", "http", function(applet)
    local text = "Hello World !"
    applet:set_status(200)
    applet:add_header("content-length", string.len(text))
    applet:add_header("content-type", "text/plain")
    applet:start_response()
    applet:send(text)
end)
