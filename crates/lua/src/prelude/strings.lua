-- The functions of the string library that search for patterns. A text that is short enough for its pattern is passed to
-- Lua's own functions; a longer one is searched by `native`, which can be ended.
local native, string = ...
local error, type, tostring, select = error, type, tostring, select
local find, match, gmatch, gsub = string.find, string.match, string.gmatch, string.gsub
local sub, byte = string.sub, string.byte
local given, seek, expand = native.kit.given, native.seek, native.expand

-- Maximum length of a text for Lua's own functions, by pattern.
local longest, count = {}, 0
local function longest_text(pattern)
    local known = longest[pattern]
    if known then return known end
    if count >= 1000 then longest, count = {}, 0 end
    count = count + 1
    known = native.longest_text(pattern)
    longest[pattern] = known
    return known
end

-- Start of a search, counted from 0.
local function begin(text, init, name)
    if init == nil then return 0 end
    init = given(init, 3, name, "integer")
    if init < 0 then init = #text + init + 1 end
    return init < 1 and 0 or init - 1
end

-- The captures of a search without its positions, or its error.
local function captures(first, last, ...)
    if first == false then error(last, 2) end
    if first ~= nil then return ... end
end
local function places(first, last, ...)
    if first == false then error(last, 2) end
    return first, last, ...
end

function string.find(text, pattern, init, plain)
    if type(text) ~= "string" then text = given(text, 1, "find", "string") end
    if type(pattern) ~= "string" then pattern = given(pattern, 2, "find", "string") end
    if #text <= (longest[pattern] or longest_text(pattern)) and (not plain or #text * #pattern < 100000000) then
        return find(text, pattern, init, plain)
    end
    local from = begin(text, init, "find")
    if from > #text then return nil end
    -- A pattern without magic characters is plain text.
    if plain or not find(pattern, "[%^%$%*%+%?%.%(%[%%%-]") then return native.seek_text(text, pattern, from) end
    return places(seek(text, pattern, from, nil, false, byte(pattern) == 94))
end

function string.match(text, pattern, init)
    if type(text) ~= "string" then text = given(text, 1, "match", "string") end
    if type(pattern) ~= "string" then pattern = given(pattern, 2, "match", "string") end
    if #text <= (longest[pattern] or longest_text(pattern)) then return match(text, pattern, init) end
    local from = begin(text, init, "match")
    if from > #text then return nil end
    return captures(seek(text, pattern, from, nil, true, byte(pattern) == 94))
end

function string.gmatch(text, pattern, init)
    if type(text) ~= "string" then text = given(text, 1, "gmatch", "string") end
    if type(pattern) ~= "string" then pattern = given(pattern, 2, "gmatch", "string") end
    if #text <= (longest[pattern] or longest_text(pattern)) then return gmatch(text, pattern, init) end
    local from, last = begin(text, init, "gmatch"), nil
    local function step(first, ending, ...)
        if first == false then error(ending, 2) end
        if first == nil then
            from = #text + 1
            return nil
        end
        from, last = ending, ending
        return ...
    end
    return function()
        if from > #text then return nil end
        return step(seek(text, pattern, from, last, true, false))
    end
end

-- The replacement of a match, by the type of the replacement argument.
local function value_of(replacement, kind, whole, ...)
    local value
    if kind == "function" then
        value = replacement(...)
    elseif kind == "table" then
        value = replacement[(...)]
    else
        local why
        value, why = expand(replacement, whole, ...)
        if value == false then error(why, 4) end
    end
    if not value then return whole end
    kind = type(value)
    if kind ~= "string" and kind ~= "number" then error("invalid replacement value (a " .. kind .. ")", 4) end
    return tostring(value)
end

function string.gsub(text, pattern, replacement, most)
    if type(text) ~= "string" then text = given(text, 1, "gsub", "string") end
    if type(pattern) ~= "string" then pattern = given(pattern, 2, "gsub", "string") end
    local kind = type(replacement)
    if kind == "number" then replacement, kind = tostring(replacement), "string" end
    if kind ~= "string" and kind ~= "function" and kind ~= "table" then
        error("bad argument #3 to 'gsub' (string/function/table expected, got "
            .. (kind == "nil" and "no value" or kind) .. ")", 2)
    end
    if most ~= nil then most = given(most, 4, "gsub", "integer") end
    -- Lua's own function is called with the same number of arguments.
    if #text <= (longest[pattern] or longest_text(pattern)) then
        if most == nil then return gsub(text, pattern, replacement) end
        return gsub(text, pattern, replacement, most)
    end
    local is_anchored = byte(pattern) == 94
    local pieces, size, done, from, last = {}, 0, 0, 0, nil
    local function step(first, ending, ...)
        if first == false then error(ending, 3) end
        if first == nil then return false end
        pieces[size + 1] = sub(text, from + 1, first - 1)
        pieces[size + 2] = value_of(replacement, kind, sub(text, first, ending), ...)
        size, done, from, last = size + 2, done + 1, ending, ending
        return true
    end
    while most == nil or done < most do
        if not step(seek(text, pattern, from, last, true, is_anchored)) or is_anchored then break end
    end
    pieces[size + 1] = sub(text, from + 1)
    return native.concat(pieces), done
end
