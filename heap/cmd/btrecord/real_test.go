//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// realPrelude comes before the scripts of real programs. "rec NAME COMMAND" runs a command,
// under btrecord if $BTRECORD is set, as another user if $as is, and "dump PID" asks for a
// dump. "answers COMMAND" waits until a command succeeds.
const realPrelude = `
PATH="$PATH:/usr/sbin:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)"
rec() {
	name=$1
	shift
	if [ -n "$BTRECORD" ]; then
		set -- env LWSBT_TEST_BTRECORD=1 "$BTRECORD" --library "$TOOLS/library.so" --children -o "$DIR/$name.rec" -- "$@"
	fi
	$as "$@"
}
dump() { [ -z "$BTRECORD" ] || LWSBT_TEST_BTRECORD=1 "$BTRECORD" ctl "$1" dump; }
answers() { i=0; until "$@" >/dev/null 2>&1; do i=$((i + 1)); [ $i -lt 200 ] || { tail -n 30 ./*.log >&2; exit 99; }; sleep 0.1; done; }
cd "$DIR"
`

// A realProgram is a script that runs a program of the system. Its output must be the same
// with and without btrecord.
type realProgram struct {
	name   string
	needs  []string
	script string
	// least is how many allocations the script's processes make at least.
	least uint64
	// If function is not empty, the call paths through it have exactly these blocks at
	// the end.
	function string
	want     profile.Value
	// If high is not 0, the script writes the bytes that the program itself counts to the
	// file "own". The last requested dump, or else the last one, must have low to high times as many.
	low, high float64
	root      bool // only root can run it
	// all has it run only if LWSBT_FULL is all: it takes a minute or more on two processors.
	all bool
}

var realPrograms = []realProgram{
	{name: "redis with jemalloc", needs: []string{"redis-server", "redis-benchmark"}, script: `
rec redis redis-server --port 0 --unixsocket "$DIR/s" --save "" --enable-debug-command yes >redis.log & server=$!
answers redis-cli -s s ping
redis-benchmark -q -s s -n 5000 -t set,get,incr,lpush,lpop,sadd,hset >/dev/null
seq 20000 | sed 's/.*/set key:& value:&/' | redis-cli -s s --pipe | tail -1
redis-cli -s s debug digest
redis-cli -s s bgrewriteaof
answers sh -c 'redis-cli -s s info persistence | grep rewrite_in_progress:0'
dump "$(redis-cli -s s info server | sed -n 's/^process_id:\([0-9]*\).*/\1/p')"
redis-cli -s s info memory | sed -n 's/^used_memory:\([0-9]*\).*/\1/p' >own
redis-cli -s s shutdown nosave
wait $server
echo "exit status $?"`, least: 100000, low: 0.8, high: 1},
	{name: "nginx", needs: []string{"nginx", "curl"}, script: `
seq 100000 >numbers
cat >nginx.conf <<-END
	daemon off; worker_processes 2; pid $DIR/pid; error_log $DIR/error.log; $([ "$(id -u)" != 0 ] || echo 'user root;')
	events { worker_connections 64; }
	http { access_log $DIR/access.log; gzip on; gzip_types *; server { listen unix:$DIR/s; root $DIR; } }
END
rec nginx nginx -p "$DIR" -c "$DIR/nginx.conf" -e "$DIR/error.log" & server=$!
answers curl -sf --unix-socket s http://host/numbers
for i in $(seq 20); do
	curl -s --compressed --unix-socket s http://host/numbers | cmp - numbers || echo different
	curl -s --unix-socket s -o /dev/null -w '%{http_code}\n' http://host/missing
done | sort | uniq -c
kill -QUIT "$(cat pid)"
wait $server
echo "exit status $?, $(grep -c HTTP access.log) requests"`, least: 3000},
	{name: "postgres", needs: []string{"pg_ctlcluster"}, script: `
[ "$(id -u)" != 0 ] || { chown nobody "$DIR"; as="setpriv --reuid=nobody --regid=nogroup --clear-groups"; }
rec initdb initdb -D data -A trust -U tester -N >/dev/null || echo "initdb: exit status $?"
rec postgres postgres -D data -F -k "$DIR" -h '' -c log_destination=stderr -c logging_collector=on -c log_directory="$DIR" & server=$!
answers pg_isready -h "$DIR"
pgbench -h "$DIR" -U tester -i -s 1 -q postgres 2>/dev/null
pgbench -h "$DIR" -U tester -c 4 -j 2 -t 100 postgres 2>/dev/null | grep processed
psql -h "$DIR" -U tester -qAtX postgres <<-'END'
	select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history), count(*) from pgbench_history;
	select count(*), sum(hashint8(n)), md5(string_agg(n::text, ',' order by n::text desc)) from generate_series(1, 50000) n;
	select pg_backend_pid() as pid \gset
	\setenv PID :pid
	select sum(total_bytes) as own from pg_backend_memory_contexts \gset
	\setenv OWN :own
	\! echo $OWN >own; [ -z "$BTRECORD" ] || LWSBT_TEST_BTRECORD=1 "$BTRECORD" ctl $PID dump
END
$as pg_ctl stop -s -D data -m fast
wait $server
echo "exit status $?"`, least: 10000, low: 0.8, high: 1},
	// For each connection a process of root, one without rights in an empty root directory, and one of the session.
	{name: "sshd", needs: []string{"sshd", "ssh"}, root: true, script: `
mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f host
ssh-keygen -q -t ed25519 -N '' -f key
cat >sshd.conf <<-END
	HostKey $DIR/host
	PidFile $DIR/pid
	AuthorizedKeysFile $DIR/key.pub
	StrictModes no
	UsePAM no
	PrintMotd no
	PermitRootLogin yes
	ListenAddress 127.0.0.1
	Port 22871
END
rec sshd "$(command -v sshd)" -D -E "$DIR/sshd.log" -f "$DIR/sshd.conf" & server=$!
on() { ssh -F none -i key -p 22871 -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -o LogLevel=ERROR root@127.0.0.1 "$@"; }
answers test -s pid
seq 100000 | on 'cksum; id -u'
kill "$(cat pid)"
wait $server
echo "exit status $?"`, least: 10000},
	{name: "Go with cgo", needs: []string{"gcc"}, script: `
go build -o program "$TESTDATA/cgo.go"
rec cgo ./program
echo "exit status $?"`, least: 2000, function: "keep", want: profile.Value{Bytes: 1000_000, Count: 1000}, all: true},
	{name: "Rust with threads", needs: []string{"rustc"}, script: `
rustc -g -O -o program "$TESTDATA/threads.rs"
rec rust ./program
echo "exit status $?"`, least: 16000, function: "block", want: profile.Value{Bytes: 197_600, Count: 1600}},
	{name: "Java", needs: []string{"javac"}, script: `
javac -d . "$TESTDATA/Threads.java"
rec java java -cp . -XX:NativeMemoryTracking=summary -XX:+UnlockDiagnosticVMOptions -XX:+PrintNMTStatistics Threads >all
echo "exit status $?"
head -1 all
sed -n 's/^ *malloc: \([0-9]*\) #.*/\1/p' all >own`, least: 5000, low: 0.9, high: 1.1, all: true},
	{name: "Node with workers", needs: []string{"node"}, script: `
rec node node "$TESTDATA/workers.js"
echo "exit status $?"`, least: 80000},
	{name: "Chromium", needs: []string{"chromium"}, script: `
cat >page.html <<-END
	<!DOCTYPE html><title>x</title><ul id=l></ul><script>
	for (let i = 0; i < 2000; i++) { const e = document.createElement('li'); e.textContent = 'row ' + i * i; l.append(e) }
	</script>
END
export HOME="$DIR"
rec chromium sh -c 'exec chromium --headless --no-sandbox --disable-gpu --dump-dom "$0" 2>log' "file://$DIR/page.html"
echo "exit status $?"`, least: 500, all: true},
}

// TestRealPrograms runs programs of the system with and without btrecord.
func TestRealPrograms(t *testing.T) {
	cmdtest.Long(t)
	tools := t.TempDir()
	// Other users run it, too.
	if err := errors.Join(os.Chmod(tools, 0o755), os.Chmod(filepath.Dir(tools), 0o755), exec.Command("cp", os.Args[0], tools+"/btrecord").Run()); err != nil {
		t.Fatal(err)
	}
	if out, err := btrecord(t, "library", "-o", tools+"/library.so").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, p := range realPrograms {
		if p.all && !cmdtest.All() {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel() // much of it is waiting
			cmdtest.Need(t, p.needs...)
			if p.root && os.Getuid() != 0 {
				t.Skip("needs root")
			}
			alone, recorded := runReal(t, p.script, tools, ""), runReal(t, p.script, tools, tools+"/btrecord")
			if alone.out != recorded.out {
				t.Errorf("%s", cmdtest.FirstDifference(recorded.out, alone.out))
			}
			if recorded.allocations < p.least {
				t.Errorf("%d allocations are recorded, want %d or more", recorded.allocations, p.least)
			}
			if v := through(recorded.last, p.function); p.function != "" && v != p.want {
				t.Errorf("%s has %+v at the end, want %+v", p.function, v, p.want)
			}
			bytes := float64(recorded.asked.Total.Bytes)
			t.Logf("%d allocations, %.0f bytes are recorded", recorded.allocations, bytes)
			if p.high == 0 {
				return
			}
			t.Logf("the program counts %.0f bytes", recorded.own)
			if recorded.own == 0 || bytes < p.low*recorded.own || bytes > p.high*recorded.own {
				t.Errorf("%.0f bytes are recorded, the program counts %.0f, want %.2f to %.2f of that", bytes, recorded.own, p.low, p.high)
			}
		})
	}
}

// TestMemory records 262,144 call paths that hold nothing at the end. The memory in the
// program is that of a thread, and in btrecord it does not grow with their number. What starts
// btrecord may have more memory: it does not count.
func TestMemory(t *testing.T) {
	cmdtest.Long(t)
	large := bytes.Repeat([]byte{1}, 200<<20)
	defer runtime.KeepAlive(large)
	r := recorded(t, "-v", "--", compile(t, "gcc", "paths.c", "-O1"), "18")
	_, text, _ := strings.Cut(r.errs, "btrecord: memory: ")
	var shared, own uint64
	_, err := fmt.Sscanf(strings.ReplaceAll(text, ",", ""), "%d bytes shared with the program %d bytes in btrecord", &shared, &own)
	if err != nil || shared == 0 || shared > 1<<20 || own > 100_000_000 {
		t.Errorf("%d bytes are shared, want at most 1 MB; btrecord took %d, want at most 100 MB: %v: %s", shared, own, err, r.errs)
	}
}

// TestDiskFull has a recording fill its disk: the program runs to its end, btrecord fails,
// and the recording has what was written before.
func TestDiskFull(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, "unshare", "mount")
	library := filepath.Join(t.TempDir(), "library.so")
	if out, err := btrecord(t, "library", "-o", library).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	disk, file := t.TempDir(), filepath.Join(t.TempDir(), "rec")
	c := btrecord(t)
	c.Path, _ = exec.LookPath("unshare")
	c.Args = []string{"unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=1m none "$1" || exit 99
"$3" --library "$4" --events -o "$1/rec" -- "$5" threads 100000
code=$?
cp "$1/rec" "$2"
exit $code`, "sh", disk, file, os.Args[0], library, modes(t)}
	out, err := c.CombinedOutput()
	code := c.ProcessState.ExitCode()
	if code == 99 || code == 1 && bytes.Contains(out, []byte("unshare")) {
		t.Skipf("cannot mount a file system: %s", out)
	}
	if code != notRecorded || !bytes.Contains(out, []byte("done\n")) || !bytes.Contains(out, []byte("no space left on device")) {
		t.Errorf("exit status %d, want %d after the program's output: %v: %s", code, notRecorded, err, out)
	}
	r, err := heaplog.Open(t.Context(), heaplog.Files(file))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	events, failure := 0, error(nil)
	for it, err := range r.Items() {
		if failure = err; err == nil {
			events += len(it.Events)
		}
	}
	if info, e := os.Stat(file); e != nil || info.Size() > 1<<20 || events < 10000 || failure == nil {
		t.Errorf("%v: %d events of a file of %d bytes can be read, want 10,000 or more, and then an error: %v", e, events, info.Size(), failure)
	}
}

// realRun is a run of a script.
type realRun struct {
	out         string
	allocations uint64        // of all recordings
	last        *profile.Dump // at the end of the last recording
	asked       *profile.Dump // the last requested one, or the last one
	own         float64       // bytes that the program counts
}

var allocationsOf = regexp.MustCompile(`(?m)^btrecord: .*: ([0-9,]+) allocations, `)

// runReal runs a script, and reads the recordings that it leaves.
func runReal(t *testing.T, script, tools, recorder string) (r realRun) {
	t.Helper()
	dir := t.TempDir()
	os.Chmod(filepath.Dir(dir), 0o755)
	testdata, err := filepath.Abs("testdata/real")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	c := exec.CommandContext(ctx, "sh", "-c", realPrelude+script)
	c.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "as=", "DIR="+dir, "TESTDATA="+testdata, "TOOLS="+tools, "BTRECORD="+recorder)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // its servers, too
	c.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	r.out = out.String()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	for _, m := range allocationsOf.FindAllStringSubmatch(errs.String(), -1) {
		n, _ := strconv.ParseUint(strings.ReplaceAll(m[1], ",", ""), 10, 64)
		r.allocations += n
	}
	text, _ := os.ReadFile(filepath.Join(dir, "own"))
	r.own, _ = strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	files, _ := filepath.Glob(filepath.Join(dir, "*.rec*"))
	for _, f := range files {
		for _, d := range readPaths(t, f, false) {
			r.last = d
			if d.Why == "request" {
				r.asked = d
			}
		}
	}
	if r.asked == nil {
		r.asked = r.last
	}
	return r
}
