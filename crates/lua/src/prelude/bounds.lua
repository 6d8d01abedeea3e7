-- Bounds on functions of Lua that no hook interrupts: finalizers, during which Lua calls no hook, and functions of the table library, whose
-- loops have the length of their arguments. `native` ends them when their script is ended. Short lists are passed to Lua's own functions.
local native = ...
local type, rawget, rawset, select, error = type, rawget, rawset, select, error
local setmetatable_ = setmetatable
local finalize, check = native.finalize, native.check

-- Raises the error of Lua's own function, which would not contain the function's name here.
local function expect_table(value, name)
    if type(value) ~= "table" and type(value) ~= "userdata" then
        local got = value == nil and "no value" or type(value)
        error("bad argument #1 to '" .. name .. "' (table expected, got " .. got .. ")", 3)
    end
end

-- A finalizer runs in a coroutine of its own, where hooks are called, for a burst at most.
local ours = setmetatable_({}, { __mode = "k" })
function setmetatable(object, meta)
    expect_table(object, "setmetatable")
    if meta ~= nil and type(meta) ~= "table" then
        error("bad argument #2 to 'setmetatable' (nil or table expected)", 2)
    end
    if meta then
        local original = rawget(meta, "__gc")
        if type(original) == "function" and not ours[original] then
            local function bounded(dying) finalize(original, dying) end
            ours[bounded] = true
            rawset(meta, "__gc", bounded)
        end
    end
    return setmetatable_(object, meta)
end

if not table then return end
local move, concat, insert, remove, sort = table.move, table.concat, table.insert, table.remove, table.sort
-- Number of elements per call of Lua's own functions.
local PIECE = 10000

local function is_integer(value)
    return type(value) == "number" and value == value and value % 1 == 0 and value >= -0x1p62 and value < 0x1p62
end

-- Moves in pieces, in the order of Lua's own function.
local function move_long(from, first, last, to, target)
    local descends = to <= last and to > first and (target == nil or target == from)
    if descends then
        local at = last
        while at >= first do
            local begin = at - PIECE + 1
            if begin < first then begin = first end
            move(from, begin, at, to + (begin - first), target)
            check()
            at = begin - 1
        end
    else
        local at = first
        while at <= last do
            local stop = at + PIECE - 1
            if stop > last then stop = last end
            move(from, at, stop, to + (at - first), target)
            check()
            at = stop + 1
        end
    end
    return target or from
end

function table.move(from, first, last, to, target)
    expect_table(from, "move")
    if is_integer(first) and is_integer(last) and is_integer(to) and last - first >= PIECE and first > 0
        and to <= (1 << 62) - (last - first) then
        return move_long(from, first // 1 | 0, last // 1 | 0, to // 1 | 0, target)
    end
    return move(from, first, last, to, target)
end

function table.concat(list, between, first, last)
    expect_table(list, "concat")
    local from, to = first, last
    if from == nil then from = 1 end
    if to == nil then to = #list end
    if not is_integer(from) or not is_integer(to) or to - from < PIECE then return concat(list, between, from, to) end
    local parts = {}
    for at = from // 1 | 0, to // 1 | 0, PIECE do
        local stop = at + PIECE - 1
        parts[#parts + 1] = concat(list, between, at, stop < to and stop or to // 1 | 0)
        check()
    end
    return concat(parts, between)
end

function table.insert(list, ...)
    expect_table(list, "insert")
    if select("#", ...) == 2 then
        local place, value = ...
        local length = #list
        if is_integer(place) and is_integer(length) and (place < 1 or place > length + 1) then
            error("bad argument #2 to 'insert' (position out of bounds)", 2)
        end
        if is_integer(place) and is_integer(length) and length - place >= PIECE and place > 0 then
            place = place // 1 | 0
            move_long(list, place, length, place + 1)
            list[place] = value
            return
        end
    end
    return insert(list, ...)
end

function table.remove(list, ...)
    expect_table(list, "remove")
    if select("#", ...) == 1 then
        local place, length = (...), #list
        if is_integer(place) and is_integer(length) and length - place >= PIECE and place > 0 then
            place = place // 1 | 0
            local value = list[place]
            move_long(list, place + 1, length, place)
            list[length] = nil
            return value
        end
    end
    return remove(list, ...)
end

-- A comparison by a Lua function can be interrupted by the hook.
local function less(first, second) return first < second end
function table.sort(list, before)
    expect_table(list, "sort")
    if before == nil and #list > PIECE then before = less end
    return sort(list, before)
end
