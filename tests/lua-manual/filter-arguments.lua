--: http filter lua.my-filter arg1 arg2 arg3
--: http default_backend b
--: more backend b
--: more  server s unix@FOLDER/inner
--: more frontend inner
--: more  bind unix@FOLDER/inner
--: more  http-request return status 200 content-type text/plain lf-string %[req.hdr(x-arguments)]
--: ask http GET / => \r\n\r\narg1-arg2-arg3
local MyFilter = { id = "mine", flags = filter.FLT_CFG_FL_HTX }
MyFilter.__index = MyFilter
function MyFilter:new() return setmetatable({ args = self.args }, MyFilter) end
function MyFilter:http_headers(txn, message)
    if not message:is_resp() then message:set_header("x-arguments", table.concat(self.args, "-")) end
end
core.register_filter("my-filter", MyFilter, function(own, args)
    own.args = args
    return own
end)
