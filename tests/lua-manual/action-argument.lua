--: http http-request lua.hello-world everybody
--: http http-request return status 200 content-type text/plain string done
--: ask http GET / => done
--: log Hello World for everybody
local function greet(txn, whom) txn:Info("Hello World for " .. whom) end
core.register_action("hello-world", { "tcp-req", "http-req" }, greet, 1)
