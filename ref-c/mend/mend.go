// Mend puts functions of this project in place of those of libwebsockets' compressed backtraces, in a checkout
// of it, and adds their tests. It finds functions and lines by name; it fails, having changed nothing, if one of
// them is not there exactly once. spec/lws.md lists the errata that each step mends.
//
//	go run ./ref-c/mend LWS           apply all steps
//	go run ./ref-c/mend -upto N LWS   apply the steps up to number N
//	go run ./ref-c/mend -list         list the steps
package main

import (
	"embed"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed fn test
var ours embed.FS

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mend", flag.ContinueOnError)
	flags.SetOutput(stderr)
	upto := flags.Int("upto", steps[len(steps)-1].n, "apply the steps up to number `N`")
	list := flags.Bool("list", false, "list the steps")
	if flags.Parse(args) != nil {
		return 2
	}
	if *list {
		for _, s := range steps {
			fmt.Fprintf(stdout, "%d %s %s\n", s.n, s.class, s.subject)
		}
		return 0
	}
	if flags.NArg() != 1 {
		fmt.Fprintln(stderr, "mend: expected the directory of a checkout of libwebsockets")
		return 2
	}
	t := &tree{root: flags.Arg(0), files: map[string]string{}}
	for _, s := range steps {
		if s.n > *upto {
			break
		}
		if s.apply != nil {
			s.apply(t)
		}
		if t.err != nil {
			fmt.Fprintf(stderr, "mend: step %d: %v; nothing was changed\n", s.n, t.err)
			return 1
		}
	}
	t.tests(*upto)
	if err := t.write(); err != nil {
		fmt.Fprintf(stderr, "mend: %v\n", err)
		return 3
	}
	return 0
}

// tree is a checkout with the changes that are not yet written.
type tree struct {
	root  string
	files map[string]string // changed or read
	err   error             // the first
}

func (t *tree) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

func (t *tree) get(path string) string {
	if text, ok := t.files[path]; ok || t.err != nil {
		return text
	}
	text, err := os.ReadFile(filepath.Join(t.root, path))
	if err != nil {
		t.err = err
	}
	t.files[path] = string(text)
	return string(text)
}

// read returns a file of this project.
func (t *tree) read(name string) string {
	text, err := ours.ReadFile(name)
	if err != nil {
		t.fail("%v", err)
	}
	return string(text)
}

// span returns where a function is, without the comment before it.
func (t *tree) span(path, name string) (from, to int) {
	all := regexp.MustCompile(`(?ms)^(?:[A-Za-z_][^\n;{}()]*\n)?[^\n;{}()#*/ \t]*(?:[A-Za-z_][^\n;{}()]* )?\*?`+regexp.QuoteMeta(name)+
		`\([^;{}]*?\)\n\{\n.*?^\}\n`).FindAllStringIndex(t.get(path), -1)
	if len(all) != 1 {
		t.fail("%s: %s: found %d times", path, name, len(all))
		return 0, 0
	}
	return all[0][0], all[0][1]
}

// attribute is a line of attributes, or nothing, before a function.
var attribute = regexp.MustCompile(`__attribute__[^\n]*\n\s*$`)

// function replaces a function by the text of a file; comment: with the comments right before it, too.
func (t *tree) function(path, name, file string, comment bool) {
	from, to := t.span(path, name)
	text := t.get(path)
	for comment {
		before := text[:from]
		if at := attribute.FindStringIndex(before); at != nil {
			from = at[0]
			continue
		}
		before = strings.TrimRight(before, " \t\n")
		at := strings.LastIndex(before, "/*")
		if !strings.HasSuffix(before, "*/") || at < 0 {
			break
		}
		from = at
	}
	t.files[path] = text[:from] + t.read("fn/"+file) + text[to:]
}

// between replaces what is from a text on to the end of a function.
func (t *tree) between(path, from, name, file string) {
	text := t.get(path)
	at := strings.Index(text, from)
	if _, to := t.span(path, name); at >= 0 && to > at {
		t.files[path] = text[:at] + t.read("fn/"+file) + text[to:]
		return
	}
	t.fail("%s: %q: not found before %s", path, from, name)
}

// replace replaces what a pattern matches, which must be there count times. by has $1 for groups.
func (t *tree) replace(path, pattern, by string, count int) {
	p := regexp.MustCompile("(?ms)" + pattern)
	text := t.get(path)
	if n := len(p.FindAllStringIndex(text, -1)); n != count {
		t.fail("%s: %s: found %d times, expected %d", path, pattern, n, count)
		return
	}
	t.files[path] = p.ReplaceAllString(text, by)
}

// drop removes the if-block that begins so.
func (t *tree) drop(path, start string) {
	text := t.get(path)
	at := strings.Index(text, start)
	if at < 0 {
		t.fail("%s: %q: not found", path, start)
		return
	}
	end, depth := at+strings.IndexByte(text[at:], '{'), 0
	for ; end < len(text); end++ {
		if text[end] == '{' {
			depth++
		} else if text[end] == '}' {
			if depth--; depth == 0 {
				break
			}
		}
	}
	t.files[path] = text[:at] + strings.TrimLeft(text[min(end+1, len(text)):], "\n")
}

const testDir = "minimal-examples-lowlevel/api-tests/api-test-backtrace-codec"

// tests adds the tests of the steps. Each begins in test/main.c with //@STEP NAME.
func (t *tree) tests(upto int) {
	parts := strings.Split(t.read("test/main.c"), "\n//@")
	out, names := parts[0]+"\n", []string{"basic"}
	for _, p := range parts[1:] {
		head, body, _ := strings.Cut(p, "\n")
		number, name, _ := strings.Cut(head, " ")
		switch n, _ := strconv.Atoi(number); {
		case head == "table":
			for _, name := range names[1:] {
				out += fmt.Sprintf("\t{ %q, t_%s },\n", name, strings.ReplaceAll(name, "-", "_"))
			}
			out += body + "\n"
		case head == "end":
			out += body + "\n"
		case n <= upto:
			out += body + "\n"
			names = append(names, name)
		}
	}
	var tool []string
	if upto >= 24 {
		tool = []string{"pipe", "slow", "nofile"}
	}
	if upto >= 26 {
		tool = append(tool, "readme")
	}
	t.files[testDir+"/main.c"] = strings.TrimRight(out, "\n") + "\n"
	t.files[testDir+"/tool.sh"] = t.read("test/tool.sh")
	t.files[testDir+"/CMakeLists.txt"] = strings.NewReplacer("@TESTS@", strings.Join(names, " "), "@TOOL@", strings.Join(tool, " ")).
		Replace(t.read("test/CMakeLists.txt.in"))
}

// write writes the files.
func (t *tree) write() error {
	for _, path := range slices.Sorted(maps.Keys(t.files)) {
		name := filepath.Join(t.root, path)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(path, ".sh") {
			mode = 0o755
		}
		if err := os.WriteFile(name, []byte(t.files[path]), mode); err != nil {
			return err
		}
	}
	return t.err
}
