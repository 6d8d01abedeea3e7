--: log 784111777 784111777 784111777 784111777 784111777
local imf, old, c = "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"
print(core.http_date(imf) .. " " .. core.http_date(old) .. " " .. core.imf_date(imf) .. " " .. core.rfc850_date(old) .. " "
    .. core.asctime_date(c))
