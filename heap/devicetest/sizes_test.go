package devicetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

const (
	tiny    = " -DLWSBT_TINY"
	scan    = " -DLWSBT_WRAP_CAPTURE=lwsbt_capture_scan"
	crashed = " -DLWSBT_CRASH -DLWSBT_CRASH_HANDLER=HardFault_Handler"
	counted = " -DLWSBT_WRAP_NODES=640 -DLWSBT_WRAP_ENTRIES=180"
)

// A size is a row of docs/device.md: what testdata/size.c grows by, with options, beyond what it takes with those of
// base; with an empty base, beyond what it takes without the library.
type size struct {
	row, options, base string
	flash              int // at most; 0: not tested
}

var sizes = []size{
	{"stacks, `thumb`", "", "", 11520},
	{"profile, `thumb`", counted, "", 12288},
	{"profile, `thumb`, `LWSBT_TINY`", tiny + counted, "", 8192},
	{"profile, `scan`, `LWSBT_TINY`", tiny + counted + scan, "", 6144},
}

var optionSizes = []size{
	{"`LWSBT_FIELDS`", tiny + " -DLWSBT_FIELDS=1", tiny, 0},
	{"`LWSBT_SPEED`", tiny + counted + " -DLWSBT_SPEED=1", tiny + counted, 0},
	{"`LWSBT_EXCEPTIONS`", tiny + " -DLWSBT_EXCEPTIONS=1", tiny, 0},
	{"`LWSBT_EXTRAS`", tiny + counted + " -DLWSBT_EXTRAS=1", tiny + counted, 0},
	{"`LWSBT_QUARANTINE=32`", tiny + " -DLWSBT_QUARANTINE=32", tiny, 0},
	{"`LWSBT_CRASH`", tiny + crashed, tiny, 0},
	{"`LWSBT_CRASH_TASKS=8`", tiny + crashed + " -DLWSBT_CRASH_TASKS=8", tiny + crashed, 0},
}

// measure returns the bytes of flash and RAM that the firmware takes with options; without the library, if options
// is NONE.
func measure(t *testing.T, options string) (flash, ram int) {
	t.Helper()
	const none = "NONE"
	elf := filepath.Join(t.TempDir(), "size.elf")
	args := strings.Fields("-mcpu=cortex-m3 -mthumb -Os -g -ffunction-sections -fdata-sections -Wl,--gc-sections,--no-warnings" +
		" -nostartfiles --specs=nano.specs --specs=nosys.specs -T ../../examples/firmware/mps2.ld" +
		" -I../../examples/firmware ../../examples/firmware/mps2.c testdata/size.c -o " + elf)
	if options != none {
		args = append(args, strings.Fields("-DLWSBT_WRAP -I../../device/amalgamation ../../device/amalgamation/lwsbt.c"+
			" -Wl,--wrap=malloc,--wrap=free,--wrap=calloc,--wrap=realloc"+options)...)
	}
	if out, err := exec.Command("arm-none-eabi-gcc", args...).CombinedOutput(); err != nil {
		if strings.Contains(string(out), "nano.specs") {
			t.Skip("newlib is not installed")
		}
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command("arm-none-eabi-size", elf).Output()
	if err != nil {
		t.Fatal(err)
	}
	var text, data, bss int
	if _, err := fmt.Sscan(strings.Split(string(out), "\n")[1], &text, &data, &bss); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return text + data, data + bss
}

// sampled reports whether a row is measured if LWSBT_FULL is not all.
func (s *size) sampled() bool {
	return s.base == ""
}

// The tables of sizes in docs/device.md, to 1 %; another compiler than gcc 12.2 may make others:
//
//	LWSBT_FULL=all go test ./heap/devicetest -run Sizes -v [-update]
func TestSizes(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, "arm-none-eabi-gcc", "arm-none-eabi-size")
	version, err := exec.Command("arm-none-eabi-gcc", "-dumpversion").Output()
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := os.ReadFile("../../docs/device.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(bytes)
	measured := map[string][2]int{} // by options
	for _, table := range []struct {
		begin, head string
		rows        []size
	}{
		{"<!-- sizes -->\n", "| options | flash | RAM |\n| --- | --- | --- |\n", sizes},
		{"<!-- options -->\n", "| option | flash | RAM | what it adds |\n| --- | --- | --- | --- |\n", optionSizes},
	} {
		before, rest, ok := strings.Cut(doc, table.begin)
		old, after, end := strings.Cut(rest, "<!-- end -->\n")
		if !ok || !end {
			t.Fatalf("docs/device.md has no table after %q", table.begin)
		}
		written := map[string][]string{}
		for line := range strings.Lines(old) {
			if cells := strings.Split(strings.Trim(line, "| \n"), " | "); len(cells) >= 3 {
				written[cells[0]] = cells[1:]
			}
		}
		text := table.head
		for _, s := range table.rows {
			if !cmdtest.All() && !*update && !s.sampled() {
				continue
			}
			base := s.base
			if base == "" {
				base = "NONE"
			}
			for _, options := range []string{s.options, base} {
				if _, ok := measured[options]; !ok {
					flash, ram := measure(t, options)
					measured[options] = [2]int{flash, ram}
				}
			}
			flash, ram, flash0, ram0 := measured[s.options][0], measured[s.options][1], measured[base][0], measured[base][1]
			flash, ram = flash-flash0, ram-ram0
			t.Logf("%s: %d bytes of flash, %d of RAM", s.row, flash, ram)
			if s.flash != 0 && (flash > s.flash || flash < 2000) {
				t.Errorf("%s: %d bytes of flash, want at most %d, and not less than 2000", s.row, flash, s.flash)
			}
			text += fmt.Sprintf("| %s | %d | %d |", s.row, flash, ram)
			cells := written[s.row]
			if len(cells) == 3 {
				text += " " + cells[2] + " |"
			}
			text += "\n"
			if *update || !strings.HasPrefix(string(version), "12.2.") {
				continue
			}
			for i, n := range []int{flash, ram} {
				if i >= len(cells) {
					t.Errorf("docs/device.md has no row of %s", s.row)
					break
				}
				if was, err := strconv.Atoi(cells[i]); err != nil || max(was-n, n-was) > 8+n/100 {
					t.Errorf("docs/device.md, %s: %s, want %d: %v", s.row, cells[i], n, err)
				}
			}
		}
		doc = before + table.begin + text + "<!-- end -->\n" + after
	}
	if *update {
		if err := os.WriteFile("../../docs/device.md", []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
