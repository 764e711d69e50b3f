package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// A routine is a function of a generated firmware. It calls others, or allocates: each hour rate blocks of size bytes
// that stay, and in the first hour more that stay, too.
type routine struct {
	name  string // as it is called
	form  string // of the definition: "C", "template", "overload" or "method"
	file  int
	open  bool // the compiler may inline it
	force bool // it must
	calls []*routine

	size, rate, more int
	fate             string // of its leak, from old to new; "" if it does not leak
}

// A revision is a firmware: main calls its routines each hour.
type revision struct {
	routines []*routine // callers after what they call
	top      []*routine
	lines    int    // written before each function
	cpp      bool   // C++
	flags    string // of the compiler
	strip    string
	reverse  bool // order of files at the link
}

// An update is two revisions of a firmware. What became of each leak is known from how they were made.
type update struct {
	old, new *revision
	unnamed  bool // the new revision has no names
	halved   bool // only the old one has lines, so inlined functions of the new one are not known
}

var (
	verbs = strings.Fields("open read write push parse merge flush claim queue relay store fetch accept bind cache index")
	nouns = strings.Fields("topic frame session record sample buffer socket header token route lease page event timer peer blob")
)

// newUpdate makes an update of a seed. kind chooses what else happens between the revisions.
func newUpdate(seed uint64, kind string) *update {
	rng := rand.New(rand.NewPCG(seed, 52))
	used := map[string]bool{}
	name := func() string {
		for {
			n := verbs[rng.IntN(len(verbs))] + "_" + nouns[rng.IntN(len(nouns))]
			if !used[n] {
				used[n] = true
				return n
			}
		}
	}
	u := &update{old: &revision{cpp: strings.Contains(kind, "C++")}}
	names := strings.Contains(kind, "without lines") || strings.Contains(kind, "half") // inlined functions have no name
	size := 12
	var sites []*routine
	for range 2 + rng.IntN(2) {
		task := &routine{name: name(), form: "C", file: rng.IntN(3)}
		for range 1 + rng.IntN(2) {
			middle := &routine{name: name(), form: "C", file: rng.IntN(3), open: !names && rng.IntN(2) == 0}
			for range 1 + rng.IntN(2) {
				size += 4 * (1 + rng.IntN(3))
				site := &routine{name: name(), form: "C", file: rng.IntN(3), size: size, more: 1 + rng.IntN(3), open: !names && rng.IntN(2) == 0}
				if u.old.cpp {
					site.form = []string{"C", "template", "overload", "method"}[rng.IntN(4)]
				}
				sites = append(sites, site)
				middle.calls = append(middle.calls, site)
				u.old.routines = append(u.old.routines, site)
			}
			task.calls = append(task.calls, middle)
			u.old.routines = append(u.old.routines, middle)
		}
		u.old.top = append(u.old.top, task)
		u.old.routines = append(u.old.routines, task)
	}
	rng.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	fates := []string{"still", "mended", "new", "bigger", "", "renamed", "split", "dropped"}
	rng.Shuffle(len(fates)-1, func(i, j int) { fates[i+1], fates[j+1] = fates[j+1], fates[i+1] })
	for i, s := range sites[:min(len(sites), 5)] {
		s.fate = fates[i]
		if s.fate != "new" && s.fate != "" {
			s.rate = 2 + rng.IntN(4)
		}
	}
	u.revise(rng, kind, name)
	return u
}

// revise makes the new revision: a copy with other rates and names, and functions at other places.
func (u *update) revise(rng *rand.Rand, kind string, name func() string) {
	copies := map[*routine]*routine{}
	n := &revision{cpp: u.old.cpp, lines: 1 + rng.IntN(9), reverse: rng.IntN(2) == 0}
	for _, r := range u.old.routines {
		c := *r
		c.calls = nil
		for _, k := range r.calls {
			c.calls = append(c.calls, copies[k])
		}
		if rng.IntN(4) == 0 && c.form == "C" {
			c.file = (c.file + 1) % 3 // moved to another file
		}
		if c.open && rng.IntN(2) == 0 {
			c.force = true
		}
		copies[r] = &c
		switch r.fate {
		case "mended":
			c.rate = 0
		case "dropped":
			c.rate, c.more = 0, 0
		case "bigger":
			c.rate *= 3
		case "new":
			c.rate = 3 + rng.IntN(3)
		case "renamed":
			c.name = name()
		case "split":
			inner := c
			inner.name, inner.open, inner.force, inner.form = name(), false, false, "C"
			n.routines = append(n.routines, &inner)
			c.size, c.calls = 0, []*routine{&inner}
			c.open, c.force = false, false
		}
		n.routines = append(n.routines, &c)
	}
	for _, r := range n.routines {
		for _, k := range r.calls {
			k.force = k.force && k.file == r.file
		}
	}
	for _, r := range u.old.top {
		n.top = append(n.top, copies[r])
	}
	u.new = n
	u.old.flags, n.flags = "-O2", "-O2"
	switch kind {
	case "Os":
		n.flags = "-Os"
	case "O1 to O3":
		u.old.flags, n.flags = "-O1", "-O3"
	case "link-time optimization", "C++, link-time optimization":
		n.flags = "-O2 -flto"
	case "without lines", "C++, without lines":
		u.old.strip, n.strip = "-g", "-g"
	case "half without lines", "C++, half without lines":
		n.strip, u.halved = "-g", true
	case "without names":
		n.strip, u.unnamed = "-s", true
	}
}

// write writes the files of a revision to dir.
func (v *revision) write(t testing.TB, dir string) (files []string) {
	head := "#include <stdlib.h>\n" + map[bool]string{false: "#define C\n", true: "#define C extern \"C\"\n"}[v.cpp] +
		"C void *volatile held;\n#define NOINLINE __attribute__((noinline))\n"
	if !v.cpp {
		head = strings.Replace(head, "C void", "extern void", 1)
	}
	var bodies [3]strings.Builder
	for _, r := range v.routines {
		_, declare, define := r.source()
		head += declare
		for range v.lines {
			fmt.Fprintf(&bodies[r.file], "/* changed */\n")
		}
		if v.lines > 0 {
			fmt.Fprintf(&bodies[r.file], "NOINLINE __attribute__((used)) static int added_%s(int n) { return n * %d; }\n", r.name, r.size+v.lines)
		}
		bodies[r.file].WriteString(define)
	}
	main := head + `
C {
#include "board.h"
#include "lwsbt.h"
static void put(void *arg, const char *text, size_t len) { (void)arg; board_put(text, len); }
static uint64_t hours;
static uint64_t now(void *arg) { (void)arg; return hours * 3600000000u; }
extern const struct lwsbt_out lwsbt_wrap_out;
extern const struct lwsbt_port lwsbt_wrap_port;
const struct lwsbt_out lwsbt_wrap_out = { .put = put };
const struct lwsbt_port lwsbt_wrap_port = { .time = now };
void *volatile held;
}
int main(void)
{
	lwsbt_wrap_begin("node", VERSION);
	for (int hour = 0; hour < 14; hour++) {
		volatile int sum = 0;
`
	if !v.cpp {
		main = strings.NewReplacer("C {\n", "", "held;\n}", "held;").Replace(main)
	}
	for _, r := range v.top {
		call, _, _ := r.source()
		main += "\t\tsum += " + call + ";\n"
	}
	main += "\t\thours = hour + 1;\n\t\tlwsbt_wrap_dump(\"timer\");\n\t}\n\tboard_exit();\n}\n"
	ext := map[bool]string{false: ".c", true: ".cpp"}[v.cpp]
	for i, b := range []string{head + bodies[0].String(), head + bodies[1].String(), head + bodies[2].String(), main} {
		f := filepath.Join(dir, string("abcm"[i])+ext)
		if err := os.WriteFile(f, []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if v.reverse {
		slices.Reverse(files)
	}
	return files
}

// shown returns the name of r as diff prints it.
func (r *routine) shown() string {
	if r.form == "method" {
		return r.name + "_class::go"
	}
	return r.name
}

// source returns a call of r, its declaration and its definition.
func (r *routine) source() (call, declare, define string) {
	body := "\n{\n\tvolatile int sum = 0;\n"
	for _, k := range r.calls {
		c, _, _ := k.source()
		body += "\tsum += " + c + ";\n"
	}
	if r.size > 0 {
		size := fmt.Sprint(r.size)
		if r.form == "template" {
			size = "N"
		}
		body += fmt.Sprintf("\tfor (int i = 0; i < 20; i++) {\n\t\tvoid *p = malloc(%s);\n\t\theld = p;\n\t\tif (i >= %d + (hour == 0) * %d)\n\t\t\tfree(p);\n\t\tsum++;\n\t}\n", size, r.rate, r.more)
	}
	body += "\treturn sum + 1;\n}\n"
	how := "NOINLINE "
	if r.open {
		how = ""
	}
	if r.force {
		how = "__attribute__((always_inline)) inline "
	}
	switch r.form {
	case "template":
		return fmt.Sprintf("%s<%d>(hour)", r.name, r.size), "template <int N> " + how + "int " + r.name + "(int hour)" + body, ""
	case "overload":
		return r.name + "(hour, (short)1)", "int " + r.name + "(int hour);\nint " + r.name + "(int hour, short);\n", how + "int " + r.name + "(int hour, short)" + body
	case "method":
		return r.name + "_class().go(hour)", "struct " + r.name + "_class { int go(int hour); };\n", how + "int " + r.name + "_class::go(int hour)" + body
	}
	return r.name + "(hour)", "int " + r.name + "(int hour);\n", how + "int " + r.name + "(int hour)" + body
}

// build builds a revision and returns its log and its ELF file.
func (v *revision) build(t *testing.T, m target, objects, dir, name, version string) made {
	t.Helper()
	own := filepath.Join(dir, name)
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	elf, gcc := own+".elf", strings.Fields(m.gcc)
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(args[0], args[1:]...).Output()
		if err != nil {
			t.Fatalf("%s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	library := filepath.Join(objects, "lwsbt.o")
	if strings.Contains(v.flags, "-flto") {
		library = filepath.Join(own, "lwsbt.o")
		m.deviceLibrary(t, library, " -flto")
	}
	args := slices.Clone(gcc)
	if v.cpp {
		args[0] = strings.TrimSuffix(args[0], "gcc") + "g++"
		args = append(args, "-fno-exceptions", "-fno-rtti")
	}
	args = append(args, "-g", "-w", "-fno-optimize-sibling-calls", `-DVERSION="`+version+`"`, "-o", elf)
	if !strings.Contains(args[0], "riscv") { // picolibc's linker script has no place for a build ID: lwsbt_wrap_begin hashes the code
		args = append(args, "-Wl,--build-id=sha1")
	}
	args = append(append(append(args, strings.Fields(v.flags)...), v.write(t, own)...), filepath.Join(objects, "board.o"), library)
	_, script, _ := strings.Cut(m.files, " ")
	run(append(args, strings.Fields(script)...)...)
	if v.strip != "" {
		run(m.strip, v.strip, elf)
	}
	log := own + ".log"
	text := run(append(strings.Fields(m.run), elf)...)
	if !strings.Contains(text, " build=") && !strings.Contains(text, " text=") {
		t.Fatalf("no build= in the log:\n%.200s", text)
	}
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return made{elf, log}
}

// wanted returns the answers to the leaks of an update, each with the innermost function and the rates in bytes per
// hour before and after.
func (u *update) wanted() (list []string, isNew bool) {
	answer := func(fate string, r *routine, before, after int) {
		if u.halved && (fate == "new" || fate == "gone") {
			fate = "unknown"
		}
		list = append(list, fmt.Sprintf("%s %s %d %d", fate, r.shown(), before, after))
	}
	for _, r := range u.old.routines {
		isNew = isNew || r.fate == "new" || r.fate == "renamed" || r.fate == "split"
	}
	for _, r := range u.old.routines {
		now := u.new.find(r)
		switch r.fate {
		case "still", "bigger":
			answer("still", r, r.size*r.rate, now.size*now.rate)
		case "mended":
			answer("mended", r, r.size*r.rate, 0)
		case "dropped": // if another leak is new, it may be this one
			fate := "mended"
			if isNew || u.halved {
				fate = "gone"
			}
			answer(fate, r, r.size*r.rate, 0)
		case "new":
			answer("new", now, 0, now.size*now.rate)
		case "renamed", "split":
			answer("gone", r, r.size*r.rate, 0)
			answer("new", now, 0, now.size*now.rate)
		}
	}
	slices.Sort(list)
	return list, isNew
}

// find returns what became of a routine of the old revision that allocates.
func (v *revision) find(r *routine) *routine {
	i := slices.IndexFunc(v.routines, func(n *routine) bool { return n.size == r.size })
	return v.routines[i]
}

// updateAnswer is the output of diff --json.
type updateAnswer struct {
	Leaks []struct {
		Fate          string
		Stack         []struct{ Function string }
		Before, After struct {
			Verdict         string
			Rate, Low, High float64
		}
	}
}

// text returns the answers, as wanted does; rates are those that are wanted if the intervals contain them.
func (c updateAnswer) text(want []string) (list []string) {
	for _, l := range c.Leaks {
		function := "?"
		if len(l.Stack) > 0 {
			function = l.Stack[0].Function
		}
		line := fmt.Sprintf("%s %s %.0f %.0f", l.Fate, function, l.Before.Rate, l.After.Rate)
		for _, w := range want {
			var fate, shown string
			var before, after float64
			fmt.Sscan(w, &fate, &shown, &before, &after)
			within := l.Before.Low <= before && before <= l.Before.High && l.After.Low <= after && after <= l.After.High
			if fate == l.Fate && function == shown && within {
				line = w
			}
		}
		list = append(list, line)
	}
	slices.Sort(list)
	return list
}

var updateKinds = []string{"", "Os", "O1 to O3", "link-time optimization", "without lines", "half without lines", "without names",
	"C++", "C++, link-time optimization", "C++, without lines", "C++, half without lines"}

// Two revisions of generated firmwares: functions move by lines and to other files, are renamed, split, inlined,
// optimized otherwise or together, stripped, linked in another order. diff tells what became of each leak.
func TestUpdates(t *testing.T) {
	targets := []target{m3, rv32}
	kinds, rounds := []string{"", "C++"}, 1
	if cmdtest.Full() {
		kinds = updateKinds
	}
	if cmdtest.All() {
		rounds = 4
	}
	for _, m := range targets {
		cmdtest.Need(t, strings.Fields(m.gcc)[0], strings.Fields(m.run)[0])
	}
	objects := map[string]string{}
	for _, m := range targets {
		objects[m.name] = m.objects(t)
	}
	for n := range rounds * len(kinds) * len(targets) {
		m, kind := targets[n%2], kinds[n/2%len(kinds)]
		if cmdtest.Full() && !cmdtest.All() && n/2%2 == n%2 {
			continue // each kind on one machine
		}
		t.Run(fmt.Sprintf("%d %s %s", n, m.name, kind), func(t *testing.T) {
			testUpdate(t, newUpdate(uint64(5200+n), kind), m, objects[m.name])
		})
	}
}

// objects compiles the files that are the same in each firmware.
func (m target) objects(t *testing.T) string {
	dir := t.TempDir()
	m.deviceLibrary(t, filepath.Join(dir, "lwsbt.o"), "")
	board, _, _ := strings.Cut(m.files, " ")
	args := append(strings.Fields(m.gcc), "-Os", "-c", "-o", filepath.Join(dir, "board.o"), board)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func testUpdate(t *testing.T, u *update, m target, objects string) {
	dir := t.TempDir()
	old, now := u.old.build(t, m, objects, dir, "old", "1.2"), u.new.build(t, m, objects, dir, "new", "1.3")
	want, isNew := u.wanted()
	diff := func(files ...string) (a updateAnswer, out, errs string, code int) {
		out, errs, code = command("", append(files, "diff", "--json", "--fail-on-new", old.log, now.log)...)
		if err := json.Unmarshal([]byte(out), &a); err != nil {
			t.Fatalf("%v\n%s%s", err, out, errs)
		}
		return a, out, errs, code
	}
	a, first, errs, code := diff("-e", old.elf, "-e", now.elf)
	if got := a.text(want); !u.unnamed && !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s\n%s", strings.Join(got, "\n  "), strings.Join(want, "\n  "), errs)
	}
	if (code == 1) != (isNew || u.unnamed) {
		t.Errorf("--fail-on-new: exit code %d, %s", code, errs)
	}
	if _, out, _, _ := diff("-e", now.elf, "-e", old.elf); out != first {
		t.Error("the order of -e changes the answer")
	}
	other := [][]string{nil, {"-e", old.elf}, {"-e", now.elf}}
	if u.unnamed {
		other = append(other, []string{"-e", old.elf, "-e", now.elf})
	}
	for _, files := range other {
		a, _, errs, code := diff(files...)
		for _, l := range a.Leaks {
			if l.Fate != "unknown" {
				t.Errorf("%d files: %s %v", len(files)/2, l.Fate, l.Stack)
			}
		}
		if len(a.Leaks) == 0 || code != 1 {
			t.Errorf("%d files: %d leaks, exit code %d, %s", len(files)/2, len(a.Leaks), code, errs)
		}
	}
}
