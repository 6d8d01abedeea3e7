-- Filters, and the channels and messages of filters and actions.
local native = ...
local kit = native.kit
local class, given, given_function, fail, ask = kit.class, kit.given, kit.given_function, kit.fail, kit.ask
local register_check, answered, fetches = kit.register_check, kit.answered, kit.fetches
local setmetatable, type, error, select, tostring = setmetatable, type, error, select, tostring

-- Calls a function on a payload, or raises HAProxy's error.
local function payload(self, name, ...)
    local value, wrong = native.payload(self[0], name, ...)
    if wrong then error(wrong, 0) end
    return value
end
local function numbers(method, offset, length)
    if offset ~= nil then offset = given(offset, 2, method, "integer", 4) end
    if length ~= nil then length = given(length, 3, method, "integer", 4) end
    return offset, length
end

-- Channels. One with a payload belongs to a filter; others belong to an action, which sees the received data.
local function may_change(self, method)
    if self.http then error("Cannot manipulate HAProxy channels in HTTP mode.", 0) end
    if not self[0] then
        error("'Channel:" .. method .. "' is not supported by Weir outside of a filter: what a session has sent is changed by "
            .. "filters", 3)
    end
end
local function seen(self, name, ...)
    if self.http then error("Cannot manipulate HAProxy channels in HTTP mode.", 0) end
    if self[0] then return payload(self, name, ...) end
    local value, wrong = ask("channel", self.side, name, ...)
    if wrong then error(wrong, 3) end
    return value
end
local channel_methods = {
    is_resp = function(self) return self.side == "res" end,
    is_full = function(self)
        if self[0] then return payload(self, "full") end
        return ask("channel", self.side, "full") or false
    end,
    may_recv = function(self)
        if self[0] then return not payload(self, "eom") end
        return ask("channel", self.side, "may_recv") or false
    end,
    input = function(self)
        if self[0] then return payload(self, "input") end
        return ask("channel", self.side, "input") or 0
    end,
    output = function(self)
        if self[0] then return payload(self, "output") end
        return 0
    end,
    data = function(self, offset, length) return seen(self, "data", numbers("data", offset, length)) end,
    line = function(self, offset, length) return seen(self, "line", numbers("line", offset, length)) end,
    dup = function(self) return seen(self, "data") end,
    get = function(self)
        may_change(self, "get")
        local data = payload(self, "data")
        payload(self, "remove")
        return data
    end,
    getline = function(self)
        may_change(self, "getline")
        local line = payload(self, "line")
        if line ~= nil then payload(self, "remove", 0, #line) end
        return line
    end,
}
channel_methods.get_in_len, channel_methods.get_out_len = channel_methods.input, channel_methods.output
local changes = {
    append = function(self, text) return payload(self, "append", given(text, 2, "append", "string")) end,
    prepend = function(self, text) return payload(self, "insert", given(text, 2, "prepend", "string"), 0) end,
    insert = function(self, text, offset)
        text = given(text, 2, "insert", "string")
        if offset ~= nil then offset = given(offset, 3, "insert", "integer") end
        return payload(self, "insert", text, offset)
    end,
    set = function(self, text, offset, length)
        return payload(self, "set", given(text, 2, "set", "string"), numbers("set", offset, length))
    end,
    remove = function(self, offset, length) return payload(self, "remove", numbers("remove", offset, length)) end,
    send = function(self, text) return payload(self, "send", given(text, 2, "send", "string")) end,
    forward = function(self, length) return payload(self, "forward", given(length, 2, "forward", "integer")) end,
}
for name, method in kit.pairs(changes) do
    channel_methods[name] = function(self, ...)
        may_change(self, name)
        return method(self, ...)
    end
end
local channel_class = class("Channel", channel_methods)
local function channel(side, handle, http) return setmetatable({ side = side, http = http, [0] = handle }, channel_class) end
function native.channels(http) return channel("req", nil, http), channel("res", nil, http) end

native.open_transactions()

-- Messages.
local message_methods = {
    is_resp = function(self) return self.side == "res" end,
    is_full = function(self) return payload(self, "full") end,
    may_recv = function(self) return not payload(self, "eom") end,
    eom = function(self)
        if self.ends ~= nil then return self.ends end
        return payload(self, "eom")
    end,
    set_eom = function(self) self.ends = true end,
    unset_eom = function(self) self.ends = false end,
    input = function(self) return payload(self, "input") end,
    output = function(self) return payload(self, "output") end,
    body = function(self, offset, length)
        local found = payload(self, "data", numbers("body", offset, length))
        if found == "" and payload(self, "eom") then return nil end
        return found
    end,
    get_headers = function(self) return (answered(ask("headers", self.side))) end,
    get_stline = function(self) return (answered(ask("start_line", self.side))) end,
    set_body_len = function(self, length)
        if length ~= "chunked" then
            length = native.integer(length)
            if not length or length < 0 then
                fail("The 'set_body_len' function expects a positive integer or the string 'chunked' as argument.")
            end
        end
        return ask("framing", self.side, length) or false
    end,
}
for name, method in kit.pairs(changes) do message_methods[name] = method end
local function changer(name, kind, count, is_of)
    message_methods[name] = function(self, ...)
        if select("#", ...) < count then fail("'" .. name .. "' needs " .. (count + 1) .. " arguments") end
        if is_of and is_of ~= self.side then return false end
        local first = given((...), 2, name, kind == "status" and "integer" or "string")
        for index = 2, count do given((select(index, ...)), index + 1, name, "string") end
        return answered(ask("change", self.side, kind, first, select(2, ...)))
    end
end
changer("add_header", "add", 2)
changer("set_header", "set", 2)
changer("del_header", "del", 1)
changer("rep_header", "rep", 3)
changer("rep_value", "rep_value", 3)
changer("set_method", "method", 1, "req")
changer("set_path", "path", 1, "req")
changer("set_query", "query", 1, "req")
changer("set_uri", "uri", 1, "req")
changer("set_status", "status", 1, "res")
local message_class = class("HTTPMessage", message_methods)

-- Filters.
local registered = {}
function core.register_filter(...)
    register_check("register_filter", select("#", ...), 3)
    local name, filters, func = ...
    name = given(name, 1, "register_filter", "string")
    if type(filters) ~= "table" then fail("register_filter: second argument must be a table") end
    given_function(func, 3, "register_filter")
    registered[name] = { methods = filters, func = func }
    native.register("filter", name, func)
end
function native.prepare_filter(name, arguments)
    local own = registered[name]
    local made = own.func(setmetatable({}, { __index = own.methods }), arguments)
    if type(made) ~= "table" or made.new == nil then return nil end
    return made
end
function native.new_filter(made) return made:new() end
local function message(chn)
    return setmetatable({ channel = chn, side = chn.side, [0] = chn[0] }, message_class)
end
function native.filter_call(object, name, side, request, response, http)
    local func = object[name]
    if func == nil then return nil end
    local txn, is_http = native.transaction(), ask("is_http") or false
    txn.req, txn.res = channel("req", request, is_http), channel("res", response, is_http)
    if is_http then txn.http_req, txn.http_res = message(txn.req), message(txn.res) end
    local chn = side == "req" and txn.req or txn.res
    if http then return func(object, txn, message(chn)) end
    return func(object, txn, chn)
end
local function data_filter(name, wants)
    filter[name] = function(_, chn)
        if type(chn) ~= "table" or not chn[0] then
            error("bad argument #2 to '" .. name .. "' (Channel expected)", 2)
        end
        payload(chn, "want", wants)
    end
end
data_filter("register_data_filter", true)
data_filter("unregister_data_filter", false)
function filter.wake_time(milliseconds)
    milliseconds = given(milliseconds, 1, "wake_time", "integer")
    native.wake_time(milliseconds > 0 and milliseconds or 0)
end
