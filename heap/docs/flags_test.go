package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// foreign are flags of other programs that documents show, and of btfleet.
var foreign = strings.Fields("--port --preserve-status --reuid --run-cxx-freeres --run-libc-freeres --signal --stdin --tokens")

var (
	flagWord = regexp.MustCompile("(?:^|[\\s`(\"\\[])(--[a-z][a-z0-9-]*)")
	flagLine = regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z][a-z0-9-]*)`)
	commands = regexp.MustCompile(`(?ms)^Commands \(.*?\n(.*?)\n\n`)
)

// Every flag that a document names is one that a command's help lists.
func TestFlags(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "../../cmd/...", "../cmd/...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	known := slices.Clone(foreign)
	list, err := filepath.Glob(filepath.Join(bin, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range list {
		main := help(t, command)
		known = append(known, flags(main)...)
		if m := commands.FindStringSubmatch(main); m != nil {
			for line := range strings.Lines(m[1]) {
				known = append(known, flags(help(t, command, strings.Fields(line)[0]))...)
			}
		}
	}
	if len(known) < len(foreign)+100 {
		t.Fatalf("only %d flags in the help of %d commands", len(known)-len(foreign), len(list))
	}
	n := 0
	for _, pattern := range []string{"../../README.md", "../../SECURITY.md", "../../docs/*.md", "../README.md", "*.md", "../../conformance/README.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range flagWord.FindAllStringSubmatch(string(text), -1) {
				n++
				if !slices.Contains(known, m[1]) {
					t.Errorf("%s: no command has %s", file, m[1])
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d flags in the documents", n)
	}
}

func help(t *testing.T, command string, args ...string) string {
	out, err := exec.Command(command, append(args, "--help")...).Output()
	if err != nil {
		t.Fatalf("%s %q: %v", command, args, err)
	}
	return string(out)
}

func flags(help string) (list []string) {
	for _, m := range flagLine.FindAllStringSubmatch(help, -1) {
		list = append(list, m[1])
	}
	return list
}
