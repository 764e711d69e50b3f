//go:build linux

package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// linuxCase is a program that is hard to record.
type linuxCase struct {
	name    string
	program func(t testing.TB) string
	args    []string
	flags   []string // of btrecord
	code    int      // 0: that of the program
	says    string   // in the messages of btrecord
	full    bool     // takes some time
}

// linux returns a program of testdata/linux.
func linux(source string, flags ...string) func(testing.TB) string {
	return func(t testing.TB) string {
		cc := "gcc"
		if strings.HasSuffix(source, ".cc") {
			cc = "g++"
		}
		return compile(t, cc, "linux/"+source, append([]string{"-O0", "-pthread"}, flags...)...)
	}
}

// static returns a program of testdata/linux with a static allocator, if that is installed.
func static(source, library string, flags ...string) func(testing.TB) string {
	return func(t testing.TB) string {
		out, err := exec.Command("gcc", "-print-file-name="+library).Output()
		path := strings.TrimSpace(string(out))
		if err != nil || !filepath.IsAbs(path) {
			t.Skipf("%s is not installed", library)
		}
		cmdtest.Need(t, "g++")
		cc := "gcc"
		if strings.HasSuffix(source, ".cc") {
			cc = "g++"
		}
		return compile(t, cc, "linux/"+source, append([]string{"-O0", "-pthread", "-Wl,--whole-archive", path, "-Wl,--no-whole-archive",
			"-lm", "-ldl", "-lstdc++"}, flags...)...)
	}
}

// bits32 returns a program of testdata/linux for i386, if such programs run here.
func bits32(source string) func(testing.TB) string {
	return func(t testing.TB) string {
		path := compile(t, "i686-linux-gnu-gcc", "linux/"+source, "-O0", "-pthread")
		if err := exec.Command(path, "1", "1").Run(); err != nil {
			t.Skipf("programs of 32 bits do not run here: %v", err)
		}
		return path
	}
}

// musl returns a program of testdata/linux for musl.
func musl(source string, flags ...string) func(testing.TB) string {
	return func(t testing.TB) string {
		return compile(t, "musl-gcc", "linux/"+source, append([]string{"-O1", "-fno-builtin", "-w", "-pthread", "-Wl,--build-id"}, flags...)...)
	}
}

func linuxCases(t testing.TB) []linuxCase {
	a := linux("plugin.c", "-O1", "-fPIC", "-shared", "-DN=a")(t)
	b := linux("plugin.c", "-O1", "-fPIC", "-shared", "-DN=b")(t)
	children := []string{"--children"}
	sandbox, processes, modules, stacks := linux("sandbox.c"), linux("processes.c"), linux("modules.c", "-ldl"), linux("stacks.c")
	list := []linuxCase{
		{name: "a filter of a browser", program: sandbox, args: []string{"browser"}},
		{name: "the strict mode of seccomp", program: sandbox, args: []string{"strict"}},
		{name: "another root and user", program: sandbox, args: []string{"jail", t.TempDir()}},
		{name: "closed files", program: sandbox, args: []string{"closed"}},
		{name: "posix_spawn, vfork, clone, fork", program: processes, args: []string{"ways"}, flags: children},
		{name: "a daemon", program: processes, args: []string{"daemon", "0"}, flags: children},
		{name: "a daemon that allocates late", program: processes, args: []string{"daemon", "300000"}, flags: children},
		{name: "a PID namespace", program: processes, args: []string{"namespace"}, flags: children},
		{name: "children in PID namespaces of their own", program: processes, args: []string{"clones"}, flags: children},
		{name: "kill", program: processes, args: []string{"kill"}},
		{name: "abort", program: processes, args: []string{"abort"}},
		{name: "a segmentation fault", program: processes, args: []string{"segv"}},
		{name: "an exec that fails", program: processes, args: []string{"execfails"}},
		{name: "_exit", program: processes, args: []string{"_exit"}},
		{name: "RTLD_DEEPBIND", program: modules, args: []string{"deepbind", a, b}},
		{name: "RTLD_DEEPBIND, lazily", program: modules, args: []string{"lazy", a, b}},
		{name: "dlmopen", program: modules, args: []string{"dlmopen", a, b}, code: 125, says: "dlmopen"},
		{name: "modules at one address", program: modules, args: []string{"again", a, b}},
		{name: "modules of iconv", program: modules, args: []string{"iconv", a, b}},
		{name: "a module in memory", program: modules, args: []string{"memory", a, b}},
		{name: "fibers", program: stacks, args: []string{"fibers"}},
		{name: "code that changes", program: stacks, args: []string{"code"}},
		{name: "a signal handler", program: stacks, args: []string{"handler"}},
		{name: "own getenv", program: linux("getenv.c")},
		{name: "a zygote", program: linux("zygote.c", "-w"), flags: children},
		{name: "before and after main", program: linux("early.c")},
		{name: "each function", program: linux("calls.c")},
		{name: "operators", program: linux("sized.cc")},
		{name: "threads", program: linux("threads.c"), args: []string{"1000", "200"}},
		{name: "musl: functions of the C library", program: musl("musl.c")},
		{name: "musl: threads", program: musl("threads.c"), args: []string{"100", "200"}},
		{name: "musl: a daemon", program: musl("processes.c"), args: []string{"daemon", "0"}, flags: children},
		{name: "musl: kill", program: musl("processes.c"), args: []string{"kill"}},
		{name: "32 bits", program: bits32("threads.c"), args: []string{"100", "200"}},
		{name: "4,100 threads at once", program: linux("threads.c"), args: []string{"0", "4100"}, code: 125, says: "more than 4096 threads", full: true},
		{name: "own malloc", program: linux("own.c")},
		{name: "own malloc that is not exported", program: linux("own.c", "-fvisibility=hidden")},
		{name: "own malloc whose registers the caller knows", program: linux("registers.c", "-O2")},
		{name: "static jemalloc", program: static("mix.c", "libjemalloc.a")},
		{name: "static tcmalloc", program: static("mix.c", "libtcmalloc_minimal.a")},
		{name: "static jemalloc that is not exported", program: static("mix.c", "libjemalloc.a", "-Wl,--exclude-libs,ALL")},
		{name: "functions of mimalloc", program: static("mimalloc.c", "libmimalloc.so"), code: 125, says: "malloc of its own"},
		{name: "functions of mimalloc in the program", program: linux("mimalloc.c", "-DSTATIC"), code: 125, says: "malloc of its own"},
		{name: "static jemalloc, operators", program: static("sized.cc", "libjemalloc.a")},
	}
	for call, number := range map[string]int{"openat": syscall.SYS_OPENAT, "prctl": syscall.SYS_PRCTL, "gettid": syscall.SYS_GETTID,
		"getpid": syscall.SYS_GETPID, "kill": syscall.SYS_KILL, "nanosleep": syscall.SYS_NANOSLEEP, "ioctl": syscall.SYS_IOCTL,
		"futex": syscall.SYS_FUTEX, "mremap": syscall.SYS_MREMAP, "sched_getaffinity": syscall.SYS_SCHED_GETAFFINITY} {
		list = append(list, linuxCase{name: "a filter for " + call, program: sandbox, args: []string{fmt.Sprint(number)}})
	}
	return list
}

// Programs that are hard to record run under btrecord as they do alone, and the recording has what
// they count themselves.
func TestLinux(t *testing.T) {
	for _, c := range linuxCases(t) {
		t.Run(c.name, func(t *testing.T) {
			if c.full {
				cmdtest.Long(t)
			}
			c.run(t)
		})
	}
}

func (c *linuxCase) run(t *testing.T) {
	program := append([]string{c.program(t)}, c.args...)
	alone, want := aloneOutput(t, program)
	if alone == 77 {
		t.Skip("this is not permitted here")
	}
	r := recorded(t, slices.Concat(c.flags, []string{"--"}, program)...)
	code := c.code
	if code == 0 {
		code = alone
	}
	if r.code != code || !strings.Contains(r.errs, c.says) {
		t.Fatalf("exit status %d, want %d: %s", r.code, code, r.errs)
	}
	if got := sortedLines(r.out); got != sortedLines(want) {
		t.Errorf("it printed %q, alone %q", got, want)
	}
	if c.code != 0 {
		return
	}
	counted := map[string]profile.Value{}
	for line := range strings.Lines(want) {
		var function, bytes string
		var n uint64
		if _, err := fmt.Sscan(line, &function, &n, &bytes); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		v := counted[function]
		v.Count += n
		var b int64
		if _, err := fmt.Sscan(bytes, &b); err == nil {
			v.Bytes += uint64(b)
		}
		counted[function] = v
	}
	if len(counted) == 0 {
		t.Fatalf("the program printed %q", want)
	}
	files, _ := filepath.Glob(r.file + ".*")
	got := map[string]profile.Value{}
	for _, file := range append(files, r.file) {
		for _, d := range readPaths(t, file, false) {
			for function, v := range counted {
				sum, now := got[function], through(d, function)
				if sum.Count += now.Count; v.Bytes > 0 {
					sum.Bytes += now.Bytes
				}
				got[function] = sum
			}
		}
	}
	for function, v := range counted {
		if got[function] != v {
			t.Errorf("%s has %+v, and counts %+v: %s", function, got[function], v, r.errs)
		}
	}
}

// aloneOutput runs a program alone, and returns its exit status and its output.
func aloneOutput(t *testing.T, program []string) (int, string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	c := exec.CommandContext(ctx, program[0], program[1:]...)
	out, err := c.Output() // a daemon has the pipe, too
	if ctx.Err() != nil || c.ProcessState == nil {
		t.Fatalf("alone: %v", err)
	}
	if status := c.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal()), string(out)
	}
	return c.ProcessState.ExitCode(), string(out)
}

func sortedLines(s string) string {
	lines := slices.Sorted(strings.Lines(s))
	return strings.Join(lines, "")
}

// A program that leaves realloc by siglongjmp, again and again, is recorded to its end.
func TestLeftByJump(t *testing.T) {
	program := linux("stacks.c")(t)
	allocator := linux("jump.c", "-fPIC", "-shared", "-fno-builtin")(t)
	recorded(t, "--", "true") // has the library built, by a compiler without that allocator
	file := filepath.Join(t.TempDir(), "rec")
	c := btrecord(t, "-o", file, "--", program, "jumps", "10000")
	c.Env = append(c.Env, "LD_PRELOAD="+allocator)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if err != nil || !strings.Contains(errs.String(), "left 10000 times") || strings.Contains(errs.String(), "lost") {
		t.Fatalf("%v: %s", err, errs.String())
	}
	dumps := read(t, file)
	if got := through(dumps[len(dumps)-1], "keep"); got != (profile.Value{Count: 1000, Bytes: 30000}) {
		t.Errorf("%+v, want 1,000 blocks of 30 bytes", got)
	}
}

// Whatever the status of the program, a recording that is not complete ends with 125.
func TestIncomplete(t *testing.T) {
	if r := recorded(t, "-o", "/dev/full", "--", "sh", "-c", "exit 3"); r.code != 125 || !strings.Contains(r.errs, "not complete") {
		t.Errorf("exit status %d, want 125: %s", r.code, r.errs)
	}
}

// A program is recorded that another one executes with an empty environment, as another user who cannot open
// the library, or in another root directory.
func TestFollowed(t *testing.T) {
	program := linux("waits.c")(t)
	root := t.TempDir()
	user := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	const jail = `mkdir -p "$1/proc" "$1/lib" "$1/lib64" && cp "$2" "$1/program" && cp -L $(ldd "$2" | grep -o '/[^ ]*') "$1/lib" &&
		cp -L "$1"/lib/ld-* "$1/lib64" && mount -t proc proc "$1/proc" && exec chroot "$1" /program 0`
	for name, c := range map[string]struct {
		args []string
		need string
	}{
		"env -i":            {[]string{"env", "-i", program, "0"}, "env"},
		"sh, env -i":        {[]string{"sh", "-c", `exec env -i "$0" 0`, program}, "env"},
		"another user":      {append(user, program, "0"), "setpriv"},
		"another user, env": {append(user, "env", "-i", program, "0"), "setpriv"},
		"mount namespace":   {[]string{"unshare", "-Urm", program, "0"}, "unshare"},
		"another root":      {[]string{"unshare", "-m", "sh", "-c", jail, "sh", root, program}, "unshare"},
		"bwrap":             {[]string{"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--clearenv", program, "0"}, "bwrap"},
		"sudo":              {[]string{"sudo", program, "0"}, "sudo"},
		"sudo, another":     {[]string{"sudo", "-u", "nobody", program, "0"}, "sudo"},
		"runuser":           {[]string{"runuser", "-u", "nobody", "--", program, "0"}, "runuser"},
		"ld.so":             {[]string{loader(t, program), program, "0"}, "sh"},
	} {
		t.Run(name, func(t *testing.T) {
			cmdtest.Need(t, c.need)
			if out, err := exec.Command(c.args[0], c.args[1:]...).CombinedOutput(); err != nil {
				t.Skipf("alone: %v: %s", err, out)
			}
			if name == "another root" { // where btheap does not find the program's functions
				exec.Command("rm", "-r", root).Run()
				r := recorded(t, append([]string{"--"}, c.args...)...)
				if r.code != 0 || !strings.Contains(r.errs, "rec: 100 allocations, 0 frees, peak 5,000 bytes") {
					t.Errorf("exit status %d: %s", r.code, r.errs)
				}
				return
			}
			(&linuxCase{program: func(testing.TB) string { p, _ := exec.LookPath(c.args[0]); return p }, args: c.args[1:], flags: []string{"--children"}}).run(t)
		})
	}
}

// loader returns the dynamic linker of a program.
func loader(t *testing.T, program string) string {
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := f.Section(".interp").Data()
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimRight(text, "\x00"))
}

// A container's process cannot see btrecord in its /proc, and has a PID of its own.
func TestNamespaces(t *testing.T) {
	cmdtest.Need(t, "unshare")
	program := linux("processes.c")(t)
	for _, flags := range []string{"-Ur -p -f", "-Ur -p -f --mount-proc"} {
		args := append(strings.Fields(flags), program, "init")
		if out, err := exec.Command("unshare", append(strings.Fields(flags), "true")...).CombinedOutput(); err != nil {
			t.Skipf("unshare %s: %s", flags, out)
		}
		c := linuxCase{program: func(testing.TB) string { p, _ := exec.LookPath("unshare"); return p }, args: args, flags: []string{"--children"}}
		t.Run(flags, c.run)
	}
}

// Without a writable home there is another place for the library, and with few files it is found
// in the cache.
func TestCache(t *testing.T) {
	program := linux("calls.c")(t)
	run := func(t *testing.T, env []string, shell string) (int, string) {
		t.Helper()
		c := btrecord(t)
		c.Path = "/bin/sh"
		c.Args = []string{"sh", "-c", shell, "sh", os.Args[0], filepath.Join(t.TempDir(), "rec"), program}
		c.Env = append(c.Env, env...)
		out, _ := c.CombinedOutput()
		return c.ProcessState.ExitCode(), string(out)
	}
	const record = `exec "$1" -o "$2" -- "$3"`
	temp := t.TempDir()
	none := []string{"XDG_CACHE_HOME=", "HOME=/nonexistent/home", "TMPDIR=" + temp}
	if os.Getuid() == 0 {
		none[1] = "HOME=/proc/home" // where root cannot write, either
	}
	if code, out := run(t, none, record); code != 0 {
		t.Errorf("without a home: exit status %d: %s", code, out)
	}
	if err := os.Chmod(filepath.Join(temp, fmt.Sprintf("lwsbt-%d", os.Getuid())), 0o777); err != nil {
		t.Fatal(err)
	}
	if code, out := run(t, none, record); code != 125 || !strings.Contains(out, "XDG_CACHE_HOME") {
		t.Errorf("a directory that others can write: exit status %d: %s", code, out)
	}
	if code, out := run(t, nil, record); code != 0 {
		t.Fatalf("exit status %d: %s", code, out)
	}
	if code, out := run(t, nil, "ulimit -n 20; "+record); code != 0 {
		t.Errorf("20 files: exit status %d: %s", code, out)
	}
	if code, out := run(t, nil, "ulimit -n 10; "+record); code != 126 || !strings.Contains(out, "ulimit -n") {
		t.Errorf("10 files: exit status %d: %s", code, out)
	}
}

// Programs that the loader does not let record say so.
func TestReasons(t *testing.T) {
	asan := compile(t, "gcc", "linux/calls.c", "-fsanitize=address")
	t.Setenv("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1") // it calls aligned_alloc with a bad alignment
	if err := exec.Command(asan).Run(); err != nil {
		t.Skipf("AddressSanitizer does not run here: %v", err)
	}
	if r := recorded(t, "--", asan); r.code != 125 || !strings.Contains(r.errs, "verify_asan_link_order=0") {
		t.Errorf("AddressSanitizer: exit status %d: %s", r.code, r.errs)
	}
}

// Programs of sanitizers whose library allocates before it is ready are recorded.
func TestSanitizers(t *testing.T) {
	t.Setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0")
	for _, sanitizer := range []string{"address", "thread"} {
		t.Run(sanitizer, func(t *testing.T) {
			program := compile(t, "gcc", "linux/mix.c", "-O0", "-fsanitize="+sanitizer)
			if err := exec.Command(program).Run(); err != nil {
				t.Skipf("it does not run here: %v", err)
			}
			(&linuxCase{program: func(testing.TB) string { return program }}).run(t)
		})
	}
}

// A child whose program is not recorded is named, however short it runs.
func TestNotRecorded(t *testing.T) {
	static := compile(t, "gcc", "linux/waits.c", "-static")
	const ways = `"$1" 0; "$1" 0; sh -c '"$1" 0; exit 3' sh "$1"; (exec -a no ./nonexistent) 2>/dev/null; true`
	r := recorded(t, "--children", "--", "bash", "-c", ways, "bash", static)
	want := []string{
		"3 processes executed " + static + ", which is not recorded: it is a static program",
	}
	for _, says := range want {
		if r.code != 0 || !strings.Contains(r.errs, says) {
			t.Errorf("exit status %d, want %q: %s", r.code, says, r.errs)
		}
	}
	if n := strings.Count(r.errs, "which is not recorded"); n != len(want) {
		t.Errorf("%d notes, want %d: %s", n, len(want), r.errs)
	}
	if strings.Contains(r.errs, ": 0 allocations") {
		t.Errorf("a child that only executes a program has a recording: %s", r.errs)
	}
	for _, quiet := range [][]string{nil, {"-q"}} {
		r := recorded(t, append(quiet, "--", "sh", "-c", static+" 0; exec "+static+" 0")...)
		if r.code != 125 || !strings.Contains(r.errs, "the program executed "+static+", which is not recorded: it is a static program") {
			t.Errorf("without --children, %v: exit status %d: %s", quiet, r.code, r.errs)
		}
	}
}

// posix_spawn tells the PID of a child that may have ended.
func TestSpawned(t *testing.T) {
	program := linux("processes.c")(t)
	for _, mode := range []string{"ways", "spawns"} {
		r := recorded(t, "--children", "--", program, mode)
		if r.code != 0 || strings.Contains(r.errs, "which is not recorded") {
			t.Errorf("%s: exit status %d: %s", mode, r.code, r.errs)
		}
	}
}

// The loader ignores preloaded libraries for programs that give privileges, and btrecord says so,
// also if such a program is executed later.
func TestPrivileges(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to run btrecord as another user")
	}
	dir, err := os.MkdirTemp("", "lwsbt") // which another user can enter, as t.TempDir is not
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const nobody = 65534
	paths := map[string]string{}
	for name, from := range map[string]string{"btrecord": os.Args[0], "capable": linux("waits.c")(t), "setuid": linux("waits.c")(t)} {
		text, err := os.ReadFile(from)
		paths[name] = filepath.Join(dir, name)
		if err == nil {
			err = os.WriteFile(paths[name], text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(dir+"/cache", 0o755), os.Chown(dir+"/cache", nobody, nobody),
		os.Chown(paths["setuid"], 1, 1), os.Chmod(paths["setuid"], 0o755|os.ModeSetuid))
	if err != nil {
		t.Fatal(err)
	}
	as := func(args ...string) *exec.Cmd {
		c := btrecord(t)
		c.Path, c.Args = args[0], args
		c.Env = append(c.Env, "XDG_CACHE_HOME="+dir+"/cache", "TMPDIR="+dir+"/cache")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return c
	}
	if err := as(paths["capable"], "0").Run(); err != nil {
		t.Skipf("another user cannot run %s: %v", paths["capable"], err)
	}
	if out, err := exec.Command("setcap", "cap_net_raw+ep", paths["capable"]).CombinedOutput(); err != nil {
		t.Skipf("setcap: %v: %s", err, out)
	}
	for name, says := range map[string]string{"capable": "file capabilities", "setuid": "setuid"} {
		c := as(paths["btrecord"], "-o", "/dev/null", "--", paths[name], "0")
		if out, _ := c.CombinedOutput(); c.ProcessState.ExitCode() != 125 || !strings.Contains(string(out), says) {
			t.Errorf("%s: exit status %d: %s", name, c.ProcessState.ExitCode(), out)
		}
		out, err := as(paths["btrecord"], "-o", "/dev/null", "--", "sh", "-c", "exec "+paths[name]+" 0").CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 125 || !strings.Contains(string(out), "executed "+paths[name]+", which is not recorded") ||
			!strings.Contains(string(out), says) {
			t.Errorf("%s, executed by a shell: %v: %s", name, err, out)
		}
	}

	// What root records, nobody else controls or opens.
	c := btrecord(t, "-q", "-o", "/dev/null", "--", linux("waits.c")(t), "100")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pid := ""
	for range 1000 {
		text, _ := exec.Command("sh", "-c", fmt.Sprintf("cat /proc/%d/task/*/children", c.Process.Pid)).Output() // of each thread
		if pid = strings.TrimSpace(string(text)); pid != "" && btrecord(t, "ctl", pid, "dump").Run() == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if out, err := as(paths["btrecord"], "ctl", pid, "off").CombinedOutput(); err == nil {
		t.Errorf("ctl of another user: %s", out)
	}
	if out, err := as("/bin/sh", "-c", `for f in "$0"/fd/* "$0"/map_files/*; do : <"$f"; done`, fmt.Sprintf("/proc/%d", c.Process.Pid)).CombinedOutput(); err == nil {
		t.Errorf("another user opens files of btrecord: %s", out)
	}
	if out, err := btrecord(t, "ctl", pid, "off").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	c.Process.Signal(syscall.SIGTERM)
	c.Wait()
}

// Where the system limits the size of the address space, fewer threads are recorded; what is too
// small is said, as is the limit of the size of files.
func TestLimits(t *testing.T) {
	run := func(limit string, args ...string) (int, string) {
		b := btrecord(t, args...)
		b.Path, b.Args = "/bin/sh", append([]string{"sh", "-c", limit + ` && exec "$0" "$@"`}, b.Args...)
		out, _ := b.CombinedOutput()
		return b.ProcessState.ExitCode(), string(out)
	}
	if code, _ := run("ulimit -v 4000000", "--help"); code != 0 {
		t.Skip("this build needs more address space, as with the race detector")
	}
	program, file := modes(t), filepath.Join(t.TempDir(), "rec")
	for _, c := range []struct {
		limit string
		code  int
		says  string
	}{
		{"ulimit -v 4000000", 0, "allocations"},
		{"ulimit -v 1900000", 125, "limited to 1945600000 bytes (ulimit -v)"},
		{"ulimit -f 100", 125, "(ulimit -f)"},
	} {
		if code, out := run(c.limit, "-o", file, "--", program, "peak"); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%s: exit code %d, expected %d and %q:\n%s", c.limit, code, c.code, c.says, out)
		}
	}
}

// Where a program planted links under the names of recordings to come, the recordings of its children
// have other names, and the target of the links is not written.
func TestPlantedLinks(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	probe := exec.Command("true")
	if err := errors.Join(os.WriteFile(precious, []byte("precious"), 0o600), probe.Run()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "rec")
	for i := range 20_000 {
		if err := os.Symlink(precious, fmt.Sprintf("%s.%d", file, probe.Process.Pid+i)); err != nil {
			t.Fatal(err)
		}
	}
	c := btrecord(t, "--children", "-o", file, "--", "sh", "-c", "ls / >/dev/null; ls / >/dev/null; :")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text, err := os.ReadFile(precious); string(text) != "precious" {
		t.Errorf("the target of the links has %d bytes now, %v", len(text), err)
	}
	files, _ := filepath.Glob(file + ".*.2")
	if len(files) != 2 || !strings.Contains(string(out), files[0]+":") {
		t.Errorf("recordings %q: %s", files, out)
	}
	for _, name := range append(files, file) {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
}
