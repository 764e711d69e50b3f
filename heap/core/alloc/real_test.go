package alloc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/heap/core"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// reals are programs of Debian with much memory, until they abort.
var reals = []struct {
	name string
	argv []string
	env  string
	live int // at least
}{
	{"perl", []string{"perl", "-e", `my %h; for my $i (1..30000) { $h{"key$i"} = [$i, "v" x ($i % 50), {n => $i}] } for my $i (1..30000) { delete $h{"key$i"} if $i % 3 == 0 } kill "ABRT", $$`}, "", 50000},
	{"python3", []string{"/usr/bin/python3", "-c", "import json,os,re,decimal,email\nd=[{'n':i,'s':str(i)*3} for i in range(50000)]\nd=d[::2]\nos.abort()"}, "", 300},
	{"python3, PYTHONMALLOC=malloc", []string{"/usr/bin/python3", "-c", "import json,os,re,decimal,email\nd=[{'n':i,'s':str(i)*3} for i in range(50000)]\nd=d[::2]\nos.abort()"}, "PYTHONMALLOC=malloc", 50000},
	{"sqlite3", []string{"sqlite3", ":memory:", "create table t(a,b,c); create index i on t(b);" +
		"with recursive n(x) as (select 1 union all select x+1 from n where x<20000) insert into t select x, 'text'||x, randomblob(x%200) from n;" +
		"create view v as select count(*) from t; select * from v; delete from t where a%5=0;", ".shell kill -ABRT $PPID"}, "", 500},
	{"redis", []string{"bash", "-c", "exec 3<<<'DEBUG POPULATE 60000 key 40'; redis-server --port 7391 --save '' --enable-debug-command yes --crash-log-enabled no --daemonize no & " +
		"for i in $(seq 600); do redis-cli -p 7391 ping 2>&1 | grep -q PONG && break; sleep 0.1; done; redis-cli -p 7391 DEBUG POPULATE 60000 key 40; redis-cli -p 7391 EVAL 'for i=1,9000 do redis.call(\"hset\",\"h\"..i%100,i,i) end' 0; kill -ABRT $PROGRAM; wait"}, "", 50000},
	{"nginx", []string{"bash", "-c", "mkdir -p logs; printf 'daemon off; master_process off; pid n.pid; error_log stderr; events {} http { access_log off; server { listen 7392; location / { return 200 hello; } } }' > n.conf; " +
		"nginx -p $PWD -c n.conf & for i in $(seq 600); do curl -s http://127.0.0.1:7392/ > /dev/null && break; sleep 0.1; done; for i in $(seq 50); do curl -s http://127.0.0.1:7392/ > /dev/null; done; kill -ABRT $PROGRAM; wait"}, "", 50},
}

// TestRealPrograms compares the blocks of programs with a table that a preloaded library keeps.
func TestRealPrograms(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, "gcc", "gdb", "bash")
	dir := t.TempDir()
	lib := filepath.Join(dir, "live.so")
	tool(t, dir, "gcc", "-O2", "-w", "-fno-builtin", "-shared", "-fPIC", "-o", lib, source(t, "live.c"))
	for _, r := range reals {
		t.Run(r.name, func(t *testing.T) {
			cmdtest.Need(t, r.argv[0])
			dir := t.TempDir()
			core := filepath.Join(dir, "core")
			argv := []string{"-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set auto-load off"}
			if r.argv[0] == "bash" { // the program is a child
				for _, p := range []string{"redis-server", "nginx", "pgrep", "curl"} {
					if r.name == "redis" && p == "redis-server" || r.name == "nginx" && p != "redis-server" {
						cmdtest.Need(t, p)
					}
				}
				name := map[string]string{"redis": "redis-server", "nginx": "nginx"}[r.name]
				path, _ := exec.LookPath(name)
				script := strings.Replace(r.argv[2], name+" -", "gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'set environment LD_PRELOAD "+lib+"' -ex run -ex 'generate-core-file "+core+"' -ex kill --args "+path+" -", 1)
				// That of this gdb: other tests have the same programs.
				script = strings.Replace(script, "$PROGRAM", "$(pgrep -P $! -x "+name+")", 1)
				c := exec.Command("bash", "-c", script)
				c.Dir = dir
				out, _ := c.CombinedOutput()
				t.Logf("%.300s", out)
			} else {
				argv = append(argv, "-ex", "set environment LD_PRELOAD "+lib)
				if k, v, ok := strings.Cut(r.env, "="); ok {
					argv = append(argv, "-ex", "set environment "+k+" "+v)
				}
				argv = append(argv, "-ex", "run", "-ex", "generate-core-file "+core, "-ex", "kill", "--args")
				path, _ := exec.LookPath(r.argv[0])
				c := exec.Command("gdb", append(append(argv, path), r.argv[1:]...)...)
				c.Dir = dir
				out, err := c.CombinedOutput()
				if err != nil {
					t.Logf("%v: %.500s", err, out)
				}
			}
			if _, err := os.Stat(core); err != nil {
				t.Skip("gdb made no core file")
			}
			compareLive(t, core, lib, r.live)
		})
	}
}

// compareLive compares the blocks of a core file with the table of live.c.
func compareLive(t *testing.T, file, lib string, least int) {
	m := &core.Image{}
	defer m.Close()
	if err := m.AddFile(file); err != nil {
		t.Fatal(err)
	}
	live := readLive(t, m, lib)
	if len(live) < least {
		t.Fatalf("the program has %d blocks, expected %d", len(live), least)
	}
	start := time.Now()
	heaps, err := Find(m, Program{}, Glibc)
	took := time.Since(start)
	if err != nil {
		t.Fatal(err)
	}
	blocks, other, bytes := len(live), 0, uint64(0)
	var examples []string
	for _, h := range heaps {
		for _, p := range h.Proof {
			if p.Want != p.Got {
				t.Errorf("%s: %s: want %#x, got %#x", h.Name, p.Check, p.Want, p.Got)
			}
		}
		for _, d := range h.Damage {
			t.Errorf("%s: damage at %#x: %s", h.Name, d.Addr, d.What)
		}
		for i := range h.Blocks {
			b := &h.Blocks[i]
			size, known := live[b.Addr]
			switch {
			case b.State != Used:
			case !known:
				other++
				examples = append(examples, fmt.Sprintf("%#x, %d bytes", b.Addr, b.Size))
			case size > b.Size:
				t.Errorf("block at %#x: %d bytes, the program requested %d", b.Addr, b.Size, size)
				delete(live, b.Addr)
			default:
				bytes += size
				delete(live, b.Addr)
			}
		}
	}
	t.Logf("%d blocks: %d missed, %d others, %d arenas; %v", blocks, len(live), other, len(heaps), took)
	for _, x := range examples[:min(len(examples), 12)] {
		t.Logf("  other: %s", x)
	}
	n := 0
	for a, size := range live {
		if n++; n < 12 {
			t.Logf("  missed: %#x, %d bytes", a, size)
		}
	}
	if len(live) > 2 || other > 30 {
		t.Errorf("%d of %d blocks missed, %d others", len(live), blocks, other)
	}
}

// readLive reads the table of live.c: sizes by address.
func readLive(t *testing.T, m *core.Image, lib string) map[uint64]uint64 {
	t.Helper()
	bias := uint64(0)
	for _, x := range m.Modules() {
		if x.Path == lib {
			bias = x.Bias
		}
	}
	value := func(name string) uint64 {
		list, err := m.Variables(lib, bias, name)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		v, _ := m.Pointer(list[0].Addr)
		return v
	}
	live := map[uint64]uint64{}
	table := value("live_table")
	for i := range value("live_length") {
		if a, _ := m.Pointer(table + 16*i); a > 1 {
			live[^a], _ = m.Pointer(table + 16*i + 8)
		}
	}
	return live
}
