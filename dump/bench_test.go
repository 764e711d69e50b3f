package dump_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// benchLogs are logs of some 16 MB: the file that LWSBT_BENCH_LOG names (it may be
// compressed) over and over, or synthetic ones.
func benchLogs(b *testing.B) map[string][]byte {
	logs := map[string][]byte{}
	if path := os.Getenv("LWSBT_BENCH_LOG"); path != "" {
		in, err := dump.Open(path, nil)
		if err != nil {
			b.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			b.Fatal(err)
		}
		logs["file"] = data
	} else {
		logs["plain"] = madeUp("", 5, 14)
		logs["timestamped"] = madeUp("[2026/01/31 12:00:01:2345] N: ", 5, 14)
		logs["sparse"] = bytes.Repeat([]byte(strings.Repeat("[   12.345678] usb 1-1: a line of another kind\n", 20)+readme+"\n"), 1000)
	}
	for name, data := range logs {
		logs[name] = bytes.Repeat(data, max(1, (16<<20)/len(data)))
	}
	return logs
}

// madeUp is a log of stacks that share their callers, as those of real programs.
func madeUp(prefix string, minDepth, maxDepth int) []byte {
	rnd := rand.New(rand.NewPCG(3, 4))
	pool := make([]uint64, 400)
	for i := range pool {
		pool[i] = 0x7f2bac000000 + rnd.Uint64N(1<<22)
		if rnd.IntN(4) == 0 {
			pool[i] = 0x55d412345678 + rnd.Uint64N(1<<20)
		}
	}
	var out []byte
	for range 20000 {
		s := codec.Stack{Size: rnd.Uint64N(1 << rnd.IntN(16))}
		for range minDepth + rnd.IntN(maxDepth-minDepth) {
			s.PCs = append(s.PCs, pool[rnd.IntN(len(pool))])
		}
		blob, err := codec.AppendBlob(nil, &s, codec.MachineWrap64, codec.SearchLws)
		if err != nil {
			panic(err)
		}
		out = append(codec.AppendLine(append(out, prefix...), blob), '\n')
	}
	return out
}

// BenchmarkScan finds and decodes every record of a log in memory.
func BenchmarkScan(b *testing.B) {
	for name, log := range benchLogs(b) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			sc := dump.NewScanner(nil, "")
			var src bytes.Reader
			cpu := cpuTime(false)
			for b.Loop() {
				src.Reset(log)
				sc.Reset(&src, "log")
				for sc.Next() {
				}
			}
			reportCPU(b, len(log), cpuTime(false)-cpu)
			if sc.Tally().Read == 0 || sc.Tally().Unreadable != 0 {
				b.Fatalf("tally %+v", sc.Tally())
			}
		})
	}
}

// BenchmarkGrep counts the lead-ins of the same logs by grep, from a file, its start
// included: what finding records alone costs elsewhere.
func BenchmarkGrep(b *testing.B) {
	cmdtest.Need(b, "grep")
	for name, log := range benchLogs(b) {
		b.Run(name, func(b *testing.B) {
			path := b.TempDir() + "/log"
			if err := os.WriteFile(path, log, 0o600); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(log)))
			cpu := cpuTime(true)
			defer func() { reportCPU(b, len(log), cpuTime(true)-cpu) }()
			for b.Loop() {
				out, err := exec.Command("grep", "-c", "~m#", path).Output()
				if n, _ := strconv.Atoi(strings.TrimSpace(string(out))); err != nil || n == 0 {
					b.Fatalf("grep: %q, %v", out, err)
				}
			}
		})
	}
}

// reportCPU says how much log is done in a second of a processor's time. It is what
// counts on a machine that has other things to do.
func reportCPU(b *testing.B, bytes int, cpu time.Duration) {
	if cpu > 0 {
		b.ReportMetric(float64(bytes)*float64(b.N)/1e6/cpu.Seconds(), "MB/cpu-s")
	}
}

// TestNoAllocation: records, line ends and text between them cost no allocation,
// however many they are.
func TestNoAllocation(t *testing.T) {
	log := madeUp("[2026/01/31 12:00:01:2345] N: ", 5, 14)
	log = append(log, "~b#size: 7520, 0x406651 0x406852\n"...)
	sc := dump.NewScanner(nil, "")
	var src bytes.Reader
	records := 0
	allocs := testing.AllocsPerRun(3, func() {
		src.Reset(log)
		sc.Reset(&src, "log")
		for records = 0; sc.Next(); records++ {
		}
	})
	if records != 20001 || sc.Tally().Unreadable != 0 {
		t.Fatalf("%d records, tally %+v", records, sc.Tally())
	}
	if allocs != 0 {
		t.Errorf("%v allocations for %d records", allocs, records)
	}
}
