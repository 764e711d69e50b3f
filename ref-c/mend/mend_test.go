package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/conformance"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// touched lists the files of libwebsockets that the steps change.
var touched = []string{backtrace, header, alloc, decode64, toolMain, readme, "CMakeLists.txt", "cmake/lws_config.h.in"}

// source copies the files that are changed from the checkout LWS_SOURCE.
func source(t *testing.T) (dir string) {
	t.Helper()
	from := os.Getenv("LWS_SOURCE")
	if from == "" {
		t.Skip("LWS_SOURCE is not set: no checkout of libwebsockets to mend")
	}
	dir = t.TempDir()
	for _, name := range touched {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name, string(text))
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// all returns the files below dir.
func all(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// All steps, and each up to any, apply to the checkout; a second time nothing is changed.
func TestAppliesOnce(t *testing.T) {
	for _, s := range steps {
		dir := source(t)
		var out bytes.Buffer
		if code := run([]string{"-upto", itoa(s.n), dir}, &out, &out); code != 0 {
			t.Fatalf("up to step %d: exit code %d: %s", s.n, code, out.String())
		}
		if s.n != steps[len(steps)-1].n {
			continue
		}
		mended := all(t, dir)
		text := mended[filepath.Join(dir, backtrace)]
		for _, fn := range []string{"03-stream.c", "02-destream.c", "03-parse.c", "02-compress.c", "02-gen.c", "02-backtrace.c"} {
			ourText, err := ours.ReadFile("fn/" + fn)
			if err != nil || strings.Count(text, strings.TrimSpace(string(ourText))) != 1 {
				t.Errorf("%s is not in %s once (%v)", fn, backtrace, err)
			}
		}
		if code := run([]string{dir}, &out, &out); code != 1 || !maps.Equal(all(t, dir), mended) {
			t.Errorf("a second time: exit code %d, or files changed", code)
		}
	}
}

func itoa(n int) string {
	return strings.TrimSpace(strings.Join([]string{string(rune('0' + n/10)), string(rune('0' + n%10))}, ""))
}

// Where a function is missing, nothing is written.
func TestStopsHavingChangedNothing(t *testing.T) {
	dir := t.TempDir()
	for _, name := range touched {
		write(t, dir, name, "int\nlws_backtrace_compression_destream(int a,\n\tint b)\n{\n\treturn 0;\n}\n")
	}
	before := all(t, dir)
	var out bytes.Buffer
	if code := run([]string{dir}, &out, &out); code != 1 || !maps.Equal(all(t, dir), before) ||
		!strings.Contains(out.String(), "step 11: "+backtrace+": lws_alloc_metadata_parse: found 0 times; nothing was changed") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

// A function is replaced from its type to its last bracket, on request with the comments before it.
func TestFunction(t *testing.T) {
	const (
		before  = "int a;\n\n"
		comment = "/* one */\n\n/*\n * two\n */\n\n"
		after   = "\nint\nother(void)\n{\n}\n"
	)
	const function = "static int\nlws_alloc_metadata_parse(char *p,\n\t\t\t unsigned n)\n{\n\tif (n) {\n\t\treturn 1;\n\t}\n\treturn 0;\n}\n"
	for _, with := range []bool{false, true} {
		tr := &tree{files: map[string]string{"x.c": before + comment + function + after}}
		tr.function("x.c", "lws_alloc_metadata_parse", "01-init.c", with)
		want := before + comment + tr.read("fn/01-init.c") + after
		if with {
			want = before + tr.read("fn/01-init.c") + after
		}
		if tr.err != nil || tr.files["x.c"] != want {
			t.Errorf("comments %v: %v\n%s", with, tr.err, tr.files["x.c"])
		}
	}
}

// The steps rise, have a class and one test or more each, and spec/lws.md names each in its column "mended by".
func TestSteps(t *testing.T) {
	spec, err := os.ReadFile("../../spec/lws.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := ours.ReadFile("test/main.c")
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range steps {
		if i > 0 && (s.n <= steps[i-1].n || !strings.Contains("ABC", s.class)) {
			t.Errorf("step %d of class %q", s.n, s.class)
		}
		tested := strings.Contains(string(tests), "\n//@"+itoa(s.n)+" ") || slices.Contains([]int{1, 24, 26, 31}, s.n) // basic, tool.sh, all
		if !tested && s.n != 21 {
			t.Errorf("step %d has no test", s.n)
		}
		if s.n > 1 && s.n != 31 && !regexp.MustCompile(`\| .*\b`+itoa(s.n)+`\b`).Match(spec) {
			t.Errorf("spec/lws.md does not name step %d", s.n)
		}
	}
}

// A mended libwebsockets, installed in LWS_MENDED, passes all vectors but those of known-failures.txt.
func TestMendedConforms(t *testing.T) {
	prefix := os.Getenv("LWS_MENDED")
	if prefix == "" {
		t.Skip("LWS_MENDED is not set: no mended libwebsockets is installed")
	}
	dir := t.TempDir()
	if out, err := exec.Command("make", "-C", "..", "OUT="+dir, "LWS_PREFIX="+prefix).CombinedOutput(); err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	set, err := conformance.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("known-failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	known, err := conformance.ParseKnown("known-failures.txt", text)
	if err != nil {
		t.Fatal(err)
	}
	report, err := conformance.Run(t.Context(), set, conformance.Process([]string{filepath.Join(dir, "btref"), "serve"}, time.Minute),
		conformance.Options{Seed: 1, Known: known})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Status == conformance.Fail {
			t.Errorf("%s %s: want %s, got %s", r.ID, r.Op, r.Failure.Want, r.Failure.Got)
		}
	}
	for _, s := range report.Stale {
		t.Error(s)
	}
	t.Logf("%+v", report.Counts)
	if report.Counts.Pass < 500 {
		t.Errorf("%d passed, want at least 500", report.Counts.Pass)
	}
}

// The mended libwebsockets passes our tests in its ctest, whatever compiler builds it, and sanitizers find nothing.
func TestBuilds(t *testing.T) {
	from := os.Getenv("LWS_SOURCE")
	if from == "" || !cmdtest.All() {
		t.Skip("LWS_SOURCE or LWSBT_FULL=all is not set: libwebsockets is not built")
	}
	cmdtest.Need(t, "cmake")
	cmdtest.Need(t, "clang")
	dir := filepath.Join(t.TempDir(), "lws")
	command(t, "cp", "-a", from, dir)
	var out bytes.Buffer
	if code := run([]string{dir}, &out, &out); code != 0 {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	for _, b := range []struct{ name, cc, flags string }{
		{"gcc", "gcc", "-O2"},
		{"clang", "clang", "-O2"},
		{"32 bits", "clang", "-m32 -O2"},
		{"sanitizers", "clang", "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined"},
	} {
		t.Run(b.name, func(t *testing.T) {
			build := t.TempDir()
			command(t, "cmake", "-S", dir, "-B", build, "-DCMAKE_C_COMPILER="+b.cc, "-DCMAKE_C_FLAGS="+b.flags, "-DCMAKE_BUILD_TYPE=NONE",
				"-DLWS_WITH_MINIMAL_FILTER_YES=backtrace", "-DLWS_WITH_NETWORK=OFF", "-DLWS_WITH_SSL=OFF", "-DLWS_WITH_SHARED=OFF",
				"-DLWS_WITH_COMPRESSED_BACKTRACES=ON", "-DLWS_WITH_ALLOC_METADATA_LWS=ON", "-DLWS_WITH_MINIMAL_EXAMPLES=ON")
			command(t, "cmake", "--build", build, "-j", "2")
			if out := command(t, "ctest", "--test-dir", build); !strings.Contains(out, "100% tests passed, 0 tests failed out of 23") {
				t.Errorf("%s", out)
			}
		})
	}
}

// command runs a program, and returns what it writes.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}
