/* duktape.c: runs scripts that call much of the engine. */
#include "duktape.h"
#include "real.h"

static const char *const scripts[] = {
	"var o = {}; for (var i = 0; i < 80; i++) { o['k' + i] = {n: i, s: 'x'.concat(String(i)), a: [i, [i]]}; } JSON.parse(JSON.stringify(o, null, 2)).k7.a[1];",
	"'the quick brown fox'.replace(/(\\w+) (\\w+)/g, function (m, a, b) { return b.toUpperCase() + a.split('').reverse().join('|'); });"
	"/^(a+)+b?$/.exec('aaaaaaaab'); 'a1b22c333'.match(/[0-9]+/g).map(function (s) { return parseInt(s, 10) * 1.5; }).sort(function (a, b) { return b - a; });",
	"function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); } fib(9); [3, 1, 2].sort().concat([4]).slice(1).reduce(function (a, b) { return a + b; }, 0);",
	"function A(x) { this.x = x; } A.prototype.toString = function () { return 'A' + this.x; }; A.prototype.valueOf = function () { return this.x; };"
	"var a = new A(4), b = Object.create(a, {y: {get: function () { return this.x + 1; }, enumerable: true}}); '' + b + (a + b.y); for (var k in b) { k + b[k]; } Object.keys(b); delete a.x;",
	"for (var j = 0; j < 8; j++) { try { if (j % 2) throw new TypeError('bad' + j); null.x; } catch (e) { e.stack; String(e); } finally { [j].toString(); } }",
	"new Date(2020, 1, 2).toISOString(); encodeURIComponent('\\u00e4 /?'); unescape('%u1234'); (255.5).toString(16); (1e21 + 7).toFixed(2); Math.max.apply(null, [1, 2, 3]); parseFloat('1.25e3');",
	"var f = new Function('a', 'b', 'return function () { return [a, b, arguments.length]; }'); f(1, 2)(3); eval('var q = 3; q * q'); with ({z: 1}) { z; } (function () { return this; }).bind([1]).call();",
	"var t = new Duktape.Thread(function (x) { for (var i = 0; i < 5; i++) { x = Duktape.Thread.yield(x + 'y' + i); } }); for (var m = 0; m < 4; m++) { Duktape.Thread.resume(t, 'r' + m); } Duktape.gc();",
	"var u = new Uint8Array(40); u.set([1, 2, 3], 4); u.subarray(2, 9); Duktape.enc('jx', {a: [1, undefined, NaN, u]}); Duktape.dec('hex', '010203'); new Proxy({}, {get: function (t, k) { return k + '!'; }}).abc;",
	"this is not a script", "throw {a: 1}", "var s = 'unfinished",
};

void drive(void)
{
	duk_context *ctx = duk_create_heap_default();
	unsigned i;

	if (!ctx)
		return;
	for (i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		duk_peval_string(ctx, scripts[i]);
		duk_safe_to_string(ctx, -1);
		duk_pop(ctx);
	}
	duk_destroy_heap(ctx);
}
