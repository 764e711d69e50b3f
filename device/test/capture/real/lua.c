/* lua.c: runs a script that calls much of the interpreter and its library. */
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
#include "real.h"

static const char *const scripts[] = {
	"local t = {} for i = 1, 60 do t[#t + 1] = string.format('%5d %s %q %g', i, ('x'):rep(i % 7), 'q' .. i, i / 3) end\n"
	"table.sort(t, function(a, b) return a:reverse() < b:reverse() end)\n"
	"local s = table.concat(t, ';') s = s:gsub('(%d+) (%w*)', function(a, b) return b .. a end)\n"
	"for k, v in s:gmatch('(%w+)=?(%w*)') do t[k] = (t[k] or 0) + #v end\n",
	"local function tree(n) if n == 0 then return {} end return {tree(n - 1), tree(n - 1), name = tostring(n)} end\n"
	"local function count(t) local n = 1 for _, c in ipairs(t) do n = n + count(c) end return n end\n"
	"local total = 0 for i = 1, 7 do total = total + count(tree(i)) end collectgarbage()\n",
	"local meta = {__index = function(t, k) return k .. '!' end, __add = function(a, b) return setmetatable({v = a.v + b.v}, getmetatable(a)) end,\n"
	"__tostring = function(t) return 'obj' .. t.v end, __lt = function(a, b) return a.v < b.v end, __concat = function(a, b) return tostring(a) .. tostring(b) end,\n"
	"__gc = function(t) local x = 'gc' .. tostring(t.v) end, __close = function() local y = {1, 2} end, __call = function(self, x) return {x, self} end}\n"
	"local a, b = setmetatable({v = 1}, meta), setmetatable({v = 2}, meta)\n"
	"local c = a + b local s = a .. b .. c.missing local q = a < b; local r = a(5) do local z <close> = setmetatable({v = 9}, meta) end a, b = nil collectgarbage()\n",
	"local function gen(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i .. 'th', {i}) end end) end\n"
	"for s, t in gen(20) do local u = s .. #t end\n"
	"local co = coroutine.create(function(...) local x = {...} error({code = coroutine.yield(#x)}) end) coroutine.resume(co, 1, 2) coroutine.resume(co, 'e')\n",
	"for i = 1, 10 do local ok, e = pcall(function() local t = nil; return t.x.y end) local ok2, e2 = xpcall(error, debug.traceback, 'msg' .. i) end\n"
	"local f = load('local a, b = ... return function() return a + b, {a, b, n = a * b} end') for i = 1, 5 do f(i, i + 1)() end\n"
	"load('this is not lua') load('return \"unfinished') pcall(load, string.dump(f))\n"
	"local t = table.pack(string.byte('hello', 1, -1)) table.unpack(t) table.insert(t, 1, 'a') table.remove(t, 2) table.move(t, 1, 3, 2)\n"
	"string.pack('<i4z', 7, 'abc') utf8.char(228, 8364) os.time({year = 2020, month = 1, day = 2}) math.floor(3.7) tostring(1e15) tonumber('0x1p4') select('#', 1, 2)\n"
	"local big = {} for i = 1, 300 do big['k' .. i] = i big[i] = {} end for k in pairs(big) do big[k] = nil end\n",
};

void drive(void)
{
	lua_State *L = luaL_newstate();
	unsigned i;

	if (!L)
		return;
	luaL_openlibs(L);
	for (i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		if (luaL_loadstring(L, scripts[i]) == LUA_OK)
			lua_pcall(L, 0, 0, 0);
		lua_settop(L, 0);
	}
	lua_close(L);
}
