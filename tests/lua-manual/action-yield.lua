--: http http-request lua.again
--: http http-request return status 200 content-type text/plain lf-string %[var(txn.calls)]
--: ask http GET / => \r\n\r\n3
core.register_action("again", { "http-req" }, function(txn)
    local calls = (txn:get_var("txn.calls") or 0) + 1
    txn:set_var("txn.calls", calls)
    if calls == 3 then return act.CONTINUE end
    act:wake_time(1)
    return act.YIELD
end)
