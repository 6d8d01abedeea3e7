--: log true false true needle in the/in/the
--: log false
local made, regex = Regex.new("needle (..) (...)", true)
if made == false then print("error: " .. regex) end
local found, words = regex:match("Looking for a needle in the haystack")
print(tostring(regex:exec("Looking for a needle in the haystack")) .. " "
    .. tostring(Regex.exec(regex, "Looking for a cat in the haystack")) .. " "
    .. tostring(found) .. " " .. words[1] .. "/" .. words[2] .. "/" .. words[3])
print((Regex.new("needle (", true)))
