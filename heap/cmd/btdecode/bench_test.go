//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// BenchmarkText decodes a log of real records: bytes of log per second, and per second
// of a processor. -cpu 1,2 sets how many processors it may use.
func BenchmarkText(b *testing.B) {
	for _, name := range []string{"git00", "perl", "i386sql"} {
		log := capture(b, name, 32<<20)
		path := filepath.Join(b.TempDir(), "log")
		if err := os.WriteFile(path, log, 0o600); err != nil {
			b.Fatal(err)
		}
		for _, args := range [][]string{nil, {"--passthrough"}, {"--format=jsonl"}, {"--maps", capturePath(name + ".maps")}} {
			b.Run(strings.TrimSpace(name+" "+strings.TrimPrefix(strings.Join(args, "="), "--")), func(b *testing.B) {
				b.SetBytes(int64(len(log)))
				b.ReportAllocs()
				before := cpuSeconds(b)
				for b.Loop() {
					if code := run(append(args, "-q", path), nil, io.Discard, io.Discard); code != 0 {
						b.Fatal("exit code", code)
					}
				}
				b.ReportMetric(float64(b.N*len(log))/1e6/(cpuSeconds(b)-before), "MB/cpu-s")
			})
		}
	}
}

// cpuSeconds is what this process has used of its processors: unlike the time on
// the wall, it does not depend on what else the machine does.
func cpuSeconds(b *testing.B) float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return seconds(r.Utime) + seconds(r.Stime)
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// capture is a capture repeated until it has size bytes.
func capture(b *testing.B, name string, size int) []byte {
	b.Helper()
	f, err := os.Open(capturePath(name + ".log.gz"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	one, err := io.ReadAll(z)
	if err != nil || len(one) == 0 {
		b.Fatal("empty capture", err)
	}
	return bytes.Repeat(one, size/len(one)+1)
}

// BenchmarkBeside resolves 10,000 addresses of a large program, with functions,
// lines and inlined calls, as GNU addr2line and llvm-symbolizer do: seconds and
// peak memory of each process. The program is the Go compiler, built for this, or the one
// that $LWSBT_BENCH_ELF names.
func BenchmarkBeside(b *testing.B) {
	dir := b.TempDir()
	build := func(out, experiment string, args ...string) string {
		cmd := exec.Command("go", append([]string{"build", "-o", out}, args...)...)
		cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0", "GOEXPERIMENT="+experiment)
		if text, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", cmd.Args, err, text)
		}
		return out
	}
	// addr2line 2.40 reads no lines from the DWARF 5 that Go writes.
	big := os.Getenv("LWSBT_BENCH_ELF")
	if big == "" {
		big = build(filepath.Join(dir, "big"), "nodwarf5", "-ldflags=-compressdwarf=false", "cmd/compile")
	}
	ours := build(filepath.Join(dir, "btdecode"), "", ".")
	e, err := elf.Open(big)
	if err != nil {
		b.Fatal(err)
	}
	text := e.Section(".text")
	e.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	var plain, records strings.Builder
	for range 10_000 {
		pc := text.Addr + rng.Uint64N(text.Size)
		fmt.Fprintf(&plain, "%#x\n", pc)
		fmt.Fprintf(&records, "~b#size: 1, %#x\n", pc)
	}
	for _, c := range []struct {
		name, in string
		args     []string
	}{
		{"btdecode", records.String(), []string{ours, "-q", "-F", "jsonl", "-e", big}},
		{"llvm-symbolizer", plain.String(), []string{"llvm-symbolizer", "--output-style=GNU", "--no-demangle", "-a", "-f", "-i", "-e", big}},
		{"addr2line", plain.String(), []string{"addr2line", "-a", "-f", "-i", "-e", big}},
	} {
		b.Run(c.name, func(b *testing.B) {
			cmdtest.Need(b, c.args[0])
			var peak int64
			var cpu float64
			for b.Loop() {
				cmd := exec.Command(c.args[0], c.args[1:]...)
				var out bytes.Buffer
				cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.in), &out, os.Stderr
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				if n := strings.Count(out.String(), "0x"); n < 10_000 {
					b.Fatalf("%d answers", n)
				}
				used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
				peak = max(peak, int64(used.Maxrss))
				cpu += seconds(used.Utime) + seconds(used.Stime)
			}
			b.ReportMetric(cpu/float64(b.N), "cpu-s")
			b.ReportMetric(float64(peak)/1024, "peak-MiB")
		})
	}
}
