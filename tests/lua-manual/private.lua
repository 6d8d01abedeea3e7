--: http http-request lua.first
--: http http-request lua.second
--: http http-request return status 200 content-type text/plain lf-string %[var(txn.kept)]
--: ask http GET / => \r\n\r\nfoobar
core.register_action("first", { "http-req" }, function(txn)
    local kept = {}
    txn:set_priv(kept)
    kept["entry1"] = "foo"
    kept["entry2"] = "bar"
end)
core.register_action("second", { "http-req" }, function(txn)
    txn:set_var("txn.kept", txn:get_priv()["entry1"] .. txn:get_priv()["entry2"])
end)
