--: ask cli show ssl stats all => show ssl stats all nil
core.register_cli({ "show", "ssl", "stats" }, "Display SSL stats..", function(applet, ...)
    local words = { ... }
    for index = 1, 5 do words[index] = tostring(words[index]) end
    applet:send(table.concat(words, " ") .. "\n")
end)
