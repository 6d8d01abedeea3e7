--: file geo.map 10.0.0.0/8 ten\n192.0.2.0/24 documentation\n
--: http http-request return status 200 content-type text/plain lf-string %[lua.country]
--: ask http GET /\r\nx-forwarded-for: 10.1.1.1 => \r\n\r\nten
--: ask http GET /\r\nx-forwarded-for: 192.0.2.9 => \r\n\r\ndocumentation
--: ask http GET /\r\nx-forwarded-for: 203.0.113.1 => \r\n\r\nusa
--: ask http GET / => \r\n\r\nusa
--: log 'new' doesn't support this match mode.
--: log ten while it is read
--: log nil is not there
--: log documentation at the start
--: log virtual at the start
local otherwise = "usa"
local countries = Map.new("FOLDER/geo.map", Map._ip)
core.register_fetches("country", function(txn)
    local address = txn.f:req_fhdr("x-forwarded-for") or txn.f:src()
    if address == nil then return otherwise end
    return Map.lookup(countries, address) or otherwise
end)
print(select(2, pcall(Map.new, "FOLDER/geo.map", Map.len)))
print(countries:lookup("10.1.1.1") .. " while it is read")
print(tostring(Map.lookup(countries, "203.0.113.1")) .. " is not there")
local own = Map.new("virt@own")
core.register_init(function()
    print(countries:slookup("192.0.2.9") .. " at the start", "<" .. countries:slookup("203.0.113.1") .. ">")
    core.set_map("virt@own", "a", "virtual")
    print((own:lookup("a") or "nothing") .. " at the start")
end)
