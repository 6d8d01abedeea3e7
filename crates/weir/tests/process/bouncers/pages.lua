-- The pages of an SPOE bouncer with the calls of CrowdSec's: an agent has decided, this action answers.
local function script_folder()
    local source = debug.getinfo(1, "S").source
    if source:sub(1, 1) == "@" then return source:sub(2):match("(.*/)") end
    return "./"
end
package.path = package.path .. ";" .. script_folder() .. "?.lua"

local files = require "files"
local runtime = {}

core.register_init(function()
    core.Info("reading pages")
    runtime.ban = files.read(os.getenv("CROWDSEC_BAN_TEMPLATE_PATH"))
    runtime.captcha = files.read(os.getenv("CROWDSEC_CAPTCHA_TEMPLATE_PATH"))
    if runtime.ban == nil then core.log(core.err, "no page") end
end)

local function variable(txn, name)
    local value = txn:get_var("txn." .. name)
    if value == nil then return "" end
    return value
end

core.register_action("crowdsec_handle", { "http-req" }, function(txn)
    local remediation = variable(txn, "crowdsec.remediation")
    local reply = txn:reply({ status = 403, body = "" })
    reply:add_header("cache-control", "no-cache")
    reply:add_header("cache-control", "no-store")
    if remediation == "captcha" then
        reply:set_status(200)
        reply:set_body((runtime.captcha:gsub("{{key}}", variable(txn, "crowdsec.captcha_site_key"))))
    else
        reply:set_body((runtime.ban:gsub("{{url}}", variable(txn, "crowdsec.contact_us_url"))))
    end
    local headers = txn.http:req_get_headers()
    local kind = "text/html"
    if headers["accept"] ~= nil and string.find(headers["accept"][0], "html") == nil then
        reply:set_body("Forbidden")
        kind = "text/plain"
    end
    reply:add_header("Content-Type", kind)
    reply:add_header("Content-Length", #reply.body)
    txn:done(reply)
end)
