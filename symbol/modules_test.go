package symbol

import (
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// copyFile copies a file to dir/name, and makes directories as needed.
func copyFile(t testing.TB, from, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

// located resolves one address in the code of a module, by a map that has nothing
// else.
func located(p *Process, m Module, addr uint64) Location {
	const page = 0x7000_0000_0000
	p.Map([]Mapping{{Start: page, End: page + 1<<30, Exec: true, Relative: true, Module: &m}})
	return p.at(page + addr)
}

// A log that names a file of this machine gets to see of it what the log could
// have come from, and nothing of any other.
func TestFilesThatALogNames(t *testing.T) {
	whole := buildC(t, strings.Fields("gcc -O0 -g -pie -Wl,--build-id"), "prog.c", "other.c")
	f := open(t, whole)
	addr := symbolAddr(t, f, "sum") + 4
	dir := t.TempDir()
	text := filepath.Join(dir, "secret.txt")
	if err := os.WriteFile(text, []byte("secret of this machine"), 0o644); err != nil {
		t.Fatal(err)
	}
	number, _ := inode(f.info)
	fifo := filepath.Join(dir, "fifo")
	run(t, dir, tool(t, "mkfifo"), fifo)
	for _, c := range []struct {
		name string
		m    Module
		want bool
		says string
	}{
		{"the build that ran", Module{Name: whole, BuildID: f.BuildID, Logged: true}, true, ""},
		{"another build", Module{Name: whole, BuildID: strings.Repeat("ab", 20), Logged: true}, false, "build-id " + f.BuildID + ", but what was loaded had abab"},
		{"no build-id in the log", Module{Name: whole, BuildID: "", Logged: true}, false, "the log has no build-id"},
		{"the user's map, of this very file", Module{Name: whole, Inode: number}, true, ""},
		{"the user's map, of another file at its path", Module{Name: whole, Inode: number + 1}, false, "not the file that was mapped"},
		{"the user's map, without a number", Module{Name: whole}, false, "not the file that was mapped"},
		{"a relative path", Module{Name: "../../" + whole, BuildID: f.BuildID, Logged: true}, false, "no such file"},
		{"no ELF file", Module{Name: text, BuildID: f.BuildID, Logged: true}, false, "no such file"},
		{"a FIFO", Module{Name: fifo, BuildID: f.BuildID, Logged: true}, false, "no such file"},
		{"a FIFO in the user's map", Module{Name: fifo, BuildID: "", Logged: false}, false, "not a regular file"},
		{"a directory", Module{Name: dir, BuildID: f.BuildID, Logged: true}, false, "no such file"},
	} {
		r := process(t)
		start := time.Now()
		l := located(r, c.m, addr)
		if found := len(l.Frames) > 0 && l.Frames[0].Func == "sum"; found != c.want {
			t.Errorf("%s: %+v, found %v, want %v", c.name, l.Frames, found, c.want)
		}
		said := l.Missing + strings.Join(allNotes(r), "\n")
		if !strings.Contains(said, c.says) || strings.Contains(said, "secr\"") {
			t.Errorf("%s: %q, want %q", c.name, said, c.says)
		}
		if c.name == "another build" && strings.Contains(l.Missing, "sum") || time.Since(start) > time.Minute {
			t.Errorf("%s: %v after %v", c.name, l.Missing, time.Since(start))
		}
	}
}

// Below a sysroot, no name and no link leads out of it, and links there mean what
// they mean to a program whose root it is.
func TestSysroot(t *testing.T) {
	whole := buildC(t, strings.Fields("gcc -O0 -g -pie -Wl,--build-id"), "prog.c", "other.c")
	f := open(t, whole)
	addr := symbolAddr(t, f, "sum") + 4
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	copyFile(t, whole, root, "usr/lib/libx.so.1")
	copyFile(t, whole, dir, "outside.so")
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("usr/lib", "lib")
	link("/usr/lib/libx.so.1", "usr/lib/absolute.so")
	link("../lib/libx.so.1", "usr/lib/relative.so")
	link("../../../../usr/lib/libx.so.1", "usr/lib/clamped.so")
	link("../outside.so", "escape.so")
	link(filepath.Join(dir, "outside.so"), "escape2.so")
	link("loop2", "loop1")
	link("loop1", "loop2")
	for name, want := range map[string]bool{
		"/usr/lib/libx.so.1":             true,
		"/lib/libx.so.1":                 true,
		"lib/libx.so.1":                  true,
		"/usr/lib/absolute.so":           true,
		"/usr/lib/relative.so":           true,
		"/usr/lib/clamped.so":            true,
		"../../usr/lib/libx.so.1":        true, // ".." of the root is the root
		"../outside.so":                  false,
		"/../outside.so":                 false,
		"/escape.so":                     false,
		"/escape2.so":                    false,
		"/loop1":                         false,
		filepath.Join(dir, "outside.so"): false,
		"/usr/lib":                       false,
		"/nothing":                       false,
	} {
		r := configured(t, Config{Sysroots: []string{root}})
		l := located(r, Module{Name: name, BuildID: f.BuildID, Logged: true}, addr)
		if found := len(l.Frames) > 0 && l.Frames[0].Func == "sum"; found != want {
			t.Errorf("%s: found %v, want %v: %s", name, found, want, l.Missing)
		}
		if want && !strings.HasPrefix(l.Module.File.Path, root) {
			t.Errorf("%s: opened %s, which is not below %s", name, l.Module.File.Path, root)
		}
		if !want && l.Missing == "" {
			t.Errorf("%s: no reason", name)
		}
	}
	// A file that the log calls by many names is opened once.
	r := configured(t, Config{Sysroots: []string{root}})
	for _, name := range []string{"/usr/lib/libx.so.1", "/lib/libx.so.1", "/lib/./libx.so.1", "/usr/lib/absolute.so"} {
		located(r, Module{Name: name, BuildID: f.BuildID, Logged: true}, addr)
	}
	if len(r.opened) != 1 {
		t.Errorf("%d files are open, want 1", len(r.opened))
	}
}

// A file of this machine is not used for a log of a device, and a file for another kind of
// machine is never used.
func TestFilesOfAnotherMachine(t *testing.T) {
	call := []byte{0xff, 0xd0, 0xff, 0xd0}
	arm := tinyELF(t, elf.EM_ARM, 0x8000, call, "arm_main")
	x86 := tinyELF(t, elf.EM_386, 0x8000, call, "x86_main")
	_, err := NewProcess(Config{Files: []FileSpec{{Path: arm}, {Path: x86}}})
	if err == nil || !strings.Contains(err.Error(), x86+": 32-bit x86, but the log is of 32-bit Arm ("+arm+")") {
		t.Errorf("an x86 file beside an Arm one: %v", err)
	}
	r := process(t, arm)
	l := located(r, Module{Name: x86}, 0x8002)
	if len(l.Frames) > 0 || !strings.Contains(l.Missing, "not looked for on this machine, since the log is of 32-bit Arm") {
		t.Errorf("a module of this machine for a log of Arm: %+v", l)
	}
	r.Map(nil)
	if _, err := NewProcess(Config{Files: []FileSpec{{Path: arm}}, Word: 64, WordBy: "w=64 at x.log:3"}); err == nil || !strings.Contains(err.Error(), arm+": 32-bit Arm, but the log is of a 64-bit machine (w=64 at x.log:3)") {
		t.Errorf("a 32-bit file for a 64-bit log: %v", err)
	}
	// Addresses of over 32 bits are not cut down to fit a 32-bit file.
	if l := r.at(1<<32 + 0x8002); len(l.Frames) > 0 || !strings.Contains(l.Missing, "over 32 bits, but "+arm+" is 32-bit Arm") {
		t.Errorf("an address of over 32 bits in a 32-bit file: %+v", l)
	}
}

// PATH@ADDR is where the first segment is, PATH@+BIAS the difference.
func TestFileSpecs(t *testing.T) {
	path := tinyELF(t, elf.EM_386, 0x08001000, []byte{0xff, 0xd0, 0xff, 0xd0}, "start")
	for arg, at := range map[string]uint64{
		path:                       0x08001002,
		path + "@0x40000000":       0x40000002,
		path + "@0x4000_0000":      0x40000002,
		path + "@1073741824":       0x40000002,
		path + "@+0x40000000":      0x48001002,
		path + "@0x08001000":       0x08001002,
		path + "@0x5555_5555_4000": 0,
	} {
		spec, err := ParseFileSpec(arg)
		if err != nil {
			t.Errorf("%s: %v", arg, err)
			continue
		}
		if at == 0 {
			if spec.Addr != 0x5555_5555_4000 {
				t.Errorf("%s: address %#x", arg, spec.Addr)
			}
			continue
		}
		r := configured(t, Config{Files: []FileSpec{spec}})
		if l := r.at(at); len(l.Frames) != 1 || l.Frames[0].Func != "start" || l.Own != 0x08001002 {
			t.Errorf("%s: %#x is %+v, want start", arg, at, l)
		}
	}
	for arg, want := range map[string]string{
		"app@":                    `"", expected PATH@0xADDR`,
		"app@0x":                  "expected PATH@0xADDR",
		"app@0x5555zz":            `"0x5555zz", expected PATH@0xADDR`,
		"app@0x1_":                "expected PATH@0xADDR",
		"app@0x1ffffffffffffffff": "does not fit 64 bits",
		"app@-1":                  "expected PATH@0xADDR",
		"@0x1000":                 "expected PATH@0xADDR",
	} {
		if spec, err := ParseFileSpec(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want an error with %q", arg, spec, err, want)
		}
	}
}

// Debug information and code are brought together wherever each is.
func TestDebugFilePairs(t *testing.T) {
	objcopy := tool(t, "objcopy")
	for _, id := range []string{"--build-id=sha1", "--build-id=none"} {
		whole := buildC(t, strings.Fields("gcc -g -O2 -Wl,"+id), "prog.c", "other.c")
		want := open(t, whole)
		dir := t.TempDir()
		stripped, debug := filepath.Join(dir, "app"), filepath.Join(dir, "dbg", "app.debug")
		os.Mkdir(filepath.Dir(debug), 0o755)
		run(t, dir, objcopy, "--only-keep-debug", whole, debug)
		run(t, dir, objcopy, "--strip-all", whole, stripped) // and no link
		check := func(name string, r *Process) {
			t.Helper()
			files := r.Files()
			if len(files) != 1 {
				t.Errorf("%s %s: %d files, want them paired", id, name, len(files))
				return
			}
			got := files[0]
			if got.DebugPath() != debug || !got.CanTellCalls() || got.calls().n < 20 {
				t.Errorf("%s %s: debug information from %s, %d calls: %s", id, name, got.DebugPath(), got.calls().n, got.Why())
			}
			for _, pc := range textAddrs(want, 3) {
				a, _ := want.Lookup(nil, pc)
				if b, err := got.Lookup(nil, pc); err != nil || len(a) != len(b) || len(a) > 0 && a[0] != b[0] {
					t.Fatalf("%s %s: %#x: %v, %v, want %v", id, name, pc, b, err, a)
				}
			}
		}
		check("--debug-dir dbg", configured(t, Config{Files: []FileSpec{{Path: stripped}}, DebugDirs: []string{filepath.Join(dir, "dbg")}}))
		check("-e app -e app.debug", process(t, stripped, debug))
		check("-e app.debug -e app", process(t, debug, stripped))
		// Alone, each says what was looked for.
		r := process(t, stripped)
		if f := r.Files()[0]; f.debug != nil || !strings.Contains(f.Why(), "looked for app.debug in "+dir+", "+filepath.Join(dir, ".debug")) {
			t.Errorf("%s: the program alone says %q", id, f.Why())
		}
		r = process(t, debug)
		notes := strings.Join(allNotes(r), "\n")
		if !strings.Contains(notes, "only debug information") {
			t.Errorf("%s: the debug file alone says %q", id, notes)
		}
		at := symbolAddr(t, want, "sum") + 4
		if frames, err := r.Files()[0].Lookup(nil, at); err != nil || len(frames) == 0 || frames[0].Line == 0 {
			t.Errorf("%s: the debug file alone: %v, %v", id, frames, err)
		}
		debug = copyFile(t, debug, dir, "app.debug")
		check("app.debug beside app", process(t, stripped))
	}
}

// A file that becomes shorter while it is used is an error, not the end.
func TestFileBecomesShorter(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("files are not mapped, or their pages stay, on " + runtime.GOOS)
	}
	whole := buildC(t, strings.Fields("gcc -g -O2"), "prog.c", "other.c")
	path := copyFile(t, whole, t.TempDir(), "app")
	r := configured(t, Config{Files: []FileSpec{{Path: path, Load: LoadBias}}})
	f := r.Files()[0]
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	l := r.at(f.text[0].addr + 0x40)
	f.calls()
	f.Functions()
	f.FollowsCall(f.text[0].addr + 8)
	if l.Missing == "" && len(l.Frames) == 0 || !strings.Contains(f.Why(), "became shorter") {
		t.Errorf("%+v, and it says %q", l, f.Why())
	}
}
