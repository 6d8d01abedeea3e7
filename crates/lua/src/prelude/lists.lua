-- Pattern lists, certificates, and ACME challenges.
local native = ...
local kit = native.kit
local class, given, fail, kinds = kit.class, kit.given, kit.fail, native.event_kinds
local pairs, ipairs, setmetatable, type, error, select, tostring = pairs, ipairs, setmetatable, type, error, select, tostring

-- Iterates over all live entries, page by page.
local function entries_of(name)
    local last, page, index = 0, {}, 0
    return function()
        index = index + 1
        if page[index] == nil then
            if last == nil then return nil end
            local rows
            rows, last = native.list_page(name, last)
            page, index = rows, 1
        end
        local row = page[index]
        if row == nil then return nil end
        return row[1], row[2]
    end
end

-- Prepared entries are stored here until they are committed as a whole.
local function find(pending, key)
    for _, row in ipairs(pending.rows) do
        if row[1] == key then return row end
    end
    return nil
end
-- The result of a change: true alone, or nil and the error.
local function outcome(done, wrong)
    if done then return true end
    return nil, wrong
end
local methods = {
    get_name = function(self) return self[0].name end,
    is_map = function(self) return native.list_kind(self[0].name) end,
    purge = function(self)
        local own = self[0]
        native.list_order(own.name, "clear")
        if own.pending then own.pending.rows = {} end
        return true
    end,
    prepare = function(self)
        local own = self[0]
        if own.pending then native.list_order(own.name, "clear", own.pending.version) end
        own.pending = { version = native.list_order(own.name, "prepare"), rows = {} }
    end,
    giveup = function(self)
        local own = self[0]
        if own.pending then native.list_order(own.name, "clear", own.pending.version) end
        own.pending = nil
    end,
    commit = function(self)
        local own = self[0]
        local pending = own.pending
        if not pending then return nil, "Nothing to do" end
        own.pending = nil
        for _, row in ipairs(pending.rows) do
            local done, wrong = native.list_add(own.name, pending.version, row[1], row[2])
            if not done then
                native.list_order(own.name, "clear", pending.version)
                return nil, wrong or "Commit failed"
            end
        end
        if not native.list_order(own.name, "commit", pending.version) then
            native.list_order(own.name, "clear", pending.version)
            return nil, "Commit failed"
        end
        return true
    end,
    add = function(self, key, value)
        local own = self[0]
        key = given(key, 2, "add", "string")
        value = value == nil and "" or given(value, 3, "add", "string")
        if own.pending then
            own.pending.rows[#own.pending.rows + 1] = { key, value }
            return true
        end
        return outcome(native.list_add(own.name, nil, key, value))
    end,
    add_bulk = function(self, entries)
        local own = self[0]
        if type(entries) ~= "table" then
            error("bad argument #2 to 'add_bulk' (argument is expected to be a table)", 2)
        end
        local is_map = native.list_kind(own.name)
        for key, value in pairs(entries) do
            if not is_map then key, value = value, "" end
            local done, wrong = self:add(given(key, 2, "add_bulk", "string"), given(value, 2, "add_bulk", "string"))
            if not done then return nil, wrong end
        end
        return true
    end,
    del = function(self, key)
        local own = self[0]
        key = given(key, 2, "del", "string")
        if not own.pending then return native.list_remove(own.name, key) or false end
        local rows, found = {}, false
        for _, row in ipairs(own.pending.rows) do
            if row[1] == key then found = true else rows[#rows + 1] = row end
        end
        own.pending.rows = rows
        return found
    end,
    set = function(self, key, value, force)
        local own = self[0]
        key, value = given(key, 2, "set", "string"), given(value, 3, "set", "string")
        if own.pending then
            local found = false
            for _, row in ipairs(own.pending.rows) do
                if row[1] == key then found, row[2] = true, value end
            end
            if found then return true end
        else
            local done, wrong = native.list_set(own.name, key, value)
            if done or wrong ~= "entry not found" then return outcome(done, wrong) end
        end
        if force then return self:add(key, value) end
        return nil, "entry not found"
    end,
    event_sub = function(self, ...)
        local name = self[0].name
        local types, func = ...
        native.list_observe(name)
        return kit.subscribe("event_sub", select("#", ...), types, func, kinds.PAT_REF, nil, nil, name)
    end,
}
local patref = class("Patref", methods)
patref.__index = function(self, key)
    if methods[key] then return methods[key] end
    if type(key) ~= "string" then return nil end
    local own = self[0]
    if own.pending then
        local row = find(own.pending, key)
        return row and (native.list_kind(own.name) and row[2] or true)
    end
    local value = native.list_value(own.name, key)
    if value == nil then return nil end
    return native.list_kind(own.name) and value or (value ~= "" and value or true)
end
patref.__newindex = function() end
patref.__pairs = function(self)
    local own = self[0]
    local is_map, rows = native.list_kind(own.name), own.pending and own.pending.rows
    local step, index = not rows and entries_of(own.name), 0
    return function()
        local key, value
        if rows then
            index = index + 1
            if rows[index] then key, value = rows[index][1], rows[index][2] end
        else
            key, value = step()
        end
        if key == nil then return nil end
        return key, is_map and value or true
    end
end
function core.get_patref(...)
    if select("#", ...) < 1 then fail("'get_patref' needs 1 arguments") end
    local name = given((...), 1, "get_patref", "string")
    if native.list_kind(name) == nil then fail("'get_patref': unknown pattern reference '" .. name .. "'") end
    return setmetatable({ [0] = { name = name } }, patref)
end

-- The older functions.
local function known(method, name, kind)
    if type(name) == "number" then name = tostring(name) end
    if type(name) ~= "string" then fail("'" .. method .. "' needs the name of a file", 4) end
    if native.list_kind(name) == nil then fail("'" .. method .. "': unknown " .. kind .. " file '" .. name .. "'", 4) end
    return name
end
function core.add_acl(name, key)
    name = known("add_acl", name, "acl")
    key = given(key, 2, "add_acl", "string")
    if native.list_value(name, key) == nil then native.list_add(name, nil, key, "") end
end
function core.del_acl(name, key)
    native.list_remove(known("del_acl", name, "acl"), given(key, 2, "del_acl", "string"))
end
function core.del_map(name, key)
    native.list_remove(known("del_map", name, "map"), given(key, 2, "del_map", "string"))
end
function core.set_map(name, key, value)
    name = known("set_map", name, "map")
    key, value = given(key, 2, "set_map", "string"), given(value, 3, "set_map", "string")
    local done, wrong = native.list_set(name, key, value)
    if not done and wrong == "entry not found" then native.list_add(name, nil, key, value) end
end

-- Certificates.
local parts = { crt = true, key = true, ocsp = true, issuer = true, sctl = true }
CertCache = {
    set = function(...)
        local certificate = ...
        if select("#", ...) ~= 1 or type(certificate) ~= "table" then fail("'CertCache.set' needs a table as argument") end
        local name, texts = certificate.filename, {}
        if type(name) ~= "string" then error("No filename specified!", 0) end
        for key, text in pairs(certificate) do
            if key ~= "filename" then
                if not parts[key] or type(text) ~= "string" then
                    error("Unsupported field '" .. tostring(key) .. "'", 0)
                end
                texts[key] = text
            end
        end
        local wrong = native.set_certificate(name, texts)
        if wrong then error(wrong, 0) end
    end,
}
ACME = {
    challenge_ready = function(crt, dns)
        crt, dns = given(crt, 1, "challenge_ready", "string"), given(dns, 2, "challenge_ready", "string")
        local left = native.challenge_ready(crt, dns)
        if left == nil then
            fail("Couldn't find an ACME task using crt \"" .. crt .. "\" and dns \"" .. dns .. "\" to set as ready!")
        end
        return left
    end,
}
