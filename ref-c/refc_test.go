// Package refc tests the harness for the real library, and the vectors recorded with
// it.
package refc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// build builds btref in a new directory, once. It returns errLacking if there is no
// library.
var build = sync.OnceValues(func() (prog string, err error) {
	prefix := os.Getenv("LWS_PREFIX")
	if out, err := exec.Command("./find-lws.sh", "check").CombinedOutput(); err != nil {
		if prefix != "" { // requested, so it must exist
			return "", fmt.Errorf("LWS_PREFIX=%s: %s", prefix, out)
		}
		return "", errLacking
	}
	dir, err := os.MkdirTemp("", "btref")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("make", "OUT="+dir, "LWS_PREFIX="+prefix).CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("make: %v\n%s", err, out)
	}
	return filepath.Join(dir, "btref"), nil
})

var errLacking = errors.New("no libwebsockets with compressed backtraces is installed: set LWS_PREFIX to one to test on it")

func TestMain(m *testing.M) {
	code := m.Run()
	if prog, _ := build(); prog != "" {
		os.RemoveAll(strings.TrimSuffix(prog, "/btref"))
	}
	os.Exit(code)
}

// btref returns the harness, built with the installed library. If there is no library,
// it skips the test.
func btref(t testing.TB) string {
	t.Helper()
	prog, err := build()
	if err == errLacking {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// record holds the lines of a vector by key.
type record map[string]string

// readVectors reads the head and the records of a .btv file.
func readVectors(t *testing.T, text []byte) (head record, records []record) {
	t.Helper()
	block := record{}
	flush := func() {
		if len(block) == 0 {
			return
		}
		if head == nil {
			head = block
		} else {
			records = append(records, block)
		}
		block = record{}
	}
	scan := bufio.NewScanner(bytes.NewReader(text))
	if !scan.Scan() || scan.Text() != "btv 1" {
		t.Fatal("no first line btv 1")
	}
	for scan.Scan() {
		line := scan.Text()
		if line == "" {
			flush()
		} else if key, value, ok := strings.Cut(line, ": "); ok && line[0] != '#' {
			block[key] = value
		}
	}
	flush()
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	return head, records
}

// stackLine returns the input line of btref for the `in:` of a record.
func stackLine(t *testing.T, r record) string {
	t.Helper()
	var size uint64
	var pcs string
	if _, err := fmt.Sscanf(r["in"], "size=%d pcs=%s", &size, &pcs); err != nil {
		t.Fatalf("%s: in: %s: %v", r["id"], r["in"], err)
	}
	return fmt.Sprintf("%s\t%x\t%s\n", r["id"], size, strings.ReplaceAll(pcs, ",", " "))
}

func TestRecordedBuilds(t *testing.T) {
	builds, err := os.ReadFile("builds.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, line := range strings.Split(strings.TrimSpace(string(builds)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		field := strings.Split(line, "\t")
		if len(field) != 6 {
			t.Fatalf("builds.txt: %d fields, want 6: %s", len(field), line)
		}
		name, options, word := field[0], field[2], field[3]
		files := map[string]string{name: "vectors/" + name + ".btv"}
		for _, how := range strings.Fields(field[5]) {
			switch how {
			case "fixed":
				files[name+" captured"] = "vectors/capture-" + name + ".btv"
			case "pie":
				files[name+" captured, pie"] = "vectors/capture-" + name + "-pie.btv"
			}
		}
		for what, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, records := readVectors(t, text)
			for _, key := range []string{"source", "library", "compiler", "options", "platform", "machine"} {
				if head[key] == "" {
					t.Errorf("%s: no %s in its head", file, key)
				}
			}
			if head["options"] != options || !strings.HasSuffix(head["machine"], word) {
				t.Errorf("%s: options %s, machine %s; builds.txt says %s and %s bits", file,
					head["options"], head["machine"], options, word)
			}
			want := 200
			if what != name {
				want = 80
			}
			if len(records) < want {
				t.Errorf("%s: %d records, want at least %d", file, len(records), want)
			}
		}
		seen++
	}
	if seen < 12 {
		t.Errorf("%d builds in builds.txt, want at least 12", seen)
	}
}

// The same as "make check-naive", for systems with a compiler but without make.
func TestNaiveReader(t *testing.T) {
	cmdtest.Need(t, "gcc")
	prog := filepath.Join(t.TempDir(), "naive_check")
	if out, err := exec.Command("gcc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-o", prog,
		"src/naive.c", "src/naive_check.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(prog).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestVectorsAsRecorded(t *testing.T) {
	prog := btref(t)
	out, err := exec.Command("sh", "-c", `printf 'probe\t1\t-\n' | "$0" vectors`, prog).Output()
	if err != nil {
		t.Fatal(err)
	}
	here, _ := readVectors(t, out)

	file := map[string]string{"wrap64": "x86_64-gcc12-O2", "wrap32": "i686-gcc12-O2",
		"zero64": "s390x-gcc12-O2", "zero32": "armhf-gcc12-O2"}[here["machine"]]
	if file == "" {
		t.Fatalf("nothing is recorded of a %s machine", here["machine"])
	}
	text, err := os.ReadFile("vectors/" + file + ".btv")
	if err != nil {
		t.Fatal(err)
	}
	_, recorded := readVectors(t, text)
	var in strings.Builder
	for _, r := range recorded {
		in.WriteString(stackLine(t, r))
	}

	cmd := exec.Command(prog, "vectors")
	cmd.Stdin = strings.NewReader(in.String())
	if out, err = cmd.Output(); err != nil {
		t.Fatal(err)
	}
	_, got := readVectors(t, out)
	if len(got) != len(recorded) {
		t.Fatalf("%d records, want %d", len(got), len(recorded))
	}
	keys := []string{"id", "in", "want"}
	if here["spill"] != "any" { // else the spill bits of blobs may differ
		keys = append(keys, "hex", "line")
	}
	for i, want := range recorded {
		for _, key := range keys {
			if got[i][key] != want[key] {
				t.Errorf("%s: %s: %s, recorded %s", want["id"], key, got[i][key], want[key])
			}
		}
	}
}

func TestCapture(t *testing.T) {
	out, err := exec.Command(btref(t), "capture").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, records := readVectors(t, out); len(records) < 80 {
		t.Errorf("%d records, want at least 80", len(records))
	}
}

func TestErrata(t *testing.T) {
	prog := btref(t)
	list, err := exec.Command(prog, "errata", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	// Errata that are reproduced on every build and machine and without tools.
	always := map[int]bool{1: true, 2: true, 3: true, 5: true, 7: true, 11: true, 12: true,
		16: true, 17: true, 19: true, 21: true, 22: true}
	verdict := regexp.MustCompile(`^erratum (\d+): (reproduced|not reproduced here \(.+\))$`)
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	if len(lines) < 26 {
		t.Fatalf("%d errata, want at least 26", len(lines))
	}
	for i, line := range lines {
		number, title, _ := strings.Cut(line, "\t")
		t.Run(number, func(t *testing.T) {
			if number != strconv.Itoa(i+1) {
				t.Fatalf("erratum %s stands at %d", number, i+1)
			}
			args := []string{"errata", number}
			if tool, err := exec.LookPath("lws-api-test-backtrace"); err == nil {
				args = append(args, "--tool", tool)
			}
			cmd := exec.Command(prog, args...)
			out, _ := cmd.Output()
			said := strings.Split(strings.TrimSpace(string(out)), "\n")
			last := said[len(said)-1]
			m := verdict.FindStringSubmatch(last)
			if m == nil || m[1] != number {
				t.Fatalf("%s: its last line is %q\n%s", title, last, out)
			}
			code, want := cmd.ProcessState.ExitCode(), 1
			if m[2] == "reproduced" {
				want = 0
			}
			if code != want {
				t.Errorf("exit code %d, want %d after %q", code, want, last)
			}
			if want == 1 && always[i+1] {
				t.Errorf("%s: %s", title, last)
			}
			if want == 1 {
				t.Log(last)
			}
		})
	}
}

// The examples in README.md are the output of btref.
func TestReadme(t *testing.T) {
	prog := btref(t)
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		`printf 'pie\t1d60\t55d412345678 55d412345a00\n' | ./btref vectors`,
		`./btref errata 10`,
	} {
		_, shown, ok := strings.Cut(string(readme), "    $ "+command+"\n")
		if !ok {
			t.Errorf("README.md does not show %s", command)
			continue
		}
		out, err := exec.Command("sh", "-c", strings.Replace(command, "./btref", `"$0"`, 1), prog).Output()
		if err != nil && !bytes.Contains(out, []byte("not reproduced here")) {
			t.Fatalf("%s: %v", command, err)
		}
		if bytes.Contains(out, []byte("32 bits")) || !bytes.Contains(out, []byte("wrap64")) && command[0] == 'p' ||
			bytes.Contains(out, []byte("spill: any")) {
			t.Skip("the examples are of a machine wrap64, by gcc -O2; this is another")
		}
		want := strings.Split(shown, "\n")
		for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			// the head and the name in want[...] depend on the build
			if i < 7 && command[0] == 'p' || strings.HasPrefix(line, "want[") {
				continue
			}
			if i >= len(want) || strings.TrimPrefix(want[i], "    ") != line {
				t.Errorf("%s: line %d is %q", command, i+1, line)
			}
		}
	}
}

func TestServe(t *testing.T) {
	prog := btref(t)
	in := "hello btp=1\n" +
		"decode 1 205d0199442e80d0a48029e485d018a506bac00015 word=64\n" +
		"decode 2 205d0199442e80d0a48029e485d018a506bac00015 word=32\n" +
		"decode 3 205d0199 word=64\ndecode 4 205d0199 word=32\n" +
		"salvage 5 205d0199 word=64\nquit\n"
	cmd := exec.Command(prog, "serve")
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	stack := "size=7520 pcs=406651,406852,406c1b,406294"
	wants := [][2]string{ // with words of 64 bits, of 32
		{"ok 1 " + stack, "skip 1 unsupported"},
		{"skip 2 unsupported", "ok 2 " + stack},
		{"reject 3 length", "skip 3 unsupported"},
		{"skip 4 unsupported", "reject 4 length"},
		{"skip 5 unsupported", "skip 5 unsupported"},
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(got) != 1+len(wants) || !strings.HasPrefix(got[0], "hello btp=1 name=lws-c ") {
		t.Fatalf("answers:\n%s", out)
	}
	word := 0
	if strings.HasSuffix(got[0], "32") {
		word = 1
	}
	for i, want := range wants {
		if !strings.HasPrefix(got[1+i], want[word]) {
			t.Errorf("answer %q, want %q", got[1+i], want[word])
		}
	}
}
