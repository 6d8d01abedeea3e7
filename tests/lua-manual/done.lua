--: http http-request lua.refuse if { path /refuse }
--: http http-request lua.reply if { path /reply }
--: http http-request lua.short if { path /short }
--: ask http GET /refuse => HTTP/1.1 400 Bad request\r\n
--: ask http GET /refuse => cache-control: no-cache\r\ncache-control: no-store\r\n
--: ask http GET /refuse => <h1>invalid request</h1>
--: ask http GET /reply => HTTP/1.1 400 Bad request\r\n
--: ask http GET /reply => cache-control: no-cache\r\ncache-control: no-store\r\n
--: ask http GET /reply => <h1>invalid request</h1>
--: ask http GET /short => HTTP/1.1 400 Bad Request\r\n
--: ask http GET /short => content-type: text/html\r\n
--: http http-request set-var(txn.status) path,field(3,/)
--: http http-request lua.status if { path_beg /status/ }
--: ask http GET /status/204 => HTTP/1.1 204 No Content\r\n
--: ask http GET /status/100 => HTTP/1.1 500 Internal Server Error\r\n
--: ask http GET /status/101 => HTTP/1.1 500 Internal Server Error\r\n
--: ask http GET /status/1000 => HTTP/1.1 500 Internal Server Error\r\n
--: ask http GET /status/-1 => HTTP/1.1 500 Internal Server Error\r\n
--: log Lua function 'status': invalid status.
local body = "<html><body><h1>invalid request</h1></body></html>"
core.register_action("refuse", { "http-req" }, function(txn)
    txn:done{
        status = 400, reason = "Bad request", body = body,
        headers = { ["content-type"] = { "text/html" }, ["cache-control"] = { "no-cache", "no-store" } },
    }
end)
core.register_action("reply", { "http-req" }, function(txn)
    local reply = txn:reply()
    reply:set_status(400, "Bad request")
    reply:add_header("content-type", "text/html")
    reply:add_header("cache-control", "no-cache")
    reply:add_header("cache-control", "no-store")
    reply:set_body(body)
    txn:done(reply)
end)
core.register_action("short", { "http-req" }, function(txn)
    local reply = txn:reply({ status = 400 })
    reply:add_header("content-type", "text/html")
    reply:set_body(body)
    txn:done(reply)
end)
core.register_action("status", { "http-req" }, function(txn)
    txn:done({ status = tonumber(txn:get_var("txn.status")) })
end)
