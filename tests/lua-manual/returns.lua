--: http http-request return status 200 content-type text/plain lf-string "%[str(),lua.as(number)] %[str(),lua.as(yes)] %[str(),lua.as(text)] %[str(),lua.as(nothing)] %[str(),lua.as(table)]"
--: ask http GET / => \r\n\r\n12 1 t 0 0
local kinds = { number = 12, yes = true, text = "t", table = {} }
core.register_converters("as", function(_, kind) return kinds[kind] end)
