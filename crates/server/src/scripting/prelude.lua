-- Prepares the globals that scripts see. Receives the functions of the server in `host`; `host.call` and
-- `host.setresp` are replaced for each script. Returns a function that executes a script, and one that sets its keys and arguments.
local host = ...
local error, pcall, type, setmetatable = error, pcall, type, setmetatable
local rawset, getmetatable, select = rawset, getmetatable, select

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

function redis.sha1hex(...)
    if select("#", ...) ~= 1 then error("wrong number of arguments", 2) end
    return host.sha1hex(...)
end

function redis.setresp(version) return host.setresp(version) end
function redis.log() end
function redis.replicate_commands() return true end
function redis.set_repl() end
function redis.breakpoint() return false end
function redis.acl_check_cmd() return true end

-- Tables that scripts share can be read and not changed. Neither can their metatables, of which scripts get a
-- stand-in.
local protected = {}
local function refuse() error("Attempt to modify a readonly table", 2) end
local stand_in = setmetatable({}, { __newindex = refuse })
getmetatable(stand_in).__metatable = stand_in
protected[stand_in] = true

local function protect(library)
    local proxy = setmetatable({}, { __index = library, __newindex = refuse, __metatable = stand_in })
    protected[proxy] = true
    return proxy
end

getmetatable("").__metatable = stand_in

local globals = {
    assert = assert, error = error, ipairs = ipairs, next = next, pairs = pairs, pcall = pcall, rawequal = rawequal,
    rawget = rawget, select = select, tonumber = tonumber, tostring = tostring, type = type, unpack = unpack,
    xpcall = xpcall, getmetatable = getmetatable,
    loadstring = function(text, name) return host.loadstring(text, name) end,
    setmetatable = function(object, metatable)
        if protected[object] then error("Attempt to modify a readonly table", 2) end
        return setmetatable(object, metatable)
    end,
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
    __newindex = refuse,
    __metatable = stand_in,
})
protected[environment] = true
globals._G = environment

local function set(keys, arguments)
    globals.KEYS, globals.ARGV = keys, arguments
end

return environment, set, function(script)
    return pcall(script)
end
