package logflags

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const record = "~m#IF0BmUQugNCkgCnkhdAYpQa6wAAV" // of README.md

// parse reads a command line that has the flags named.
func parse(names []string, args ...string) (*Flags, *cobra.Command, error) {
	f, c := &Flags{}, &cobra.Command{}
	f.Add(c, "Group", names...)
	if err := c.Flags().Parse(args); err != nil {
		return f, c, err
	}
	return f, c, f.Check(c.Flags().Args())
}

// A command has the flags that it adds, and no other; each flag can be added.
func TestAdd(t *testing.T) {
	_, c, _ := parse([]string{"exe", "strict"})
	for name := range define {
		if has := c.Flags().Lookup(name) != nil; has != (name == "exe" || name == "strict") {
			t.Errorf("--%s: %v", name, has)
		}
		if _, c, err := parse([]string{name}); err != nil || c.Flags().Lookup(name) == nil {
			t.Errorf("--%s alone: %v", name, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"a", "b"}, ""},
		{[]string{"a", ""}, "the name of a log is empty"},
		{[]string{"--machine", "wrap64", "-e", "x"}, ""},
		{[]string{"--machine", "wrap"}, "--machine: "},
		{[]string{"--follow", "a"}, ""},
		{[]string{"--follow"}, "--follow needs one log FILE"},
		{[]string{"--follow", "-"}, "--follow needs one log FILE"},
		{[]string{"--follow", "a", "b"}, "--follow needs one log FILE"},
		{[]string{"--follow", record}, "--follow needs one log FILE"},
	} {
		f, _, err := parse([]string{"exe", "machine", "follow"}, c.args...)
		switch {
		case err == nil && c.want == "":
			if m, given := f.CodecMachine(); given != (f.Machine != "") || given && m.String() != f.Machine {
				t.Errorf("%q: machine %v, %v", c.args, m, given)
			}
		case err == nil || c.want == "" || !strings.Contains(err.Error(), c.want):
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

// Arguments are files, records, and records without their lead-in; the error for any other names it.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	log, exe := file("log", "x"), file("exe", "\x7fELF")
	stdin := strings.NewReader("in")
	list, err := Logs([]string{record, log, strings.TrimPrefix(record, "~m#"), "-"}, stdin)
	if err != nil || len(list) != 3 {
		t.Fatalf("%v, %v", list, err)
	}
	if list[0] != (Log{Name: log}) || list[1] != (Log{"<stdin>", stdin}) || list[2].Name != "<arguments>" {
		t.Errorf("%v", list)
	}
	if text, err := io.ReadAll(list[2].Stream); err != nil || string(text) != record+"\n"+record+"\n" {
		t.Errorf("%q, %v", text, err)
	}
	for arg, want := range map[string]string{
		"/no/such.log": "/no/such.log: no such file; nor is it a record, which begins with ~m#",
		exe:            "an ELF file, expected a log: give it with -e",
	} {
		if _, err := Logs([]string{arg}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}
