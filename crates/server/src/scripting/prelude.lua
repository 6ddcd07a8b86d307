-- Prepares the globals that scripts and libraries see. Receives the functions of the server in `host`. Returns the
-- globals of scripts and of libraries, and functions that set the keys and arguments of a script, say whether a library
-- is being loaded, and execute a function.
local host = ...
local error, pcall, type, setmetatable = error, pcall, type, setmetatable
local xpcall, rawset, getmetatable, select, pairs = xpcall, rawset, getmetatable, select, pairs

local redis = {
    LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
    REPL_NONE = 0, REPL_SLAVE = 1, REPL_REPLICA = 1, REPL_AOF = 2, REPL_ALL = 3,
    REDIS_VERSION = host.version, REDIS_VERSION_NUM = host.version_number,
}

for name, value in pairs(host.api) do
    if name ~= "register_function" then redis[name] = value end
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

function redis.replicate_commands() return true end
function redis.breakpoint() return false end

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

-- What scripts catch is never an object of the server.
local function outcome(is_done, thrown, ...)
    if not is_done then return false, host.caught(thrown) end
    return is_done, thrown, ...
end

local globals = {
    assert = assert, error = error, ipairs = ipairs, next = next, pairs = pairs, rawequal = rawequal,
    rawget = rawget, select = select, tonumber = tonumber, tostring = tostring, type = type, unpack = unpack,
    getmetatable = getmetatable,
    pcall = function(...) return outcome(pcall(...)) end,
    xpcall = function(body, handler)
        return xpcall(body, function(thrown) return handler(host.caught(thrown)) end)
    end,
    setmetatable = function(object, metatable)
        if protected[object] then error("Attempt to modify a readonly table", 2) end
        return setmetatable(object, metatable)
    end,
    rawset = function(object, key, value)
        if protected[object] then error("Attempt to modify a readonly table", 2) end
        return rawset(object, key, value)
    end,
    string = protect(string), table = protect(table), math = protect(math), struct = protect(host.struct),
    redis = protect(redis), server = protect(redis), cjson = protect(host.cjson),
    cmsgpack = protect(host.cmsgpack), bit = protect(host.bit), _VERSION = _VERSION,
}

local function missing(name)
    error("Script attempted to access nonexistent global variable '" .. host.tostring(name) .. "'", 3)
end

-- Globals that are those of `state.values`.
local function environment(state)
    local self = setmetatable({}, {
        __index = function(_, name)
            local value = state.values[name]
            if value == nil then missing(name) end
            return value
        end,
        __newindex = refuse,
        __metatable = stand_in,
    })
    protected[self] = true
    return self
end

local function copy()
    local values = {}
    for name, value in pairs(globals) do values[name] = value end
    return values
end

local scripts, libraries = { values = copy() }, {}
local script_environment, library_environment = environment(scripts), environment(libraries)
scripts.values._G = script_environment
scripts.values.loadstring = function(text, name) return host.loadstring(text, name) end

local function set(keys, arguments)
    scripts.values.KEYS, scripts.values.ARGV = keys, arguments
end

-- While a library is loaded, it can register functions and do little else. Functions have the globals of scripts.
local function_globals = copy()
function_globals._G = library_environment
function_globals.loadstring = function(text, name) return host.loadstring_of_library(text, name) end

local loading_redis = {
    LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3, log = redis.log,
    REDIS_VERSION = redis.REDIS_VERSION, REDIS_VERSION_NUM = redis.REDIS_VERSION_NUM,
}

loading_redis.register_function = host.api.register_function
local loading_globals = { redis = environment({ values = loading_redis }) }

local function set_loading(loads)
    libraries.values = loads and loading_globals or function_globals
end
set_loading(false)

return script_environment, library_environment, set, set_loading, function(body, count, keys, arguments)
    if count == 0 then return xpcall(body, host.note_place) end
    return xpcall(function() return body(keys, arguments) end, host.note_place)
end
