--: http http-request lua.deny if { path /deny }
--: http http-request lua.go
--: http http-request lua.stop
--: http http-request deny status 500
--: http default_backend b
--: more backend b
--: more  http-request return status 200 content-type text/plain string went-on
--: ask http GET /deny => HTTP/1.1 403 
--: ask http GET / => went-on
core.register_action("deny", { "http-req" }, function(txn) return act.DENY end)
core.register_action("go", { "http-req" }, function(txn) return act.CONTINUE end)
core.register_action("stop", { "http-req" }, function(txn) return act.STOP end)
