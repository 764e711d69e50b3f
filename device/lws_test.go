package device

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/conformance"
)

// lwsFlags returns what to compile and link with, for the real libwebsockets, or
// skips the test. See ref-c/README.md.
func lwsFlags(t *testing.T) []string {
	t.Helper()
	need(t, "gcc", "sh")
	var flags []string
	for _, what := range []string{"check", "cflags", "libs"} {
		out, err := exec.Command("sh", "../ref-c/find-lws.sh", what).Output()
		if err != nil {
			t.Skip("libwebsockets with compressed backtraces is not installed; LWS_PREFIX says where it is")
		}
		flags = append(flags, strings.Fields(string(out))...)
	}
	return flags
}

// Stock lws walks, parses and trims our metadata, and ours walks, parses and trims
// what lws wrote: test/lws.c.
func TestBesideLws(t *testing.T) {
	lws := lwsFlags(t)
	program := filepath.Join(t.TempDir(), "lws")
	args := strings.Fields("-std=gnu99 -O2 -g -fsanitize=undefined -fno-sanitize-recover=all -Iinclude test/lws.c")
	args = append(append(append(args, heapSources[:len(heapSources)-1]...), lws...), "-o", program)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	out, err := exec.Command(program).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "ok: ") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The decoder tool of stock lws reads the low 31 bits of every value of our wrap64
// lines, and all bits of addresses up to 31 bits.
func TestLwsToolReadsWrap64(t *testing.T) {
	tool, err := exec.LookPath("lws-api-test-backtrace")
	if prefix := os.Getenv("LWS_PREFIX"); err != nil && prefix != "" {
		tool, err = exec.LookPath(filepath.Join(prefix, "bin", "lws-api-test-backtrace"))
	}
	if err != nil {
		t.Skip("lws-api-test-backtrace, the decoder tool of libwebsockets, is not in PATH or LWS_PREFIX/bin")
	}
	ctx := context.Background()
	ours, err := conformance.Process([]string{builds[0].make(t, "testee")}, time.Minute)(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	lws, err := conformance.Process([]string{"python3", "../conformance/example/lwstool.py", tool, "--stdin", "/dev/stdin"}, time.Minute)(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	var in, lines []conformance.Request
	for i := range 40 {
		s := codec.Stack{Size: r.Uint64N(1 << 20)}
		for range 1 + r.IntN(30) {
			s.PCs = append(s.PCs, 0x55d4_0000_0000*uint64(i%2)+0x1234_0000+r.Uint64N(1<<20))
		}
		in = append(in, conformance.Request{Op: "encode", Machine: codec.MachineWrap64,
			Search: codec.Search(i / 2 % 2), In: &conformance.Value{Size: s.Size, PCs: s.PCs}})
	}
	blobs, err := ours.Ask(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		if b.Outcome != conformance.OK {
			t.Fatalf("encode: %+v", b)
		}
		lines = append(lines, conformance.Request{Op: "decode", Data: b.Data, Word: 64})
	}
	got, err := lws.Ask(lines)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range got {
		want := in[i].In
		if a.Outcome != conformance.OK || a.Value.Size != want.Size || len(a.Value.PCs) != len(want.PCs) {
			t.Fatalf("stack %d: %+v, want %v", i, a, want)
		}
		for n, pc := range a.Value.PCs {
			mask := uint64(1<<31 - 1)
			if i%2 == 0 {
				mask = 1<<64 - 1
			}
			if (pc^want.PCs[n])&mask != 0 {
				t.Errorf("stack %d, frame %d: %#x, want %#x", i, n, pc, want.PCs[n])
			}
		}
	}
}
