-- A bouncer with the calls of CrowdSec's: a task keeps decisions of an API in a map, an action looks an address up in it.
package.path = package.path .. ";./?.lua"
local settings = require "settings"

local runtime = {}

core.register_init(function()
    runtime.conf = settings.load(os.getenv("CROWDSEC_CONFIG"))
    if core.backends["crowdsec"] == nil or core.backends["crowdsec"].servers["crowdsec"] == nil then
        error("no backend and server named crowdsec")
    end
    for _, server in pairs(core.backends["captcha_verifier"].servers) do
        runtime.provider = server.name:match("^[^_]+")
    end
    runtime.map = Map.new(runtime.conf["MAP_PATH"], Map._ip)
end)

local function entries(body, list)
    local found = {}
    local text = body:match('"' .. list .. '":(%b[])') or ""
    for value, kind in text:gmatch('"value":"([^"]*)","type":"([^"]*)"') do
        found[#found + 1] = { value = value, kind = kind }
    end
    return found
end

local function refresh(is_startup)
    local address = core.backends["crowdsec"].servers["crowdsec"]:get_addr()
    local response = core.httpclient():get{
        url = "http://" .. address .. "/v1/decisions/stream?startup=" .. tostring(is_startup),
        headers = {
            ["X-Api-Key"] = { runtime.conf["API_KEY"] },
            ["Connection"] = { "keep-alive" },
            ["User-Agent"] = { "bouncer/1" },
        },
        timeout = 2 * 60 * 1000,
    }
    if response == nil or response.status ~= 200 then
        core.Alert("no decisions: " .. tostring(response and response.status))
        return false
    end
    for _, decision in pairs(entries(response.body, "deleted")) do
        core.del_map(runtime.conf["MAP_PATH"], decision.value)
        core.msleep(1)
    end
    for _, decision in pairs(entries(response.body, "new")) do
        core.Debug("Add decision " .. decision.value)
        core.set_map(runtime.conf["MAP_PATH"], decision.value, decision.kind)
        core.msleep(1)
    end
    return true
end

core.register_task(function()
    local is_first = true
    while true do
        if refresh(is_first) then is_first = false end
        core.sleep(runtime.conf["UPDATE_FREQUENCY"])
    end
end)

core.register_action("crowdsec_allow", { "tcp-req", "tcp-res", "http-req", "http-res" }, function(txn)
    local source = txn.f:src()
    local remediation = runtime.map:lookup(source)
    if remediation == nil or txn.sf:path() == runtime.conf["EXCLUDE_LOCATION"] then
        txn:set_var("req.remediation", nil)
        return nil
    end
    if remediation == "captcha" then
        local table = core.frontends[txn.f:fe_name()].stktable
        if table:lookup(source) ~= nil then
            txn:set_var("req.remediation", nil)
            return nil
        end
        if txn.sf:method() == "POST" then
            local count = 0
            while tonumber(txn.sf:req_body_len()) == 0 and count < 10 do
                core.msleep(50)
                count = count + 1
            end
        end
        if txn.sf:req_body_param("answer") == "42" then
            txn:set_var("req.redirect_uri", txn.sf:req_body_param("redirect_uri"))
            remediation = "captcha-allow"
        end
    end
    txn:set_var("req.remediation", remediation)
end, 0)

local function page(status, kind, text)
    return function(applet)
        local accepted = applet.headers["accept"]
        local response = accepted and accepted[0] == "text/html" and text or "Access forbidden"
        applet:set_status(status)
        applet:add_header("content-length", string.len(response))
        applet:add_header("content-type", kind)
        applet:start_response()
        applet:send(response)
    end
end

core.register_service("reply_captcha", "http", page(200, "text/html", "<p>What is 6 times 7?"))
core.register_service("reply_ban", "http", page(403, "text/html", "<p>Banned."))
