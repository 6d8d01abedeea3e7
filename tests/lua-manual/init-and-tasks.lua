--: log begun
--: log task a 2 true nil
core.register_init(function() print("begun") end)
core.register_task(function(...)
    local given = table.pack(...)
    for index = 1, given.n do given[index] = tostring(given[index]) end
    print("task " .. table.concat(given, " "))
end, "a", 2, true, nil)
