--: http filter lua.trace
--: http default_backend b
--: more backend b
--: more  server s unix@FOLDER/inner
--: more frontend inner
--: more  bind unix@FOLDER/inner
--: more  http-request wait-for-body time 10s
--: more  http-request return status 200 content-type text/plain lf-string "got %[req.body]"
--: ask http POST /p\r\ncontent-length: 5\r\n\r\nhello => \r\n\r\ngot hello
--: log Start request analysis
--: log POST /p HTTP/1.1
--: log host: x
--: log Start response analysis
--: log HTTP/1.1 200 OK
--: log content-type: text/plain
--: log End request analysis: 5 bytes filtered
--: log End response analysis: 9 bytes filtered
local Trace = { id = "Lua trace filter", flags = filter.FLT_CFG_FL_HTX }
Trace.__index = Trace
function Trace:new() return setmetatable({ request = 0, response = 0 }, Trace) end
local function side(channel) return channel:is_resp() and "response" or "request" end
function Trace:start_analyze(txn, channel)
    print("Start " .. side(channel) .. " analysis")
    filter.register_data_filter(self, channel)
end
function Trace:end_analyze(txn, channel)
    local name = side(channel)
    print("End " .. name .. " analysis: " .. self[name] .. " bytes filtered")
end
function Trace:http_headers(txn, message)
    local line = message:get_stline()
    if message.channel:is_resp() then
        print(line.version .. " " .. line.code .. " " .. line.reason)
    else
        print(line.method .. " " .. line.uri .. " " .. line.version)
    end
    for name, values in pairs(message:get_headers()) do
        for _, value in pairs(values) do print(name .. ": " .. value) end
    end
    return filter.CONTINUE
end
function Trace:http_payload(txn, message)
    local name = side(message.channel)
    self[name] = self[name] + message:body(-20000):len()
end
core.register_filter("trace", Trace, function(trace, args) return trace end)
