--: http http-request lua.change
--: http http-response lua.change-answer
--: http default_backend b
--: more backend b
--: more  server s unix@FOLDER/inner
--: more frontend inner
--: more  bind unix@FOLDER/inner
--: more  http-request return status 200 content-type text/plain hdr x-gone 1 hdr x-kept a lf-string "%[method] %[url] %[req.fhdr(x-all)] %[req.hdr_cnt(x-old)] %[req.hdr(x-new)]"
--: ask http GET /\r\nhost: www.test.com\r\naccept: audio/basic q=1\r\naccept: audio/*, q=0.2\r\nx-old: 1 => \r\n\r\nPUT /new?a=b www.test.com-audio/basic q=1-audio/*, q=0.2 0 yes
--: ask http GET / => HTTP/1.1 203 Fine\r\n
--: ask http GET / => \r\nx-kept: b\r\n
--: ask http GET / => \r\nx-all: none,text/plain\r\n
core.register_action("change", { "http-req" }, function(txn)
    local all = txn.http:req_get_headers()
    if all["accept"] then
        txn.http:req_set_header("x-all", all["host"][0] .. "-" .. all["accept"][0] .. "-" .. all["accept"][1])
    end
    txn.http:req_del_header("x-old")
    txn.http:req_add_header("x-new", "yes")
    txn.http:req_set_method("PUT")
    txn.http:req_set_path("/new")
    txn.http:req_set_query("a=b")
end)
core.register_action("change-answer", { "http-res" }, function(txn)
    local all = txn.http:res_get_headers()
    txn.http:res_set_status(203, "Fine")
    txn.http:res_del_header("x-gone")
    txn.http:res_rep_header("x-kept", "a", "b")
    txn.http:res_add_header("x-all", (all["x-nope"] and "some" or "none") .. "," .. all["content-type"][0])
end)
