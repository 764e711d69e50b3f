package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile/growth"
)

// states returns what live shows after each dump of a log, and each report outside of dumps.
func states(t *testing.T, log string, keep int) (list []*state) {
	t.Helper()
	r, err := heaplog.Open(t.Context(), heaplog.Stream(strings.NewReader(log), "fw.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l := &live{leaks: leaks{session: &session{}}}
	l.limit, err = parseRate("100/h")
	if err != nil {
		t.Fatal(err)
	}
	last := recent{keep: keep}
	for u, err := range r.Updates() {
		if err != nil {
			t.Fatal(err)
		}
		if !last.add(u) {
			continue
		}
		st, err := l.judge(last.clone())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, st)
	}
	return list
}

// shown returns what the terminal shows of a state.
func shown(t *testing.T, st *state, name string, width, height int) string {
	t.Helper()
	l := &live{leaks: leaks{session: &session{}}}
	text, err := l.screen(st, name, width, height)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) >= height {
		t.Errorf("%d lines on a terminal of %d", len(lines), height)
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > width {
			t.Errorf("%q is wider than %d", line, width)
		}
	}
	return withoutPercents(text)
}

// shows checks that a screen has texts in this order.
func shows(t *testing.T, screen, what string, texts ...string) {
	t.Helper()
	rest := screen
	for _, text := range texts {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			t.Errorf("%s: no %q, or not in order, in\n%s", what, text, screen)
			return
		}
		rest = after
	}
}

func TestScreen(t *testing.T) {
	list := states(t, device(t, 12, 0), 240)
	if len(list) != 12 {
		t.Fatalf("%d dumps", len(list))
	}
	none := &state{found: &growth.Leaks{}}
	shows(t, shown(t, none, "fw.log", 100, 24), "at first", "btheap live: fw.log\n", "no dump yet")
	shows(t, shown(t, list[0], "fw.log", 100, 24), "one dump", "dump 1, 1 h: ", "1 dump, expected three or more whole ones")
	shows(t, shown(t, list[11], "fw.log", 100, 40), "the leak first", "dump 12, 12 h: ", "1 leak", "\nleak, N %  +120 bytes per hour (118 to 122)\n",
		"    0x401200\n    0x401500\n    0x401900\n", "the largest call paths", "0x401110")
	shows(t, shown(t, list[11], "fw.log", 100, 12), "cut", "leak, N %  +120 bytes", "(more than the terminal shows")
}

// At any size, the screen fits the terminal.
func TestScreenSizes(t *testing.T) {
	st := states(t, device(t, 12, 0), 240)[11]
	for _, size := range [][2]int{{20, 7}, {39, 10}, {80, 24}, {200, 60}} {
		shows(t, shown(t, st, "fw.log", size[0], size[1]), fmt.Sprint(size), "btheap live:", "dump 12")
	}
}

// The alarm, the deadline and the fragmentation are on the screen, and no flag is named.
func TestScreenCutsNothing(t *testing.T) {
	log := device(t, 12, 0)
	for d := range 12 { // 120 bytes less are free in each hour; the largest block shrinks faster
		end := fmt.Sprintf("~h#end %d\n", d)
		log = strings.Replace(log, end, fmt.Sprintf("~h#heap size=65536 free=%d largest=%d min=3000 name=internal\n", 20_000-120*d, 18_000-1200*d)+end, 1)
	}
	name := "/dev/serial/by-id/usb-Silicon_Labs_CP2102_USB_to_UART_Bridge_Controller_0001-if00-port0"
	screen := shown(t, states(t, log, 240)[11], name, 80, 60)
	text := strings.Join(strings.Fields(screen), " ")
	for _, want := range []string{"free 18,680 bytes in heap internal: exhausted in 6.49 days", "used 45,536 → 46,856, free 20,000 → 18,680 of 65,536", "largest 18,000 → 4,800 (90 % → 26 % of free): fragmented, and ever more",
		"Controller_0001-if00-port0", "0x401200"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
	untimed := states(t, regexp.MustCompile(` t=\d+`).ReplaceAllString(log, ""), 240)[11]
	if screen := shown(t, untimed, name, 200, 60); !strings.Contains(screen, "ALARM: none at 100/h: the dumps have no times: give SIZE/dump") || regexp.MustCompile("--[a-z]").MatchString(screen) {
		t.Errorf("without times:\n%s", screen)
	}
}

// The last dumps are kept, and those before them forgotten.
func TestRecent(t *testing.T) {
	list := states(t, device(t, 12, 0), 5)
	last := list[11].dumps
	if len(last) != 5 || last[0].Name != "dump 8" || last[4].Name != "dump 12" {
		t.Errorf("%d dumps, the first is %s", len(last), last[0].Name)
	}
}

// A log of a hostile device cannot control the terminal.
func TestScreenEscapes(t *testing.T) {
	screen := shown(t, states(t, device(t, 3, 0), 240)[2], "a\x1b[2Jb\u202ec", 80, 24)
	if regexp.MustCompile("[\x00-\x09\x0b-\x1f\u202e]").MatchString(screen) || !strings.Contains(screen, `a\x1b[2Jb`) {
		t.Errorf("%q", screen)
	}
}

func TestLivePlain(t *testing.T) {
	out, errs, code := command(device(t, 30, 0), "live", "--fail-over", "100/h", "--heap", "20K")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 30 || code != 1 || !strings.Contains(errs, "leaks +120 bytes per hour, more than 100/h (--fail-over)") {
		t.Fatalf("%d lines, exit code %d, %q\n%s", len(lines), code, errs, out)
	}
	// 200 blocks of 20 to 49 bytes are 6,800, the cache has 20 blocks of 64 bytes, and 10 blocks of 40 leak.
	if want := "dump 1, 1 h: 8,480 bytes in 230 blocks; 1 dump, expected three or more whole ones"; lines[0] != want {
		t.Errorf("%q, want %q", lines[0], want)
	}
	want := "1 leak, +120 bytes per hour (118 to 122), 0x401200; exhausted in "
	if !strings.Contains(lines[11], want) || !strings.HasSuffix(lines[29], "; ALARM: leaks +120 bytes per hour, more than 100/h") {
		t.Errorf("%q, want %q at the end", lines[11], want)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"a", "b"}, "2 files, expected one log"},
		{[]string{"--ask", "x"}, "--ask needs --serial"},
		{[]string{"none.log"}, "none.log"},
		{[]string{"--fail-over", "1"}, "expected SIZE/UNIT"},
	} {
		if _, errs, code := command("", append([]string{"live"}, c.args...)...); code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit code %d, %q, want %q", c.args, code, errs, c.want)
		}
	}
}
