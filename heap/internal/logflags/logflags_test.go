package logflags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/internal/cli"
	shared "github.com/lwsbt/lwsbt/internal/cli/logflags"
)

const record = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV" // of README.md

// parse reads a command line that has the flags named.
func parse(t *testing.T, names []string, args ...string) (*Flags, *cobra.Command, error) {
	t.Helper()
	f, c := &Flags{}, &cobra.Command{}
	f.Add(c, "Group", names...)
	if err := c.Flags().Parse(args); err != nil {
		return f, c, err
	}
	return f, c, f.Check(c.Flags().Args())
}

// A command has the flags that it adds, and no other; each flag can be added.
func TestAdd(t *testing.T) {
	_, c, _ := parse(t, []string{"exe", "hide"})
	for name := range define {
		if has := c.Flags().Lookup(name) != nil; has != (name == "hide") {
			t.Errorf("--%s: %v", name, has)
		}
		if _, c, err := parse(t, []string{name}); err != nil || c.Flags().Lookup(name) == nil {
			t.Errorf("--%s alone: %v", name, err)
		}
	}
	if c.Flags().Lookup("exe") == nil {
		t.Error("no --exe")
	}
}

func TestCheck(t *testing.T) {
	all := []string{"exe", "maps", "machine", "dump", "split", "serial", "follow"}
	for line, want := range map[string]string{
		"":                           "",
		"a b":                        "",
		"--dump last":                "",
		"--dump 2..3":                "",
		"--serial /dev/tty:115200":   "",
		"--serial /dev/by:":          "",
		"--dump 0":                   `--dump "0", expected last, all, a number from 1, or A..B`,
		"--dump 3..1":                `--dump "3..1", expected`,
		"--split (":                  "error parsing regexp",
		"--split=":                   "expected a regular expression",
		"--serial /dev/tty:fast":     `"fast", expected DEVICE:BAUD`,
		"--serial /dev/tty a":        "--serial reads the port alone",
		"--serial /dev/tty --follow": "two ways to read on",
		"--follow":                   "--follow needs one log FILE",
	} {
		_, _, err := parse(t, all, strings.Fields(line)...)
		if got := ""; err != nil {
			got = err.Error()
			if want == "" || !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", line, got, want)
			}
		} else if want != "" {
			t.Errorf("%s: no error, want %q", line, want)
		}
	}
}

// All logs that the arguments name are read.
func TestOpen(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("x "+record+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var f Flags
	r, err := f.Open(t.Context(), []string{record, log, strings.TrimPrefix(record, "~m#"), "-"}, strings.NewReader(record))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var places []string
	for it, err := range r.Items() {
		if err != nil {
			t.Fatal(err)
		}
		if it.Kind == recording.KindBlob {
			places = append(places, filepath.Base(it.File))
		}
	}
	if got := strings.Join(places, " "); got != "log <stdin> <arguments> <arguments>" {
		t.Errorf("records in %s", got)
	}
	if _, err := (&Flags{port: "/no/such/port", Serial: "/no/such/port", baud: 9600}).Open(t.Context(), nil, nil); err == nil || cli.Code(err) != cli.Usage {
		t.Errorf("a port that is not there: %v", err)
	}
}

// How a pass ends: its notes, and the exit code.
func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		name, log string
		flags     Flags
		code      int
		notes     string
	}{
		{"all is well", record, Flags{}, cli.OK, ""},
		{"an unreadable record", record + "\n~m#AAA=\n", Flags{}, cli.OK, "1 record unreadable"},
		{"an unreadable record, strict", record + "\n~m#AAA=\n", Flags{Flags: shared.Flags{Strict: true}}, cli.Short, "1 record unreadable"},
		{"an unreadable record, quiet", record + "\n~m#AAA=\n", Flags{Quiet: true}, cli.OK, ""},
		{"no record", "text\n", Flags{}, cli.Usage, ""},
		{"a damaged file", "\x1f\x8b\x08\x00", Flags{}, cli.Usage, ""},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := c.flags.Open(t.Context(), []string{path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var notes strings.Builder
		out := Outcome{Flags: &c.flags, Reader: r, Note: c.flags.Notes(&notes, "test")}
		for _, err := range r.Items() {
			if err != nil {
				if err := out.Add(err); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		}
		if err := out.End(); cli.Code(err) != c.code {
			t.Errorf("%s: %v, want exit code %d", c.name, err, c.code)
		}
		if got := notes.String(); !strings.Contains(got, c.notes) || c.notes == "" && got != "" {
			t.Errorf("%s: notes %q, want %q", c.name, got, c.notes)
		}
		r.Close()
	}
}
