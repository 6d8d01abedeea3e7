-- Functions that load source text, and refuse compiled code: nothing validates compiled code, which can read and write
-- arbitrary memory. Called before any script.
local kept = { load = load, loadfile = loadfile }
local error, select = error, select

local REFUSED = "attempt to load a binary chunk (mode is 't')"

local function takes_texts(mode)
    return mode == nil or mode == 't' or mode == 'bt' or mode == 'tb'
end

function load(chunk, name, mode, ...)
    if not takes_texts(mode) then return nil, REFUSED end
    if select('#', ...) > 0 then return kept.load(chunk, name, 't', (...)) end
    return kept.load(chunk, name, 't')
end

function loadfile(file, mode, ...)
    if not takes_texts(mode) then return nil, REFUSED end
    if select('#', ...) > 0 then return kept.loadfile(file, 't', (...)) end
    return kept.loadfile(file, 't')
end

function dofile(file)
    local chunk, why = kept.loadfile(file, 't')
    if not chunk then error(why, 0) end
    return chunk()
end

-- `require` of a Lua file.
if package then
    package.searchers[2] = function(name)
        local file, why = package.searchpath(name, package.path)
        if not file then return why end
        local chunk, fault = kept.loadfile(file, 't')
        if not chunk then
            error("error loading module '" .. name .. "' from file '" .. file .. "':\n\t" .. fault, 0)
        end
        return chunk, file
    end
end
