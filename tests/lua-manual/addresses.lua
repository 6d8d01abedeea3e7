--: log true false
local network = core.parse_addr("192.0.2.0/24")
print(tostring(core.match_addr(core.parse_addr("192.0.2.7"), network)) .. " "
    .. tostring(core.match_addr(core.parse_addr("198.51.100.7"), network)))
