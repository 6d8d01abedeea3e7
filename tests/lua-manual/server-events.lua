--: more backend b
--: more  server s1 127.0.0.1:81
--: ask cli disable server b/s1 => \n
--: log EventType.SERVER_DOWN: server b/s1 is MAINT
--: ask cli enable server b/s1 => \n
--: log EventType.SERVER_UP: server b/s1 is no check
core.event_sub({ "SERVER" }, function(event, data)
    local state = data["reference"] ~= nil and data["reference"]:get_stats().status or "DELETED"
    print("EventType." .. event .. ": server " .. data["proxy_name"] .. "/" .. data["name"] .. " is " .. state)
end)
