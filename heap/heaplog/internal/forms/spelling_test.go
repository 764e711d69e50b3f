package forms

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

func group(n int, sep string) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + sep + s[i:]
	}
	return s
}

// TestSpellings: one falling level, spelled in many ways. Tolerance: what the spelling keeps. want 0: refused.
func TestSpellings(t *testing.T) {
	f := func(format string, div float64) func(int) string {
		return func(n int) string {
			if div == 0 {
				return fmt.Sprintf(format, n)
			}
			return fmt.Sprintf(format, float64(n)/div)
		}
	}
	comma := func(g func(int) string) func(int) string {
		return func(n int) string { return strings.Replace(g(n), ".", ",", 1) }
	}
	gr := func(format, sep string) func(int) string {
		return func(n int) string { return fmt.Sprintf(format, group(n, sep)) }
	}
	tests := []struct {
		name  string
		spell func(int) string
		tol   float64
		ok    bool
	}{
		{"plain", f("free heap: %d", 0), 0, true}, {"bytes", f("free heap: %d bytes", 0), 0, true}, {"B", f("free heap: %dB", 0), 0, true},
		{"= ", f("free_heap=%d", 0), 0, true}, {"=,", f("free_heap=%d,", 0), 0, true}, {"dot end", f("Free heap is %d.", 0), 0, true},
		{"camel", f("freeHeapSize: %d", 0), 0, true}, {"json", f(`{"free_heap": %d, "x": 1}`, 0), 0, true}, {"json string", f(`{"free_heap":"%d"}`, 0), 0, true},
		{"arrow", f("free heap -> %d", 0), 0, true}, {"brackets", f("free heap [%d]", 0), 0, true}, {"angle", f("free heap <%d>", 0), 0, true},
		{"behind", f("%d bytes free", 0), 0, true}, {"behind heap", f("heap: %d free", 0), 0, true}, {"of", f("free heap %d of 320000", 0), 0, true},
		{"slash", f("free heap: %d/320000", 0), 0, true}, {"slash behind", f("heap: %d/320000 free", 0), 0, true}, {"padded", f("free heap: %08d", 0), 0, true},
		{"aligned", f("free heap: %10d", 0), 0, true}, {"plus", f("free heap: +%d", 0), 0, true}, {"float", f("free heap: %.1f", 1), 0, true},
		{"comma", gr("free heap: %s", ","), 0, true}, {"comma bytes", gr("free heap: %s bytes", ","), 0, true}, {"point bytes", gr("free heap: %s bytes", "."), 0, true},
		{"point bare", gr("free heap: %s", "."), 0, false}, {"swiss", gr("free heap: %s", "'"), 0, true}, {"swiss typographic", gr("free heap: %s", "’"), 0, true},
		{"space", gr("free heap: %s bytes", " "), 0, true}, {"nbsp", gr("free heap: %s bytes", "\u00a0"), 0, true}, {"narrow nbsp", gr("free heap: %s bytes", "\u202f"), 0, true},
		{"underscore", gr("free heap: %s", "_"), 0, true}, {"indian", func(n int) string { return fmt.Sprintf("free heap: 1,23,%03d", n/100) }, -1, true},
		{"0x", f("free heap: 0x%x", 0), 0, true}, {"0X upper", f("free heap: 0x%X", 0), 0, true}, {"hex bare", f("free: %x heap", 0), 0, true}, {"hex bare 8", f("free heap: %08x", 0), 0, true},
		{"exponent", f("free_heap_bytes %e", 1), 0, true}, {"exponent plain", func(n int) string { return fmt.Sprintf("free_heap_bytes %de2", n/100) }, 0, true},
		{"KB", f("free heap: %.2f KB", 1024), 6, true}, {"kB", f("free heap: %.1fkB", 1024), 60, true}, {"KiB", f("free heap: %.3f KiB", 1024), 2, true}, {"k", f("free heap: %.2fk", 1024), 6, true},
		{"KB comma", comma(f("free heap: %.2f KB", 1024)), 6, true}, {"KB comma 3", comma(f("free heap: %.3f KB", 1024)), 2, false}, {"MB", f("free heap: %.4f MB", 1<<20), 60, true}, {"label kb", f("free heap (KB): %.1f", 1024), 60, true},
		{"label_kb", f("heap_free_kb=%.2f", 1024), 6, true}, {"grouped decimals", gr("free heap: %s.00", ","), 0, true}, {"de decimals", gr("free heap: %s,00", "."), 0, true},
		{"words", f("free heap: %d words", 4), 0, false}, {"pages", f("free pages: %d", 0), 0, false}, {"percent", f("free heap: %.1f%%", 1000), 0, false}, {"percent label", f("free heap percent: %.1f", 1000), 0, false}, {"blocks", f("free heap: %d blocks", 0), 0, false},
		{"rate", f("heap used: %d bytes/s", 0), 0, false}, {"threshold", f("free heap below %d", 0), 0, false}, {"delta", f("heap delta: %d", 0), 0, false}, {"address", f("heap ptr: 0x%x", 0), 0, false},
		{"bare heap", f("heap: %d", 0), 0, false}, {"count", f("free blocks in heap: %d", 0), 0, false}, {"fraction bare", f("free heap: %.2f", 1024), 0, false}, {"request", f("malloc failed, requested %d bytes", 0), 0, false},
		{"slots", f("free slots: %d", 0), 0, false}, {"disk", f("flash free: %d bytes", 0), 0, false}, {"stack", f("stack free: %d bytes", 0), 0, false},
	}
	good, wrong := 0, 0
	for _, c := range tests {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, "2026-03-02 08:%02d:00 %s\n", i, c.spell(90000-100*i))
		}
		res := Read(strings.NewReader(b.String()))
		var lv []*Series
		for _, s := range res.Series {
			if s.Quantity == Free || s.Quantity == Used {
				lv = append(lv, s)
			}
		}
		if !c.ok {
			if len(lv) == 0 {
				good++
				if res.Refusal == "" {
					t.Logf("%s: refused without a reason", c.name)
				}
			} else {
				wrong++
				t.Errorf("%s: read as %v %v", c.name, lv[0].Quantity, lv[0].Values[:1])
			}
			continue
		}
		if len(lv) != 1 {
			t.Errorf("%s: %d series (%s)", c.name, len(lv), res.Refusal)
			continue
		}
		want, last := 86100.0, lv[0].Values[len(lv[0].Values)-1]
		if c.tol < 0 {
			want = 123861
		}
		if d := last - want; len(lv[0].Values) != 40 || d > max(c.tol, 0) || -d > max(c.tol, 0) {
			wrong++
			t.Errorf("%s: last %v of %d", c.name, last, len(lv[0].Values))
			continue
		}
		good++
	}
	t.Logf("%d of %d spellings good, %d wrong", good, len(tests), wrong)
}

func damage(r *rand.Rand, line string, p float64) string {
	if r.Float64() >= p {
		return line
	}
	b := []byte(line)
	switch r.Intn(3) {
	case 0: // characters replaced
		for range 1 + r.Intn(4) {
			b[r.Intn(len(b))] = byte(32 + r.Intn(95))
		}
	case 1: // a piece lost
		i := r.Intn(len(b))
		j := min(len(b), i+1+r.Intn(8))
		b = append(b[:i], b[j:]...)
	case 2: // cut and run into nothing
		b = b[:r.Intn(len(b))]
	}
	return string(b)
}

// TestInterleaved: two to five devices in one log, with damage: all devices named, first and last value near, no foreign value in a series.
func TestInterleaved(t *testing.T) {
	names := []string{"kitchen", "garage", "node-1", "node-2", "a4:cf:12:00:00:01"}
	for _, p := range []float64{0, 0.01, 0.05} {
		tot, bad, extra, ok := 0, 0, 0, 0
		for dev := 2; dev <= 5; dev++ {
			for seed := range 10 {
				r := rand.New(rand.NewSource(int64(seed*10 + dev)))
				var b strings.Builder
				for i := range 200 {
					for d := range dev {
						fmt.Fprintln(&b, damage(r, fmt.Sprintf("2026-03-02 %02d:%02d:%02d %s: free heap: %d largest block %d", 8+i/60, i%60, d*7, names[d], 40000+d*100000-i*(d+1)*10, 20000+d*50000), p))
					}
				}
				res := Read(strings.NewReader(b.String()))
				got := map[string]*Series{}
				for _, s := range res.Series {
					if s.Quantity != Free {
						continue
					}
					if len(s.Values) < 100 {
						extra++
						continue
					}
					got[s.Source] = s
				}
				all := true
				for d := range dev {
					s := got[names[d]]
					if s == nil {
						all = false
						continue
					}
					for k, v := range s.Values {
						tot++
						i := int(s.At[k].Line-1) / dev
						if v != float64(40000+d*100000-i*(d+1)*10) {
							bad++
						}
					}
				}
				if all && len(got) == dev {
					ok++
				}
			}
		}
		// One damaged line in ten has a digit that is another one.
		if ok < 40 || float64(tot) < 28_000*(1-p) || float64(bad) > p*float64(tot)/10 || float64(extra) > 4*p*40 {
			t.Errorf("damage %.0f %%", p*100)
		}
		t.Logf("damage %.0f %%: %d of 40 logs have all devices and no other; %d extra small series; %d of %d values untrue (damaged digits)", p*100, ok, extra, bad, tot)
	}
}
