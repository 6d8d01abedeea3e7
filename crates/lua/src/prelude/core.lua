-- HAProxy's classes, as scripts see them. `native` executes operations outside of Lua and never raises; `ask` accesses the
-- current stream. Uses no libraries but base and coroutine: scripts may have no others.
local native, mark = ...
local error, type, tostring, setmetatable = error, type, tostring, setmetatable
local pairs, ipairs, rawset, select, tonumber = pairs, ipairs, rawset, select, tonumber
local pause = coroutine.yield
local ask, fetch, convert = native.ask, native.fetch, native.convert

-- Pauses; the driver recognises the pause by its mark. Before the process serves, functions can wait for time only.
local function yield(mark, name, ...)
    if native.starting() and name ~= "sleep" and name ~= "wait" and name ~= "yield" and name ~= "done" then
        error("'" .. name .. "' is not allowed before the process serves", 3)
    end
    return pause(mark, name, ...)
end

-- Raises a message with the calling position in the script.
local function fail(message, level) error(message, level or 3) end

local function given(value, index, name, expected, level)
    local kind = type(value)
    if expected == "string" and kind == "number" then return tostring(value) end
    if expected == "integer" and kind ~= "string" and native.integer(value) then return native.integer(value) end
    if expected == "integer" and kind == "string" and native.integer(value) then return native.integer(value) end
    if kind ~= expected then
        local got = kind == "nil" and "no value" or kind
        local why = expected .. " expected, got " .. got
        if expected == "integer" then
            why = tonumber(value) and "number has no integer representation" or "number expected, got " .. got
        end
        error("bad argument #" .. index .. " to '" .. name .. "' (" .. why .. ")", level or 3)
    end
    return value
end

-- Returns the result of `ask`, or raises its error.
local function answered(value, wrong)
    if wrong ~= nil then error(wrong, 3) end
    return value
end

-- A class: its methods, and the string form of its objects.
native.classes = {}
local function class(name, methods)
    native.classes[name] = methods
    local meta = { __index = methods, __metatable = nil, __name = "HAProxy class " .. name }
    meta.__tostring = function() return "HAProxy class " .. name end
    return meta
end

core = {
    silent = -1, emerg = 0, alert = 1, crit = 2, err = 3, warning = 4, notice = 5, info = 6, debug = 7,
    proxies = {}, frontends = {}, backends = {}, thread = native.thread,
}
filter = { CONTINUE = 1, WAIT = 0, ERROR = -1, FLT_CFG_FL_HTX = 1 }
act = { CONTINUE = 0, STOP = 1, YIELD = 2, ERROR = 3, DONE = 4, DENY = 5, ABORT = 6, INVALID = 7 }

function act:wake_time(milliseconds)
    milliseconds = given(milliseconds, 1, "wake_time", "integer")
    native.wake_time(milliseconds > 0 and milliseconds or 0)
end

-- Logging.
local log_line = native.log
local function given_level(level, index)
    level = given(level, index, "log", "integer")
    if level < 0 or level > 7 then fail("bad argument #1 to 'log' (Invalid loglevel.)", 4) end
    return level
end
function core.log(level, message)
    level = given_level(level, 1)
    log_line(level, given(message, 2, "log", "string"))
end
function core.Debug(message) log_line(7, given(message, 1, "Debug", "string")) end
function core.Info(message) log_line(6, given(message, 1, "Info", "string")) end
function core.Warning(message) log_line(4, given(message, 1, "Warning", "string")) end
function core.Alert(message) log_line(1, given(message, 1, "Alert", "string")) end

-- Functions that pause.
function core.sleep(seconds) yield(mark, "sleep", given(seconds, 1, "sleep", "integer") * 1000) end
function core.msleep(milliseconds) yield(mark, "sleep", given(milliseconds, 1, "msleep", "integer")) end
function core.yield() yield(mark, "yield") end
function core.wait(milliseconds)
    if milliseconds ~= nil then milliseconds = given(milliseconds, 1, "wait", "integer") end
    return yield(mark, "wait", milliseconds)
end
function core.done(data) yield(mark, "done", data) end

-- Registrations.
local function register_check(name, count, wanted)
    if count < wanted then fail("'" .. name .. "' needs " .. wanted .. " arguments", 4) end
    if native.serving() then fail(name .. ": not available outside of body context", 4) end
end
local function given_function(value, index, name)
    if type(value) ~= "function" then
        local got = value == nil and "no value" or type(value)
        error("bad argument #" .. index .. " to '" .. name .. "' (function expected, got " .. got .. ")", 3)
    end
    return value
end
function core.register_fetches(...)
    register_check("register_fetches", select("#", ...), 2)
    local name, func = ...
    native.register("fetch", given(name, 1, "register_fetches", "string"), given_function(func, 2, "register_fetches"))
end
function core.register_converters(...)
    register_check("register_converters", select("#", ...), 2)
    local name, func = ...
    name = given(name, 1, "register_converters", "string")
    native.register("converter", name, given_function(func, 2, "register_converters"))
end
function core.register_action(...)
    local count = select("#", ...)
    if count < 3 or count > 4 then fail("'register_action' needs between 3 and 4 arguments") end
    register_check("register_action", count, 3)
    local name, places, func, arguments = ...
    name = given(name, 1, "register_action", "string")
    if type(places) ~= "table" then fail("register_action: second argument must be a table of strings") end
    given_function(func, 3, "register_action")
    if arguments ~= nil then arguments = given(arguments, 4, "register_action", "integer") end
    local sets = {}
    for _, place in pairs(places) do
        if type(place) ~= "string" then fail("register_action: second argument must be a table of strings") end
        if place ~= "tcp-req" and place ~= "tcp-res" and place ~= "http-req" and place ~= "http-res"
            and place ~= "http-after-res" then
            fail("Lua action environment '" .. place .. "' is unknown. 'tcp-req', 'tcp-res', 'http-req', 'http-res' "
                .. "or 'http-after-res' are expected.")
        end
        sets[#sets + 1] = place
    end
    native.register("action", name, func, sets, arguments or 0)
end
function core.register_service(...)
    register_check("register_service", select("#", ...), 3)
    local name, mode, func = ...
    name, mode = given(name, 1, "register_service", "string"), given(mode, 2, "register_service", "string")
    given_function(func, 3, "register_service")
    if mode ~= "tcp" and mode ~= "http" then
        fail("Lua service environment '" .. mode .. "' is unknown. 'tcp' or 'http' are expected.")
    end
    native.register("service", name, func, mode)
end
function core.register_cli(...)
    register_check("register_cli", select("#", ...), 3)
    local path, usage, func = ...
    local function wrong(why) fail("bad argument #1 to 'register_cli' (1st argument must be a table" .. why .. ")", 4) end
    if type(path) ~= "table" then wrong("") end
    local words = {}
    for _, word in ipairs(path) do
        if type(word) ~= "string" then wrong(" filled with strings") end
        words[#words + 1] = word
    end
    if #words > 5 then wrong(" with a maximum of 5 entries") end
    if #words == 0 then wrong(" with at least one entry") end
    usage = given(usage, 2, "register_cli", "string")
    given_function(func, 3, "register_cli")
    local name = words[1]
    for index = 2, #words do name = name .. "." .. words[index] end
    native.register("cli", name, func, words, usage)
end
function core.register_init(...)
    register_check("register_init", select("#", ...), 1)
    native.register("init", "", given_function((...), 1, "register_init"))
end
function core.register_task(func, ...)
    given_function(func, 1, "register_task")
    native.register_task(func, ...)
end

-- Time.
function core.now()
    local seconds, microseconds = native.now()
    return { sec = seconds, usec = microseconds }
end
for _, name in ipairs({ "http_date", "imf_date", "rfc850_date", "asctime_date" }) do
    core[name] = function(date) return native.date(name, given(date, 1, name, "string")) end
end

-- Variables of the process.
function core.get_var(name)
    local found, wrong = native.get_var(given(name, 1, "get_var", "string"))
    if wrong then fail("'get_var': Only 'proc.' scope allowed to be retrieved in 'core.get_var()'.") end
    return found
end
function core.get_info()
    local info, wrong = native.info()
    if wrong then fail(wrong) end
    return info
end
function core.set_nice(nice) given(nice, 1, "set_nice", "integer") end
function core.use_native_mailers_config()
    if native.started() then fail("use_native_mailers_config: not available outside of body context", 3) end
    native.use_mailers()
end

-- Addresses.
function core.parse_addr(address) return native.parse_addr(given(address, 1, "parse_addr", "string")) end
function core.match_addr(one, other) return (native.match_addr(one, other)) end

-- Strings.
function core.tokenize(text, separators, noblank)
    text, separators = given(text, 1, "tokenize", "string"), given(separators, 2, "tokenize", "string")
    return native.tokenize(text, separators, noblank and true or false)
end
local concat = class("Concat", {
    add = function(self, text)
        local pieces = self.pieces
        pieces[#pieces + 1] = given(text, 2, "add", "string")
    end,
    dump = function(self) return native.concat(self.pieces) end,
})
function core.concat() return setmetatable({ pieces = {} }, concat) end

-- Queues.
local queue = class("Queue", {
    size = function(self) return self.last - self.first + 1 end,
    push = function(self, item)
        if item == nil then fail("unexpected argument") end
        self.last = self.last + 1
        self.items[self.last] = item
        native.ring(self.bell)
        return true
    end,
    pop = function(self)
        if self.first > self.last then return nil end
        local item = self.items[self.first]
        self.items[self.first] = nil
        self.first = self.first + 1
        return item
    end,
    alarm = function() end,
    pop_wait = function(self)
        while true do
            local rung = native.rung(self.bell)
            local item = self:pop()
            if item ~= nil then return item end
            yield(mark, "queue.wait", self.bell, rung)
        end
    end,
})
function core.queue() return setmetatable({ items = {}, first = 1, last = 0, bell = native.bell() }, queue) end

-- Regular expressions.
local regex_methods = {
    exec = function(self, text)
        return (answered(native.regex(self.compiled, given(text, 2, "exec", "string"), false)))
    end,
    match = function(self, text)
        local found, wrong = native.regex(self.compiled, given(text, 2, "match", "string"), true)
        if wrong then fail(wrong) end
        if not found then return false, {} end
        return true, found
    end,
}
local regex = class("Regex", regex_methods)
Regex = {
    exec = regex_methods.exec,
    match = regex_methods.match,
    new = function(pattern, case_sensitive)
        local compiled, wrong = native.compile(given(pattern, 1, "new", "string"), case_sensitive and true or false)
        if not compiled then return false, wrong end
        return true, setmetatable({ compiled = compiled }, regex)
    end,
}

-- Fetches and converters: methods are created on first use.
local function callable(kind, name, as_text)
    local real = native.real_name(kind, name)
    if not real then return nil end
    if kind == "fetch" then
        return function(_, ...)
            local value, wrong = fetch(real, as_text, ...)
            if wrong ~= nil then error(wrong, 0) end
            return value
        end
    end
    return function(_, input, ...)
        local value, wrong = convert(real, as_text, input, ...)
        if wrong ~= nil then error(wrong, 0) end
        return value
    end
end
local function table_of(kind, as_text, name)
    local meta = class(name, nil)
    meta.__index = function(self, key)
        if type(key) ~= "string" then return nil end
        local method = callable(kind, key, as_text)
        if method then rawset(self, key, method) end
        return method
    end
    return setmetatable({}, meta)
end
local fetches, string_fetches = table_of("fetch", false, "Fetches"), table_of("fetch", true, "Fetches")
local converters, string_converters = table_of("converter", false, "Converters"), table_of("converter", true, "Converters")

-- The headers of a message.
local function changer(side, kind, name)
    return function(_, ...)
        local first = given((...), 2, name, kind == "status" and "integer" or "string")
        local done = answered(ask("change", side, kind, first, select(2, ...)))
        return done
    end
end
local http_methods = {
    req_get_headers = function() return (answered(ask("headers", "req"))) end,
    res_get_headers = function() return (answered(ask("headers", "res"))) end,
}
for _, kind in ipairs({ "add", "set", "del", "rep", "rep_value" }) do
    local suffix = kind == "rep_value" and "_rep_value" or "_" .. kind .. "_header"
    http_methods["req" .. suffix] = changer("req", kind, "req" .. suffix)
    http_methods["res" .. suffix] = changer("res", kind, "res" .. suffix)
end
for _, kind in ipairs({ "method", "path", "query", "uri" }) do
    http_methods["req_set_" .. kind] = changer("req", kind, "req_set_" .. kind)
end
http_methods.res_set_status = changer("res", "status", "res_set_status")
local http = setmetatable({}, class("HTTP", http_methods))

-- Replies. Values of the wrong type are ignored.
local function default_reply(reply)
    reply.status = native.integer(reply.status) or 200
    if type(reply.reason) ~= "string" then reply.reason = native.reason(reply.status) end
    if type(reply.headers) ~= "table" then reply.headers = {} end
    if type(reply.body) ~= "string" then reply.body = "" end
    return reply
end
local reply_class = class("Reply", {
    set_status = function(self, status, reason)
        self.status = given(status, 2, "set_status", "integer")
        self.reason = reason or native.reason(self.status)
    end,
    add_header = function(self, name, value)
        name, value = given(name, 2, "add_header", "string"), given(value, 3, "add_header", "string")
        local values = self.headers[name]
        if type(values) ~= "table" then
            values = { values }
            self.headers[name] = values
        end
        values[#values + 1] = value
    end,
    del_header = function(self, name) self.headers[name] = nil end,
    set_body = function(self, body) self.body = given(body, 2, "set_body", "string") end,
})

-- Transactions.
local shared = {}
function shared.set_var(_, name, value, only_known)
    return ask("set_var", given(name, 2, "set_var", "string"), value, only_known and true or false)
end
function shared.unset_var(_, name) return ask("unset_var", given(name, 2, "unset_var", "string")) end
function shared.get_var(_, name) return (ask("get_var", given(name, 2, "get_var", "string"))) end
function shared.set_priv(_, data) ask("priv", "set", native.thread, data) end
function shared.get_priv() return (ask("priv", "get", native.thread)) end

local txn_methods = {}
for name, method in pairs(shared) do txn_methods[name] = method end
function txn_methods.log(_, level, message)
    level = given_level(level, 2)
    ask("log", level, given(message, 3, "log", "string"))
end
function txn_methods.deflog(_, message) ask("log", 6, given(message, 2, "deflog", "string")) end
for name, level in pairs({ Debug = 7, Info = 6, Warning = 4, Alert = 1 }) do
    txn_methods[name] = function(_, message) ask("log", level, given(message, 2, name, "string")) end
end
for name, kind in pairs({
    set_loglevel = "loglevel", set_priority_class = "class", set_priority_offset = "offset", set_mark = "mark",
    set_fc_mark = "mark", set_tos = "tos", set_fc_tos = "tos",
}) do
    txn_methods[name] = function(_, number)
        number = given(number, 2, name, "integer")
        if kind == "loglevel" and (number < -1 or number > 7) then
            fail("bad argument #1 to 'set_loglevel' (Bad log level. It must be one of the following value: core.silent(-1), "
                .. "core.emerg(0), core.alert(1), core.crit(2), core.error(3), core.warning(4), core.notice(5), core.info(6) "
                .. "or core.debug(7))")
        end
        answered(ask("order", kind, number))
    end
end
function txn_methods.reply(_, reply)
    local made = {}
    if type(reply) == "table" then
        for key, value in pairs(reply) do made[key] = value end
    end
    return setmetatable(default_reply(made), reply_class)
end
function txn_methods.done(_, reply)
    if reply ~= nil then reply = default_reply(given(reply, 2, "done", "table")) end
    yield(mark, "done", mark, reply)
end
-- Transactions of HTTP and of TCP: the members that all transactions of a kind share are in their class.
local function transaction_class(is_http)
    local methods = { f = fetches, sf = string_fetches, c = converters, sc = string_converters }
    for name, method in pairs(txn_methods) do methods[name] = method end
    methods.http = is_http and http or nil
    methods.req, methods.res = native.channels(is_http)
    return class("TXN", methods)
end
local http_txn, tcp_txn
function native.open_transactions() http_txn, tcp_txn = transaction_class(true), transaction_class(false) end
function native.transaction() return setmetatable({}, ask("is_http") and http_txn or tcp_txn) end
-- Calls a function with its transaction and the remaining arguments.
function native.with_transaction(func, is_http, ...) return func(setmetatable({}, is_http and http_txn or tcp_txn), ...) end

local function unsupported(name)
    return function() error("'" .. name .. "' is not supported yet by Weir", 2) end
end
native.unsupported = unsupported
local function map_lookup(name, otherwise)
    return function(self, ...)
        if select("#", ...) ~= 1 then fail("'" .. name .. "' needs 2 arguments") end
        if type(self) ~= "table" or not self.number then error("bad argument #1 to '" .. name .. "' (Map expected)", 2) end
        local found, why = native.map_find(self.number, given((...), 1, name, self.key))
        if why then fail("'" .. name .. "': " .. why) end
        return found or otherwise
    end
end
local map_methods = { lookup = map_lookup("lookup"), slookup = map_lookup("slookup", "") }
local map_class = class("Map", map_methods)
-- HAProxy's numbers of match methods; maps support those that have an entry in `map_places`.
local map_places = {}
Map = {
    lookup = map_methods.lookup,
    slookup = map_methods.slookup,
    new = function(name, method)
        name = given(name, 1, "new", "string")
        if native.serving() then fail("'new': map: cannot load map at runtime.") end
        method = method == nil and Map.str or given(method, 2, "new", "integer")
        local place = map_places[method]
        if place == nil then fail("'new' needs a valid match method.") end
        if not place then fail("'new' doesn't support this match mode.") end
        local number, why = native.map(name, place - 1)
        if why then fail("'new': " .. why .. ".") end
        return setmetatable({ number = number, key = method == Map.int and "integer" or "string" }, map_class)
    end,
}
local kinds = { "found", "bool", "int", "ip", "bin", "len", "str", "beg", "sub", "dir", "dom", "end", "reg", "regm" }
for index, name in ipairs(kinds) do
    Map[name], Map["_" .. name], map_places[index - 1] = index - 1, index - 1, false
end
for place, name in ipairs({ "int", "ip", "str", "beg", "sub", "dir", "dom", "end", "reg" }) do
    map_places[Map[name]] = place
end
native.kit = {
    class = class, given = given, given_function = given_function, fail = fail, answered = answered, shared = shared,
    fetches = fetches, string_fetches = string_fetches, converters = converters, string_converters = string_converters,
    http = http, yield = yield, mark = mark, ask = ask, default_reply = default_reply,
    unsupported = unsupported, pairs = pairs, register_check = register_check,
}
