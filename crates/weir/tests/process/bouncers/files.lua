local files = {}

function files.read(path)
    local file = io.open(path, "r")
    if not file then return nil end
    io.input(file)
    local content = io.read("*a")
    io.close(file)
    return content
end

return files
