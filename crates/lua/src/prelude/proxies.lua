-- Proxies, servers, listeners, stick tables, and their events.
local native = ...
local kit = native.kit
local class, given, given_function, fail = kit.class, kit.given, kit.given_function, kit.fail
local pairs, ipairs, setmetatable, type, error, tostring = pairs, ipairs, setmetatable, type, error, tostring
local select, next = select, next

-- A class whose objects have attributes that are computed on access.
local function lively(name, methods, attributes)
    local meta = class(name, nil)
    native.classes[name] = setmetatable({}, {
        __index = function(_, key) return methods[key] or attributes[key] end,
    })
    meta.__index = function(self, key)
        local make = attributes[key]
        if make then return make(self) end
        return methods[key]
    end
    return meta
end

-- Executes a command of the runtime API. Returns its error message, if any.
local function ordered(...)
    local answer = native.command({ ... })
    if answer == nil then fail("not available in this context", 4) end
    if answer ~= "" then return answer end
    return nil
end

local function own(object, meta, name)
    if type(object) ~= "table" or object.class ~= meta then
        error("bad argument #1 to '" .. name .. "' (" .. meta .. " expected)", 3)
    end
    return object
end

-- Subscriptions.
local event_sub = class("EventSub", {
    unsub = function(self)
        own(self, "EventSub", "unsub")
        if self.number then native.unsubscribe(self.number) end
        self.number = nil
    end,
})
local function subscribe(name, count, types, func, families, proxy, server, list)
    if count ~= 2 then fail("'" .. name .. "' needs 2 arguments", 4) end
    if type(types) ~= "table" then
        error("bad argument #1 to '" .. name .. "' (table of strings expected, got " .. type(types) .. ")", 4)
    end
    local mask = 0
    for _, kind in pairs(types) do
        if type(kind) ~= "string" then
            error("bad argument #1 to '" .. name .. "' (table of strings expected, got table)", 4)
        end
        local bits = native.event_kinds[kind]
        if not bits then
            error("bad argument #1 to '" .. name .. "' ('" .. kind .. "' event type is unknown)", 4)
        end
        mask = mask | (bits & families)
    end
    if mask == 0 and next(types) == nil then fail(name .. ": no valid event types were provided", 4) end
    if type(func) ~= "function" then
        error("bad argument #2 to '" .. name .. "' (function expected, got " .. type(func) .. ")", 4)
    end
    local sub = setmetatable({ class = "EventSub" }, event_sub)
    sub.number = native.subscribe(mask, function(kind, data, when)
        local same = setmetatable({ class = "EventSub", number = sub.number }, event_sub)
        if not data then return func(kind, same, when) end
        return func(kind, data, same, when)
    end, proxy, server, list)
    return sub
end
native.kit.subscribe = subscribe
local kinds = native.event_kinds
function core.event_sub(...)
    local types, func = ...
    return subscribe("event_sub", select("#", ...), types, func, kinds.SERVER | kinds.ACME)
end

-- Servers.
local make_proxy, make_server
local server_methods = {}
local function of_server(method, what, otherwise)
    server_methods[method] = function(self)
        local server = own(self, "Server", method)
        local value = native.server_of(server.proxy, server.index, what)
        if value == nil then return otherwise end
        return value
    end
end
for method, what in pairs({
    get_name = "name", get_puid = "puid", get_rid = "rid", is_draining = "draining", is_backup = "backup",
    is_dynamic = "dynamic", get_cur_sess = "cur", get_pend_conn = "pend", get_maxconn = "maxconn", get_weight = "weight",
    get_addr = "addr",
}) do
    of_server(method, what)
end
local function path_of(server)
    local name = native.server_of(server.proxy, server.index, "name")
    if name == nil then return nil end
    return native.proxy_names[server.proxy] .. "/" .. name
end
local function order_server(method, before, after)
    server_methods[method] = function(self)
        local path = path_of(own(self, "Server", method))
        if path then native.command({ before[1], before[2], path, after[1], after[2] }) end
    end
end
for method, how in pairs({
    set_drain = { "state", "drain" }, set_maint = { "state", "maint" }, set_ready = { "state", "ready" },
}) do
    order_server(method, { "set", "server" }, how)
end
for method, how in pairs({
    check_force_up = { "health", "up" }, check_force_nolb = { "health", "stopping" },
    check_force_down = { "health", "down" }, agent_force_up = { "agent", "up" }, agent_force_down = { "agent", "down" },
}) do
    server_methods[method] = function(self)
        local server = own(self, "Server", method)
        native.force(server.proxy, server.index, how[1], how[2])
    end
end
for method, how in pairs({
    check_enable = { "enable", "health" }, check_disable = { "disable", "health" },
    agent_enable = { "enable", "agent" }, agent_disable = { "disable", "agent" },
}) do
    order_server(method, how, {})
end
function server_methods.set_weight(self, weight)
    local path = path_of(own(self, "Server", "set_weight"))
    weight = given(weight, 2, "set_weight", "string")
    if weight == "" then return "Require <weight> or <weight%>." end
    return path and ordered("set", "server", path, "weight", weight)
end
function server_methods.set_maxconn(self, maxconn)
    local path = path_of(own(self, "Server", "set_maxconn"))
    maxconn = given(maxconn, 2, "set_maxconn", "string")
    return path and ordered("set", "maxconn", "server", path, maxconn)
end
function server_methods.set_addr(self, addr, port)
    local path = path_of(own(self, "Server", "set_addr"))
    addr = given(addr, 2, "set_addr", "string")
    if not path then return nil end
    local answer
    if port == nil then
        answer = ordered("set", "server", path, "addr", addr)
    else
        answer = ordered("set", "server", path, "addr", addr, "port", given(port, 3, "set_addr", "string"))
    end
    return answer and native.replace(answer, "stats socket command", "Lua script")
end
function server_methods.get_stats(self)
    local server = own(self, "Server", "get_stats")
    local puid = native.server_of(server.proxy, server.index, "puid")
    if puid == nil then return {} end
    return native.statistics(native.integer(native.proxy_uuids[server.proxy]), 4, native.integer(puid))
end
function server_methods.get_proxy(self) return make_proxy(own(self, "Server", "get_proxy").proxy) end
function server_methods.shut_sess(self)
    local server = own(self, "Server", "shut_sess")
    native.shut_sessions(server.proxy, server.index)
end
function server_methods.tracking(self)
    local server = own(self, "Server", "tracking")
    local found = native.server_of(server.proxy, server.index, "tracking")
    return found and make_server(found[1][1], found[1][2]) or nil
end
function server_methods.get_trackers(self)
    local server = own(self, "Server", "get_trackers")
    local servers = {}
    for index, place in ipairs(native.server_of(server.proxy, server.index, "trackers") or {}) do
        servers[index] = make_server(place[1], place[2])
    end
    return servers
end
function server_methods.event_sub(self, ...)
    local server = own(self, "Server", "event_sub")
    local types, func = ...
    return subscribe("event_sub", select("#", ...), types, func, kinds.SERVER, server.proxy, server.index)
end
local server_class = lively("Server", server_methods, {
    name = function(self) return native.server_of(self.proxy, self.index, "name") end,
    puid = function(self) return native.server_of(self.proxy, self.index, "puid") end,
})
function make_server(proxy, index)
    return setmetatable({ class = "Server", proxy = proxy, index = index }, server_class)
end
function native.server_reference(proxy, index)
    if native.server_of(proxy, index, "name") == nil then return nil end
    return make_server(proxy, index)
end

-- Listeners.
local listener_class = class("Listener", {
    get_stats = function(self)
        local listener = own(self, "Listener", "get_stats")
        return native.statistics(native.integer(native.proxy_uuids[listener.proxy]), 8, listener.id)
    end,
})

-- Stick tables.
local operators = { eq = true, ne = true, le = true, lt = true, ge = true, gt = true }
-- Adds a condition of a filter to `words`; returns the error, if any.
local function condition(words, row, columns)
    if type(row) ~= "table" or #row ~= 3 then return 'Filter table entry must be a triplet: {"data_col", "op", val}' end
    local column, operator, value = row[1], row[2], row[3]
    if type(column) ~= "string" then return "Filter table data column must be string" end
    if not columns[column] then return "Filter table data column not present in stick table" end
    if type(operator) ~= "string" then return "Filter table operator must be string" end
    if not operators[operator] then return "Unknown operator in filter table" end
    words[#words + 1], words[#words + 2] = column, operator
    -- HAProxy treats values that are not integers as 0.
    words[#words + 1] = tostring(native.integer(value) or 0)
end
local table_class = class("StickTable", {
    info = function(self) return native.table_information(own(self, "StickTable", "info").name) end,
    lookup = function(self, key)
        local name = own(self, "StickTable", "lookup").name
        if type(key) == "number" then key = tostring(key) end
        -- HAProxy finds nothing if the key is not a string.
        if type(key) ~= "string" then return nil end
        return native.table_entry(name, key)
    end,
    dump = function(self, filter)
        local name = own(self, "StickTable", "dump").name
        local words = {}
        if filter ~= nil then
            if type(filter) ~= "table" then return nil, "filter table expected" end
            if #filter > 4 then return nil, "Filter table too large (len > 4)" end
            local columns, count = native.table_information(name).data, 0
            for _, row in pairs(filter) do
                count = count + 1
                if count > 4 then return nil, "Filter table too large (len > 4)" end
                local wrong = condition(words, row, columns)
                if wrong then return nil, wrong .. " (entry #" .. count .. ")" end
            end
        end
        return native.table_entries(name, words)
    end,
})

-- Proxies.
local proxy_methods = {}
for method, what in pairs({
    get_cap = "cap", get_mode = "mode", get_srv_act = "act", get_srv_bck = "bck", get_mailers = "mailers",
}) do
    proxy_methods[method] = function(self) return native.proxy_of(own(self, "Proxy", method).index, what) end
end
function proxy_methods.get_name(self) return native.proxy_names[own(self, "Proxy", "get_name").index] end
function proxy_methods.get_uuid(self) return native.proxy_uuids[own(self, "Proxy", "get_uuid").index] end
for method, verb in pairs({ pause = "disable", resume = "enable", stop = "shutdown" }) do
    proxy_methods[method] = function(self)
        local proxy = own(self, "Proxy", method)
        if native.proxy_of(proxy.index, "cap") ~= "backend" then
            native.command({ verb, "frontend", native.proxy_names[proxy.index] })
        end
    end
end
function proxy_methods.shut_bcksess(self)
    local proxy = own(self, "Proxy", "shut_bcksess")
    for _, index in pairs(native.proxy_of(proxy.index, "servers")) do
        if native.server_of(proxy.index, index, "backup") then native.shut_sessions(proxy.index, index) end
    end
end
function proxy_methods.get_stats(self)
    local proxy = own(self, "Proxy", "get_stats")
    local kind = native.proxy_of(proxy.index, "cap") == "frontend" and 1 or 2
    return native.statistics(native.integer(native.proxy_uuids[proxy.index]), kind, -1 & 0xffffffff)
end
local proxy_class = lively("Proxy", proxy_methods, {
    name = function(self) return native.proxy_names[self.index] end,
    uuid = function(self) return native.proxy_uuids[self.index] end,
    servers = function(self)
        local servers = {}
        for name, index in pairs(native.proxy_of(self.index, "servers")) do
            servers[name] = make_server(self.index, index)
        end
        return servers
    end,
    listeners = function(self)
        local listeners = {}
        for name, id in pairs(native.proxy_of(self.index, "listeners")) do
            listeners[name] = setmetatable({ class = "Listener", proxy = self.index, id = id }, listener_class)
        end
        return listeners
    end,
    stktable = function(self)
        local name = native.proxy_of(self.index, "table")
        return name and setmetatable({ class = "StickTable", name = name }, table_class) or nil
    end,
})
native.proxy_names, native.proxy_uuids = {}, {}
function make_proxy(index) return setmetatable({ class = "Proxy", index = index }, proxy_class) end
function native.proxy(name, index, uuid)
    native.proxy_names[index], native.proxy_uuids[index] = name, uuid
    return make_proxy(index)
end
