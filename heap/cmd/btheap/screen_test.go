package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	heaplog "github.com/lwsbt/lwsbt/heap/heaplog"
	"github.com/lwsbt/lwsbt/heap/profile"
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
	var last recent
	for u, err := range r.Updates() {
		if err != nil {
			t.Fatal(err)
		}
		if !last.add(u, keep) {
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

// press sends keys to a screen, of which some have names, and runs the last command.
func press(t *testing.T, m *screen, keys ...string) tea.Msg {
	t.Helper()
	named := map[string]tea.KeyType{"enter": tea.KeyEnter, "esc": tea.KeyEsc, "up": tea.KeyUp, "down": tea.KeyDown, "end": tea.KeyEnd,
		"home": tea.KeyHome, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "backspace": tea.KeyBackspace, "ctrl+c": tea.KeyCtrlC}
	var cmd tea.Cmd
	for _, k := range keys {
		msg := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)}
		if kind, ok := named[k]; ok {
			msg = tea.KeyMsg{Type: kind}
		}
		if _, cmd = m.Update(msg); cmd != nil {
			msg := cmd()
			m.Update(msg)
			if k == keys[len(keys)-1] {
				return msg
			}
		}
	}
	return nil
}

// shows checks what is on the screen: each text, in this order.
func shows(t *testing.T, m *screen, what string, texts ...string) {
	t.Helper()
	view := withoutPercents(m.View())
	rest := view
	for _, s := range texts {
		i := strings.Index(rest, s)
		if i < 0 {
			t.Fatalf("%s: no %q in\n%s", what, s, view)
		}
		rest = rest[i+len(s):]
	}
	lines := strings.Split(view, "\n")
	if len(lines) != m.height {
		t.Fatalf("%s: %d lines, want %d:\n%s", what, len(lines), m.height, view)
	}
	for _, l := range lines {
		if n := ansi.StringWidth(l); n > m.width {
			t.Fatalf("%s: %d columns, more than %d: %q", what, n, m.width, l)
		}
	}
}

// The blocks of the fixture: 200 stay (6,800 bytes), a cache of 64 bytes varies, 3 more of 40 bytes leak with
// each dump.
func TestScreen(t *testing.T) {
	list := states(t, device(t, 12, 0), 240)
	if len(list) != 12 {
		t.Fatalf("%d dumps", len(list))
	}
	m := newScreen("fw.log", false)
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 24})
	shows(t, m, "at first", "btheap live: fw.log\n", "no dump yet", "q quit")
	press(t, m, "down", "up", "s", "s", "s", "s", "p")
	shows(t, m, "keys without dumps", "no dump yet")
	m.Update(list[0])
	shows(t, m, "one dump", "dump 1, 1 h: ", "1 dump, expected three or more whole ones")
	m.Update(list[11])
	head := []string{"dump 12, 12 h: ", "1 leak in 12 dumps over 11 h", " per h "}
	leak := ">leak, N %         +120         1,720        43 "
	shows(t, m, "the leak first", append(head, leak, "0x401200 < 0x401500 < 0x401900", "0x401110", "+1,320 bytes since the first of these dumps\n+120 bytes per hour (118 to 122)", "    0x401200\n    0x401500\n    0x401900\n")...)

	press(t, m, "s")
	shows(t, m, "by bytes", "by bytes", "0x401110", "0x401250", "0x401200")
	press(t, m, "s")
	shows(t, m, "by count", "by count", "0x401110", "0x401250", "0x401200")
	press(t, m, "s")
	shows(t, m, "by growth", "by growth", "0x401250", "0x401200", "0x401110")
	press(t, m, "s", "end")
	shows(t, m, "the last row", "by evidence", "0x401200", ">")
	if m.selected != 2 {
		t.Errorf("selected %d, want 2", m.selected)
	}
	press(t, m, "home", "/125x", "backspace", "0", "enter")
	if view := m.View(); strings.Contains(view, "0x401110") || !strings.Contains(view, "0x401250") || !strings.Contains(view, "[filter 1250, Esc clears]") {
		t.Errorf("filtered:\n%s", view)
	}
	press(t, m, "/", "(", "enter")
	shows(t, m, "a wrong filter", `"(" is no regular expression`)
	press(t, m, "esc")
	shows(t, m, "no filter", "0x401200", "0x401110")

	press(t, m, " ")
	m.Update(list[3])
	shows(t, m, "frozen", "[frozen; newer dumps have come]", "dump 12")
	press(t, m, " ")
	shows(t, m, "no longer", "btheap live: fw.log\n", "dump 4, 4 h")
	m.Update(endOfLog{})
	shows(t, m, "at the end", "[the log has ended]")

	press(t, m, "a")
	shows(t, m, "nothing to send", "--ask TEXT with --serial")
	sent := 0
	m.ask, m.asked = func() error { sent++; return nil }, "dump now"
	press(t, m, "a")
	shows(t, m, "sent", `sent "dump now"`)
	m.ask = func() error { return errors.New("unplugged") }
	press(t, m, "a")
	shows(t, m, "not sent", "unplugged")
	m.save = func(dumps []*profile.Dump) (string, error) { return fmt.Sprintf("%d.html", len(dumps)), nil }
	press(t, m, "p")
	shows(t, m, "saved", "wrote 4.html")
	if sent != 1 {
		t.Errorf("sent %d times", sent)
	}
	for _, key := range []string{"q", "ctrl+c"} {
		if _, quit := press(t, m, key).(tea.QuitMsg); !quit {
			t.Errorf("%s does not quit", key)
		}
	}
}

// At any size, the screen fits the terminal, and the selected row is on it.
func TestScreenSizes(t *testing.T) {
	st := states(t, device(t, 12, 0), 240)[11]
	for _, size := range [][2]int{{20, 7}, {39, 10}, {80, 24}, {200, 60}} {
		m := newScreen("fw.log", true)
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		m.Update(st)
		press(t, m, "down", "down", "down", "pgup", "pgdown")
		shows(t, m, fmt.Sprint(size), "\n\x1b[1m>")
	}
}

// At 80 by 24, the alarm, the deadline and the evidence are not cut off, and no flag is named.
func TestScreenCutsNothing(t *testing.T) {
	log := device(t, 12, 0)
	for d := range 12 { // 120 bytes less are free in each hour; the largest block shrinks faster
		end := fmt.Sprintf("~h#end %d\n", d)
		log = strings.Replace(log, end, fmt.Sprintf("~h#heap size=65536 free=%d largest=%d min=3000 name=internal\n", 20_000-120*d, 18_000-1200*d)+end, 1)
	}
	m := newScreen("/dev/serial/by-id/usb-Silicon_Labs_CP2102_USB_to_UART_Bridge_Controller_0001-if00-port0", false)
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.Update(states(t, log, 240)[11])
	shows(t, m, "80 by 24", "btheap live: ", "dump 12, 12 h: ", "1 leak in 12 dumps over 11 h", ">leak, N % ", "0x401110", "0x401250", "+120 bytes per hour (118 to 122)", "    0x401900")
	text := strings.Join(strings.Fields(m.View()), " ")
	for _, want := range []string{"free 18,680 bytes: exhausted in 6.49 days (6.46 days to 6.51 days); fragmentation of heap internal: the largest free block went from 18,000 to 4,800 bytes, what is free from 20,000 to 18,680",
		"Controller_0001-if00-port0", "internal: 18,680 of 65,536 free, largest 4,800"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, m.View())
		}
	}
	untimed := states(t, regexp.MustCompile(` t=\d+`).ReplaceAllString(log, ""), 240)[11]
	if m.Update(untimed); !strings.Contains(m.View(), "ALARM: none at 100/h: the dumps have no times: give SIZE/dump") || strings.Contains(m.View(), "--") {
		t.Errorf("without times:\n%s", m.View())
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
	m := newScreen("a\x1b[2Jb\nc", false)
	m.Update(states(t, device(t, 3, 0), 240)[2])
	press(t, m, "/", "\x1b", "\u202e")
	if view := m.View(); regexp.MustCompile("[\x00-\x09\x0b-\x1f\u202e]").MatchString(view) || !strings.Contains(view, `a\x1b[2Jb\nc`) {
		t.Errorf("%q", view)
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
		{[]string{"--keep", "2"}, "--keep 2, expected 3 dumps or more"},
		{[]string{"--ask", "x"}, "--ask needs --serial"},
		{[]string{"none.log"}, "none.log"},
		{[]string{"--fail-over", "1"}, "expected SIZE/UNIT"},
	} {
		if _, errs, code := command("", append([]string{"live"}, c.args...)...); code != 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit code %d, %q, want %q", c.args, code, errs, c.want)
		}
	}
}
