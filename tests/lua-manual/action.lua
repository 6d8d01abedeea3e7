--: tcp tcp-request content lua.hello-world
--: tcp tcp-request content reject
--: http http-request lua.hello-world
--: http http-request return status 200 content-type text/plain string done
--: ask tcp x =>
--: log Hello World
--: ask http GET / => done
--: log Hello World
core.register_action("hello-world", { "tcp-req", "http-req" }, function(txn) txn:Info("Hello World") end)
