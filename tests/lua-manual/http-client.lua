--: http http-request use-service lua.forward if { path /forward }
--: http http-request wait-for-body time 10s
--: http http-request return status 200 content-type text/plain lf-string "%[method]:%[req.body]"
--: ask http GET /forward => \r\n\r\n200 POST:body
core.register_service("forward", "http", function(applet)
    local client = core.httpclient()
    local response = client:post{ url = "http://127.0.0.1", body = "body", dst = "unix@FOLDER/http" }
    local text = response.status .. " " .. response.body
    applet:add_header("content-length", #text)
    applet:start_response()
    applet:send(text)
end)
