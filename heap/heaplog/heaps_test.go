package heaplog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
)

// Lines of ~h#heap belong to the heap with their name. Those in a dump without a time have the time of
// the dump, a boot has no reports of the boot before, and a dump at the exit is not in a series.
func TestHeapsByName(t *testing.T) {
	const record = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV\n"
	const log = "~h#boot\n~h#heap name=a free=9\n" +
		"~h#begin 0 t=5000000\n~h#heap free=7 size=10 largest=3 min=0\n~h#heap name=a free=8\n~h#heap name=b%20c min=1\n" + record + "~h#end 0\n" +
		"~h#begin 1 t=6000000\n~h#heap t=6500000 name=a free=6\n" + record + "~h#end 1\n~h#heap name=a free=5\n" +
		"~h#begin 2 t=7000000 why=exit\n~h#heap name=a free=99\n" + record + "~h#end 2\n" +
		"~h#boot\n~h#begin 0 t=1000000\n~h#heap name=a free=4\n" + record + "~h#end 0\n"
	dumps, r := pathDumps(t, log)
	a := func(free uint64) profile.Heap { return profile.Heap{Name: "a", Free: known(free)} }
	plain := profile.Heap{Size: known(10), Free: known(7), Largest: known(3), Min: known(0)}
	b := profile.Heap{Name: "b c", Min: known(1)}
	for i, want := range [][]profile.Heap{{a(8), plain, b}, {a(6), plain, b}, {a(99), plain, b}, {a(4)}} {
		if !slices.Equal(dumps[i].Heaps, want) {
			t.Errorf("dump %d: heaps %+v, want %+v", i+1, dumps[i].Heaps, want)
		}
	}
	var got strings.Builder
	for _, s := range r.Heaps() {
		fmt.Fprintf(&got, "%q %d:", s.Name, s.Total)
		for _, h := range s.Reports {
			fmt.Fprintf(&got, " %d/%d@%v/%t", h.Boot, h.Free.Bytes, h.Time, h.Timed)
		}
		got.WriteString("\n")
	}
	const want = "\"a\" 5: 1/9@0s/false 1/8@5s/true 1/6@6.5s/true 1/5@0s/false 2/4@1s/true\n\"\" 1: 1/7@5s/true\n\"b c\" 1: 1/0@5s/true\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

// A device that does not know its largest free block writes 0: memory that is free is in some block.
func TestLargestUnknown(t *testing.T) {
	for line, want := range map[string]profile.Heap{
		"free=7 largest=0": {Free: known(7)},
		"free=0 largest=0": {Free: known(0), Largest: known(0)},
		"largest=0":        {},
	} {
		_, r := pathDumps(t, "~h#boot\n~h#heap "+line+"\n~h#begin 0\n~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV\n~h#end 0\n")
		if got := r.Heaps()[0].Reports[0].Heap; got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

// A report in several lines, which may end with any of them, has the time of its own lines.
func TestTimesOfReports(t *testing.T) {
	for _, lines := range [][]string{
		{"Free heap: 41000"},
		{"Free heap: 41000", "Minimum free heap: 30000"},
		{"Free heap: 41000", "Minimum free heap: 30000", "wifi: beacon"},
		{"Free heap: 41000", "wifi: a", "wifi: b", "Largest free block: 9000", "wifi: c", "wifi: d", "wifi: e", "wifi: f", "wifi: g"},
	} {
		var log strings.Builder
		for minute := 1; minute <= 6; minute++ {
			for i, line := range lines {
				fmt.Fprintf(&log, "I (%d) app: %s\n", minute*60000+10*i, line)
			}
		}
		_, r := pathDumps(t, log.String())
		heaps := r.Heaps()
		if len(heaps) != 1 || len(heaps[0].Reports) != 6 {
			t.Fatalf("%q: %+v, want 6 reports of a heap", lines, heaps)
		}
		for i, h := range heaps[0].Reports {
			first := int64(i*len(lines) + 1)
			at, _ := h.Uptime()
			if at = at.Round(time.Second); at != time.Duration(i+1)*time.Minute || h.Line < first || h.Line >= first+int64(len(lines)) {
				t.Errorf("%q: report %d in line %d at %v, want line %d at %d min", lines, i+1, h.Line, at, first, i+1)
			}
		}
	}
}

// Reports of other lines and those of ~h#heap are series of their own: they may measure something else.
func TestHeapsOfTwoSources(t *testing.T) {
	const record = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV\n"
	log := "Free heap: 300000\nFree heap: 299000\n~h#boot\n"
	for d := range 3 {
		log += fmt.Sprintf("~h#begin %d t=%d\n~h#heap free=%d\n%s~h#end %d\n", d, int64(d+1)*3600_000_000, 9000-d, record, d)
	}
	for _, c := range []struct{ name, log, want string }{
		{"before and behind", log + "Free heap: 50000\nFree PSRAM: 70000\nFree heap: 49000\n", `"": 9000 8999 8998, "heap": 300000 299000 50000 49000, "PSRAM": 70000`},
		{"one ~h#heap", "~h#boot\nFree heap: 50000\n~h#begin 0\n~h#heap free=9\n" + record + "~h#end 0\nFree heap: 40000\n", `"": 9, "Free heap": 50000 40000`},
		{"two points", strings.Repeat("Free memory after receiving: 22000 bytes\nFree memory after publishing: 17000 bytes\n", 3), `"receiving": 22000 22000 22000, "publishing": 17000 17000 17000`},
		{"two devices", strings.Repeat("kitchen: free heap 22000\ngarage: free heap 17000\n", 3), `"kitchen": 22000 22000 22000, "garage": 17000 17000 17000`},
	} {
		_, r := pathDumps(t, c.log)
		var got []string
		for _, s := range r.Heaps() {
			text := fmt.Sprintf("%q:", s.Name)
			for _, h := range s.Reports {
				text += fmt.Sprintf(" %d", h.Free.Bytes)
			}
			got = append(got, text)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: got %s, want %s", c.name, strings.Join(got, ", "), c.want)
		}
	}
}

// A banner begins a boot in a log of reports only, too. Reports between a banner and its ~h#boot are of
// one boot.
func TestBootsOfReports(t *testing.T) {
	const record = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV\n"
	for _, c := range []struct{ log, want string }{
		{"", "1 1 2 2 3 3"},
		{"~h#boot\n~h#begin 0\n" + record + "~h#end 0\n", "1 1 2 2 3 3"},
	} {
		for _, banner := range []string{"12:00:00.000 -> rst:0xc (SW_CPU_RESET),boot:0x13", "*** Booting Zephyr OS build v3.7.0 ***", " ets Jan  8 2013,rst cause:1, boot mode:(3,6)", "MPY: soft reboot", "rst:0x1 (POWERON_RESET)\n\n*** Booting Zephyr OS"} {
			_, r := pathDumps(t, strings.Repeat(banner+"\nFree heap: 41000\nFree heap: 40000\n"+c.log, 3))
			var got []string
			for _, s := range r.Heaps() {
				for _, h := range s.Reports {
					got = append(got, fmt.Sprint(h.Boot))
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, %q: boots %v, want %s", banner, c.log, got, c.want)
			}
		}
	}
}

// A dump has the first report of each heap from its beginning to that of the next dump.
func TestHeapsOf(t *testing.T) {
	const record = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV\n"
	log := "Free heap: 90000\nFree PSRAM: 900000\n"
	for d := range 4 {
		log += fmt.Sprintf("~h#begin %d\n%s~h#end %d\n", d, record, d)
		for k := range 2 {
			log += fmt.Sprintf("Free heap: %d\nFree PSRAM: %d\n", 80000-1000*d-k, 800000-1000*d-k)
		}
	}
	log += "~h#begin 4\n~h#heap free=5 name=main\n" + record + "~h#end 4\n"
	dumps, r := pathDumps(t, log)
	for i, d := range dumps {
		var got []string
		for _, h := range r.HeapsOf(d) {
			got = append(got, fmt.Sprint(h.Name, " ", h.Free.Bytes))
		}
		want := fmt.Sprintf("heap %d, PSRAM %d", 80000-1000*i, 800000-1000*i)
		if i == 4 {
			want = "main 5"
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("dump %d: %q, want %q", i, got, want)
		}
	}
}

// Updates yields each report when it is read, and the dumps as Dumps does.
func TestUpdates(t *testing.T) {
	const record = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV\n"
	const log = "~h#heap free=9\n~h#begin 0\n~h#heap free=8\n" + record + "~h#end 0\n~h#heap free=7\n~h#heap name=b free=6\n~h#begin 1\n" + record + "~h#end 1\n"
	r, err := heaplog.Open(t.Context(), heaplog.Stream(strings.NewReader(log), "fw.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	for u, err := range r.Updates() {
		switch {
		case err != nil:
			t.Fatal(err)
		case u.Report != nil:
			got = append(got, fmt.Sprintf("%s%d:%t", u.Report.Name, u.Report.Free.Bytes, u.InDump))
		default:
			got = append(got, fmt.Sprintf("%s, %d blocks", u.Dump.Name, u.Dump.Total.Count))
		}
	}
	if want := []string{"9:false", "8:true", "7:false", "b6:false", "dump 1, 1 blocks", "dump 2, 1 blocks"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
