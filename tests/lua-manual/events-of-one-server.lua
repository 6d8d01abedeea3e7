--: more backend b
--: more  balance roundrobin
--: ask cli add server b/s1 127.0.0.1:81 => New server registered.
--: log Tracking new server: 	s1
--: ask cli enable server b/s1 => \n
--: log SERVER s1 is UP
--: ask cli disable server b/s1 => \n
--: log SERVER s1 is DOWN
core.event_sub({ "SERVER_ADD" }, function(event, data, sub)
    if data["reference"] == nil then return end
    print("Tracking new server: ", data["name"])
    data["reference"]:event_sub({ "SERVER_UP", "SERVER_DOWN" }, function(event, data, sub)
        if data["reference"] == nil then return end
        core.register_task(function(server)
            print("SERVER " .. server:get_name() .. " is " .. (event == "SERVER_UP" and "UP" or "DOWN"))
        end, data["reference"])
    end)
end)
