--: log told at
local queue = core.queue()
core.register_task(function()
    while true do
        queue:push("told at " .. os.date("%c", core.now().sec))
        core.sleep(1)
    end
end)
core.register_task(function()
    while true do print(queue:pop_wait()) end
end)
