--: more backend t
--: more  stick-table type ip size 1k expire 60s store gpc0,gpc1,conn_rate(3s)
--: ask cli set table t key 192.0.2.1 data.gpc0 31 data.gpc1 21 => \n
--: ask cli set table t key 192.0.2.2 data.gpc0 3 => \n
--: ask cli look => ip 2 192.0.2.1=31 31 nil
core.register_cli({ "look" }, "", function(applet)
    local rows = core.proxies.t.stktable
    local found = {}
    for key, data in pairs(rows:dump({ { "gpc0", "gt", 30 }, { "gpc1", "gt", 20 }, { "conn_rate", "le", 10 } })) do
        found[#found + 1] = key .. "=" .. data.gpc0
    end
    applet:send(rows:info().type .. " " .. rows:info().used .. " " .. table.concat(found, ",") .. " "
        .. rows:lookup("192.0.2.1").gpc0 .. " " .. tostring(rows:lookup("192.0.2.9")) .. "\n")
end)
