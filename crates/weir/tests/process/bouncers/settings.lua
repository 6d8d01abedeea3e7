local settings = {}

function settings.load(file)
    local conf = {}
    for line in io.lines(file) do
        local name, value = line:match("^([%w_]+)=(.*)$")
        if name ~= nil then conf[name] = tonumber(value) or value end
    end
    return conf
end

return settings
