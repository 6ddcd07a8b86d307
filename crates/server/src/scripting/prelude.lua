-- Prepares the globals that scripts see. Receives the functions of the server in `host`; `host.call` and
-- `host.setresp` are replaced for each script. Returns a function that executes a script, and one that sets its keys and arguments.
local host = ...
local error, pcall, type, setmetatable = error, pcall, type, setmetatable
local rawset, getmetatable = rawset, getmetatable

local redis = {
    LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
    REPL_NONE = 0, REPL_SLAVE = 1, REPL_REPLICA = 1, REPL_AOF = 2, REPL_ALL = 3,
    REDIS_VERSION = host.version, REDIS_VERSION_NUM = host.version_number,
}

function redis.call(...)
    local reply = host.call(...)
    if type(reply) == "table" and reply.err ~= nil then error(reply, 0) end
    return reply
end

function redis.pcall(...)
    return host.call(...)
end

function redis.error_reply(text)
    if type(text) ~= "string" then return { err = "ERR wrong number or type of arguments" } end
    if text:sub(1, 1) == "-" then text = text:sub(2) elseif not text:find(" ", 1, true) then text = "ERR " .. text end
    return { err = text }
end

function redis.status_reply(text)
    if type(text) ~= "string" then return { err = "ERR wrong number or type of arguments" } end
    return { ok = text }
end

redis.sha1hex = host.sha1hex
function redis.setresp(version) return host.setresp(version) end
function redis.log() end
function redis.replicate_commands() return true end
function redis.set_repl() end
function redis.breakpoint() return false end
function redis.acl_check_cmd() return true end

-- Tables that scripts share can be read and not changed.
local protected = {}
local function protect(library)
    local proxy = setmetatable({}, {
        __index = library,
        __newindex = function() error("Attempt to modify a readonly table", 2) end,
        __metatable = false,
    })
    protected[proxy] = true
    return proxy
end

getmetatable("").__metatable = false

local globals = {
    assert = assert, error = error, ipairs = ipairs, next = next, pairs = pairs, pcall = pcall, rawequal = rawequal,
    rawget = rawget, select = select, tonumber = tonumber, tostring = tostring, type = type, unpack = unpack,
    xpcall = xpcall, getmetatable = getmetatable, setmetatable = setmetatable,
    rawset = function(object, key, value)
        if protected[object] then error("Attempt to modify a readonly table", 2) end
        return rawset(object, key, value)
    end,
    string = protect(string), table = protect(table), math = protect(math), redis = protect(redis),
    server = protect(redis), cjson = protect(host.cjson), bit = protect(host.bit), _VERSION = _VERSION,
}

local environment = setmetatable({}, {
    __index = function(_, name)
        local value = globals[name]
        if value == nil then
            error("Script attempted to access nonexistent global variable '" .. host.tostring(name) .. "'", 2)
        end
        return value
    end,
    __newindex = function() error("Attempt to modify a readonly table", 2) end,
    __metatable = false,
})
protected[environment] = true
globals._G = environment

local function set(keys, arguments)
    globals.KEYS, globals.ARGV = keys, arguments
end

return environment, set, function(script)
    return pcall(script)
end
