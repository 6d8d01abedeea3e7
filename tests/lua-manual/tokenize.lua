--: log This/function/is/useful/for/tokenizing/an/entry
--: log a//b
local words = core.tokenize("This function is useful, for tokenizing an entry.", "., ", true)
print(table.concat(words, "/"))
print(table.concat(core.tokenize("a, b", ", "), "/"))
