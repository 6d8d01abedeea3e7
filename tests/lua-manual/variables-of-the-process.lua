--: global set-var proc.name str(of-the-process)
--: global set-var proc.number int(7)
--: log of-the-process 7 nil while it is read
--: log of-the-process 7 nil at the start
local function line(when)
    print(("%s %s %s %s"):format(core.get_var("proc.name"), core.get_var("proc.number"), core.get_var("proc.none"), when))
end
line("while it is read")
core.register_init(function() line("at the start") end)
