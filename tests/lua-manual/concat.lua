--: http http-request return status 200 content-type text/plain lf-string %[lua.long]
--: ask http GET / => \r\n\r\n100000 true
core.register_fetches("long", function()
    local pieces, text = core.concat(), ""
    for _ = 1, 20000 do pieces:add("#####") end
    for _ = 1, 200 do text = text .. ("#####"):rep(100) end
    return #pieces:dump() .. " " .. tostring(pieces:dump() == text)
end)
