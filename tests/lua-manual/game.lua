--: tcp tcp-request inspect-delay 10s
--: tcp tcp-request content use-service lua.game
--: ask tcp adq => \e[2J|.p.|\r\n|..p|\r\n|.p.|\r\nGame over\r\n
core.register_service("game", "tcp", function(applet)
    local column = 2
    applet:send("\27[2J")
    local function draw()
        applet:send("|" .. ("."):rep(column - 1) .. "p" .. ("."):rep(3 - column) .. "|\r\n")
    end
    draw()
    while true do
        local typed = applet:receive(1, 500)
        if typed == "" or typed == "q" then break end
        if typed == "a" then column = column + 1 elseif typed == "d" then column = column - 1 end
        draw()
        core.msleep(1)
    end
    applet:send("Game over\r\n")
end)
