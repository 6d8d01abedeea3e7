-- Applets: the argument of a service.
local native = ...
local kit = native.kit
local class, given, fail, shared = kit.class, kit.given, kit.fail, kit.shared
local yield, mark, ask = kit.yield, kit.mark, kit.ask
local pairs, setmetatable, type, tostring = pairs, setmetatable, type, tostring

local function reading(pattern)
    return function(self, size, timeout)
        if size ~= nil then size = given(size, 2, "receive", "integer") end
        return yield(mark, "applet." .. pattern, size, timeout)
    end
end

local http = {
    getline = reading("getline"),
    receive = reading("receive"),
    set_status = function(self, status, reason)
        if reason ~= nil then reason = given(reason, 3, "set_status", "string") end
        self.response.status, self.response.reason = given(status, 2, "set_status", "integer"), reason
    end,
    add_header = function(self, name, value)
        local fields = self.response.fields
        fields[#fields + 1] = { given(name, 2, "add_header", "string"), given(value, 3, "add_header", "string") }
    end,
    start_response = function(self)
        if self.response.started then fail("Lua: 'start_response' has been called already.") end
        self.response.started = true
        local wrong = yield(mark, "applet.start", self.response)
        if wrong ~= nil then fail("Lua: 'start_response' " .. wrong) end
    end,
    send = function(self, data)
        if not self.response.started then
            fail("Lua: 'send' you must call start_response() before sending data.")
        end
        return yield(mark, "applet.send", given(data, 2, "send", "string"))
    end,
}
local tcp = {
    getline = reading("getline"),
    receive = reading("receive"),
    try_receive = reading("try_receive"),
    send = function(_, data) return yield(mark, "applet.send", given(data, 2, "send", "string")) end,
}
for name, method in pairs(shared) do http[name], tcp[name] = method, method end
local http_class, tcp_class = class("AppletHTTP", http), class("AppletTCP", tcp)

local function dress(applet, meta)
    applet.f, applet.sf, applet.c, applet.sc = kit.fetches, kit.string_fetches, kit.converters, kit.string_converters
    return setmetatable(applet, meta)
end
function native.applet_http(request)
    request.response = { status = 200, fields = {} }
    return dress(request, http_class)
end
function native.applet_tcp() return dress({}, tcp_class) end
