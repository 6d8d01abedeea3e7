--: http http-request return status 200 content-type text/plain lf-string "%[lua.my-hash(salt)] %[lua.same-hash(salt)] %[str(saltexample/p),sdbm(1)]"
--: ask http GET /p\r\nhost: example => \r\n\r\n3077908778 3077908778 3077908778
core.register_fetches("my-hash", function(txn, salt)
    return txn.sc:sdbm(salt .. txn.sf:req_fhdr("host") .. txn.sf:path() .. txn.sf:src(), 1)
end)
core.register_fetches("same-hash", function(txn, salt)
    local text = salt
    text = text .. tostring(txn.f:req_fhdr("host"))
    text = text .. tostring(txn.f:path())
    text = text .. (txn.f:src() or "")
    return tostring(txn.c:sdbm(text, 1))
end)
