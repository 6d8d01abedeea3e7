-- Sockets and the HTTP client.
local native = ...
local kit = native.kit
local class, given, fail, yield, mark = kit.class, kit.given, kit.fail, kit.yield, kit.mark
local setmetatable, getmetatable, type, error, tostring = setmetatable, getmetatable, type, error, tostring
local select, tonumber, pairs = select, tonumber, kit.pairs

local methods = {}
local socket = class("Socket", methods)

function core.tcp() return setmetatable({ [0] = native.socket() }, socket) end

-- Raises an error in the script if a method was called with something other than a socket.
local function check(self, name)
    if type(self) ~= "table" or getmetatable(self) ~= socket then
        error("bad argument #1 to '" .. name .. "' (Socket expected)", 3)
    end
end

local function connecting(kind)
    return function(self, address, port)
        check(self, kind)
        address = given(address, 1, kind, "string")
        if port ~= nil then port = given(port, 2, kind, "integer") end
        if self.state == "open" then fail("connect: connect already performed") end
        if self.state == "closed" then return nil, "closed" end
        local done, why, wrong = yield(mark, "socket." .. kind, self[0], self.timeout, address, port)
        if wrong then fail(wrong) end
        if not done then return nil, why end
        self.state = "open"
        return 1
    end
end
methods.connect, methods.connect_ssl = connecting("connect"), connecting("connect_ssl")

function methods.send(self, ...)
    check(self, "send")
    local count = select("#", ...)
    if count < 1 or count > 3 then fail("'send' needs between 2 and 4 arguments") end
    local data, first, last = ...
    data = given(data, 1, "send", "string")
    if first ~= nil then first = given(first, 2, "send", "integer") end
    if last ~= nil then last = given(last, 3, "send", "integer") end
    if first or last then data = native.part(data, first or 1, last or -1) end
    return yield(mark, "socket.send", self[0], self.timeout, data)
end

function methods.receive(self, ...)
    check(self, "receive")
    if select("#", ...) > 2 then fail("The 'receive' function requires between 1 and 3 arguments.") end
    local pattern, prefix = ...
    if prefix ~= nil and type(prefix) ~= "string" then fail("Expect a 'string' for the prefix") end
    if pattern == nil then pattern = "*l" end
    if pattern ~= "*l" and pattern ~= "*a" then
        if tonumber(pattern) == nil then fail("Unsupported pattern.") end
        pattern = given(pattern, 1, "receive", "integer")
        if pattern < 0 then fail("Unsupported size.") end
    end
    return yield(mark, "socket.receive", self[0], self.timeout, pattern, prefix)
end

function methods.close(self)
    check(self, "close")
    self.state = "closed"
    yield(mark, "socket.close", self[0])
end
function methods.getpeername(self)
    check(self, "getpeername")
    return (yield(mark, "socket.peer", self[0]))
end
function methods.getsockname(self)
    check(self, "getsockname")
    return (yield(mark, "socket.name", self[0]))
end
function methods.setoption() end
function methods.settimeout(self, ...)
    check(self, "settimeout")
    if select("#", ...) ~= 1 then fail("'settimeout' needs 2 arguments") end
    local seconds = tonumber((...)) or given((...), 1, "settimeout", "number")
    if self.state == "closed" then fail("socket: not yet initialised, you can't set timeouts.") end
    if seconds < 0 then fail("settimeout: cannot set negatives values") end
    if seconds * 1000 > 2147483647 then fail("settimeout: cannot set values larger than 2147483647 ms") end
    self.timeout = native.integer_part(seconds * 1000)
    return 1
end

local client_methods = {}
local client = class("HTTPClient", client_methods)
function core.httpclient() return setmetatable({}, client) end
local parameters = { url = "string", body = "string", dst = "string", headers = "table", timeout = "number" }
for name, method in pairs({ get = "GET", head = "HEAD", put = "PUT", post = "POST", delete = "DELETE" }) do
    client_methods[name] = function(_, request)
        if type(request) ~= "table" then fail("'" .. name .. "' needs a table as argument") end
        for key, value in pairs(request) do
            local expected = parameters[key]
            if not expected then fail("'" .. tostring(key) .. "' invalid parameter name") end
            if type(value) ~= expected then
                fail("invalid parameter in '" .. key .. "', must be a " .. expected)
            end
        end
        if request.url == nil then fail("'" .. name .. "' need a 'url' argument") end
        local response, wrong = yield(mark, "http", method, request)
        if response == nil then error(wrong, 2) end
        return response
    end
end
