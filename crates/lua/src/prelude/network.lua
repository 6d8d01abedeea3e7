-- Sockets and the HTTP client.
local native = ...
local kit = native.kit
local class, given, fail, yield, mark = kit.class, kit.given, kit.fail, kit.yield, kit.mark
local setmetatable, type, error, tostring = setmetatable, type, error, tostring

local methods = {}
local socket = class("Socket", methods)

function core.tcp() return setmetatable({ [0] = native.socket() }, socket) end

local function connecting(kind)
    return function(self, address, port)
        address = given(address, 2, kind, "string")
        if port ~= nil then port = given(port, 3, kind, "integer") end
        local done, why, wrong = yield(mark, "socket." .. kind, self[0], self.timeout, address, port)
        if wrong then fail(wrong) end
        if done then return 1 end
        return nil, why
    end
end
methods.connect, methods.connect_ssl = connecting("connect"), connecting("connect_ssl")

function methods.send(self, data, first, last)
    data = given(data, 2, "send", "string")
    if first ~= nil or last ~= nil then data = native.part(data, first or 1, last or -1) end
    return yield(mark, "socket.send", self[0], self.timeout, data)
end

function methods.receive(self, pattern, prefix)
    if pattern == nil then pattern = "*l" end
    if type(pattern) == "number" then
        pattern = given(pattern, 2, "receive", "integer")
    elseif pattern ~= "*l" and pattern ~= "*a" then
        fail("Unsupported pattern.")
    end
    local received, why = yield(mark, "socket.receive", self[0], self.timeout, pattern)
    if received == nil then return nil, why end
    if prefix ~= nil then received = tostring(prefix) .. received end
    return received
end

function methods.close(self) yield(mark, "socket.close", self[0]) end
function methods.getpeername(self) return (yield(mark, "socket.peer", self[0])) end
function methods.getsockname(self) return (yield(mark, "socket.name", self[0])) end
function methods.setoption() end
function methods.settimeout(self, seconds)
    if type(seconds) ~= "number" then given(seconds, 2, "settimeout", "integer") end
    if seconds < 0 then fail("settimeout: cannot set negatives values") end
    self.timeout = native.integer_part(seconds * 1000)
    return 1
end

local client_methods = {}
local client = class("HTTPClient", client_methods)
function core.httpclient() return setmetatable({}, client) end
for name, method in kit.pairs({ get = "GET", head = "HEAD", put = "PUT", post = "POST", delete = "DELETE" }) do
    client_methods[name] = function(_, request)
        if type(request) ~= "table" then fail("'" .. name .. "' needs a table as argument") end
        if request.url == nil then fail("'" .. name .. "' need a 'url' argument") end
        local response, wrong = yield(mark, "http", method, request)
        if response == nil then error(wrong, 2) end
        return response
    end
end
