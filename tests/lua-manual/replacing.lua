--: http http-request lua.replace
--: http http-request return status 200 content-type text/plain lf-string "%[req.hdr(cookie)] %[req.hdr(x-forwarded-for)] %[url]"
--: ask http GET /\r\ncookie: foo=1; expires=1\r\nx-forwarded-for: 192.168.1.1 => foo=ip=bar; expires=1 ip=192.168.1.1 /other?q
core.register_action("replace", { "http-req" }, function(txn)
    txn.http:req_rep_header("cookie", "foo=([^;]*);(.*)", "foo=ip=bar;\\2")
    txn.http:req_rep_header("x-forwarded-for", "(.*)", "ip=\\1")
    txn.http:req_set_uri("/other?q")
end)
