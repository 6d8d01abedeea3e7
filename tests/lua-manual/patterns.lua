--: file test.map a b\n
--: http http-request set-header x %[path,map(FOLDER/test.map)]
--: ask cli add map FOLDER/test.map c d => \n
--: log entry added!
core.register_init(function()
    local list = core.get_patref("FOLDER/test.map")
    list:event_sub({ "PAT_REF_ADD" }, function(event, data, sub) print("entry added!") end)
end)
