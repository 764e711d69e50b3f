package report_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/heap/report"
	"github.com/lwsbt/lwsbt/symbol"
)

// sample is a log as a device could have written: two boots of dumps a quarter of an hour
// apart, one of them incomplete, with a leak, caches that fill and buffers that come and go.
type sample struct {
	paths, dumps int // in all, and of each boot
	deepest      int // frames of a call path, on average half of it
	calls        int // functions that a function calls, at most
}

// firmware is a sample of the size of a firmware's log.
var firmware = sample{paths: 160, dumps: 20, deepest: 14, calls: 3}

var sampleModules = []struct {
	name  string
	files []string
	funcs []string
}{
	{"sensord", []string{"src/main.c", "src/session.c", "src/upload.c"}, []string{"main", "event_loop", "session_open", "session_read", "parse_header", "dup_header", "upload_chunk", "queue_push", "config_load", "retry_later"}},
	{"libwebsockets.so.19", []string{"lib/core/context.c", "lib/roles/h1/ops-h1.c"}, []string{"lws_create_context", "lws_service", "lws_h1_client_socket", "lws_buflist_append_segment", "lws_zalloc", "lws_adopt_socket", "lws_client_connect_via_info"}},
	{"libmbedtls.so.14", []string{"library/ssl_tls.c", "library/x509_crt.c"}, []string{"mbedtls_ssl_setup", "mbedtls_ssl_handshake", "mbedtls_x509_crt_parse", "mbedtls_mpi_grow", "ssl_handshake_init"}},
	{"libcjson.so.1", []string{"cJSON.c"}, []string{"cJSON_Parse", "parse_value", "parse_object", "cJSON_New_Item", "print_string_ptr"}},
}

// sampleAddrs returns the addresses of all functions, each with two lines.
func sampleAddrs() (list [][]symbol.Addr) {
	pc := uint64(0x10000)
	for _, m := range sampleModules {
		module := &symbol.Module{Name: "/usr/lib/" + m.name}
		var addrs []symbol.Addr
		for i, f := range m.funcs {
			for line := range 2 {
				pc += 64
				addrs = append(addrs, symbol.Addr{PC: pc, Location: &symbol.Location{Module: module, Own: pc, Call: pc,
					Frames: []symbol.Frame{{Name: f, File: m.files[i%len(m.files)], Line: 20 + 13*i + 5*line}}}})
			}
		}
		list = append(list, addrs)
	}
	return list
}

// profile returns the profile of the sample.
func (s sample) profile(t testing.TB) *profile.Profile {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	modules := sampleAddrs()
	b := profile.NewBuilder(0)
	var paths []profile.Path
	for range s.paths {
		// Which functions a function calls depends on the function alone.
		at, module := 0, 0
		stack := []symbol.Addr{modules[0][0]}
		for range 2 + r.IntN(s.deepest) {
			choice := r.IntN(s.calls)
			module = min(len(modules)-1, (at*7+choice*3+module*2)%(len(modules)+2))
			at = (at*5 + choice*2 + 3) % len(modules[module])
			stack = append(stack, modules[module][at])
		}
		slices.Reverse(stack)
		paths = append(paths, b.Path(stack))
	}
	leak := b.Path([]symbol.Addr{modules[0][10], modules[0][8], modules[0][4], modules[0][2], modules[0][0]})
	var dumps []*profile.Dump
	for boot := range 2 {
		for i := range s.dumps {
			for n, p := range paths {
				size := uint64(16 << (n % 9))
				switch n % 5 {
				case 0: // comes and goes
					b.Add(p, value(size*4, uint64(r.IntN(6))))
				case 1: // fills
					b.Add(p, value(size, uint64(min(i+1, 8))))
				default:
					b.Add(p, value(size*3, 2))
				}
			}
			b.Add(leak, value(412, uint64(9+8*i+r.IntN(2))))
			d := profile.DumpInfo{Name: fmt.Sprint("dump ", i+1), Number: int64(i + 1), Boot: boot + 1, Timed: true, Time: time.Duration(15*i+2) * time.Minute}
			if boot == 1 && i == s.dumps/2 {
				d.Announced, d.Cut = profile.Announced{Records: 1e6, HasRecords: true}, true
			}
			dumps = append(dumps, b.End(d))
		}
	}
	p, err := profile.New(dumps...)
	if err != nil {
		t.Fatal(err)
	}
	return p.View(profile.View{Modules: true})
}

// sampleLeaks are leaks of the sample, the first of its leaking call path.
var sampleLeaks = &report.Leaks{
	Summary: []string{"1 leak in 39 dumps of 2 boots over 9.25 h", "free 1,048,576 bytes: exhausted in 3 days (3 to 4) at +13,184 bytes per hour", "left out: dump 11 (has no end)"},
	Rows: []report.Leak{
		{Verdict: "leak, 98 %", Stack: []profile.Site{{Func: "dup_header", File: "src/upload.c", Line: 85, Module: "sensord"}, {Func: "parse_header", File: "src/session.c", Line: 72, Module: "sensord"},
			{Func: "session_open", File: "src/upload.c", Line: 46, Module: "sensord"}, {Func: "event_loop", File: "src/session.c", Line: 33, Module: "sensord"}, {Func: "main", File: "src/main.c", Line: 20, Module: "sensord"}},
			Sure: true, Rate: "+13,184 bytes per hour (13,064 to 13,304)", Grows: true, First: v(3708, 9), Last: v(66332, 161), Points: []uint64{3708, 7004, 10300, 13596, 17304, 20600},
			Text: "since about dump 3"},
		{Verdict: "cannot tell", Stack: []profile.Site{{Func: hostile[1]}}, Rate: "+12 bytes per hour (3 to 21)", Grows: true, First: v(100, 1), Last: v(200, 2), Points: []uint64{100, 100, 150, 200}, Text: hostile[0]},
		{Verdict: "leak, 61 %", Rate: "+1 bytes per hour (0 to 2)", Points: []uint64{1, 2}}, // no frame is known
	},
}

// value returns the value of blocks of one size.
func value(size, blocks uint64) profile.Value { return v(size*blocks, blocks) }
