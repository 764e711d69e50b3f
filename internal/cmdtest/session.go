package cmdtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Session is a document that shows commands and their output. In a block of type console, a
// command follows "$ ", and continues on the next line if the line ends in a backslash or a
// pipe. Its output follows. "…" matches any text in a line, and a line with only "…" matches
// any lines. A block after a comment "<!-- needs: tool … -->" is skipped if one of the tools
// is not installed; a name in capitals is a variable that must be set. In a block after
// "<!-- numbers vary -->", numbers may differ.
type Session struct {
	Document string
	Least    int  // minimum number of commands
	Update   bool // rewrite the document with the actual output where it differs
	// Run runs a command and returns its output.
	Run func(t *testing.T, line string) (string, error)
	// Plain, if not nil, returns text without the parts that differ between runs.
	Plain func(text string) string
}

// Test runs the commands of the document and compares their output.
func (s Session) Test(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(s.Document)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(data), "```")
	ran := 0
	for i := 1; i < len(blocks); i += 2 {
		body, console := strings.CutPrefix(blocks[i], "console\n")
		if !console {
			continue
		}
		plain := s.Plain
		if m := remark.FindStringSubmatch(blocks[i-1]); m != nil {
			if m[1] == "numbers vary" {
				plain = func(text string) string { return numbers.ReplaceAllString(text, "#") }
			} else if tools, ok := strings.CutPrefix(m[1], "needs: "); !ok {
				t.Errorf("%s: %s, expected needs, or numbers vary", s.Document, m[0])
			} else if !installed(t, s.Document, strings.Fields(tools)) {
				continue
			}
		}
		list := commands(body)
		ran += len(list)
		written, faults := s.block(t, list, plain)
		for _, f := range faults {
			if _, ok := f.(difference); !ok || !s.Update {
				t.Error(f)
			}
		}
		blocks[i] = written
	}
	if ran < s.Least {
		t.Errorf("%s: %d commands ran, expected %d or more", s.Document, ran, s.Least)
	}
	if s.Update {
		if err := os.WriteFile(s.Document, []byte(strings.Join(blocks, "```")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// difference is a difference between the document and the output.
type difference struct{ error }

// block runs the commands of a block. It returns the updated block, and the differences from
// the document.
func (s Session) block(t *testing.T, list []typed, plain func(string) string) (written string, faults []error) {
	written = "console\n"
	for _, c := range list {
		out, err := s.Run(t, c.line)
		got, want := out, c.want
		if plain != nil {
			got, want = plain(got), plain(want)
		}
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("%s: $ %s: %v\n%s", s.Document, c.line, err, out))
			out = c.want
		case like(got, want):
			out = c.want
		default:
			faults = append(faults, difference{fmt.Errorf("%s: $ %s: %s\nall of it:\n%s(go test -update writes it anew)",
				s.Document, c.line, firstUnlike(got, want), out)})
		}
		written += "$ " + c.line + "\n" + keep(out, c.want)
	}
	return written, faults
}

// firstUnlike returns the first line of got that is not like that of want.
func firstUnlike(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if w[i] == "…" || !like(g[i], w[i]) {
			return fmt.Sprintf("line %d:\n got %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// keep returns text with its first and last lines replaced by the matching lines of was,
// which may have "…" for parts that differ between runs.
func keep(text, was string) string {
	t, w := strings.SplitAfter(text, "\n"), strings.SplitAfter(was, "\n")
	n := 0
	for n < len(t) && n < len(w) && w[n] != "…\n" && like(t[n], w[n]) {
		t[n] = w[n]
		n++
	}
	for i, j := len(t)-1, len(w)-1; i >= n && j >= n && w[j] != "…\n" && like(t[i], w[j]); i, j = i-1, j-1 {
		t[i] = w[j]
	}
	return strings.Join(t, "")
}

var (
	remark = regexp.MustCompile(`<!-- ([^>]*?) -->\n$`)
	// numbers matches numbers, bars, and the spaces and lines that depend on their width.
	numbers = regexp.MustCompile(` *0x[0-9a-f]+| *[0-9][0-9,.]*|-----+|[▁-█]+| {2,}`)
)

// installed reports whether all tools are installed, and logs the first missing tool. A name
// in capitals is a variable that must be set.
func installed(t *testing.T, document string, tools []string) bool {
	for _, tool := range tools {
		if strings.ToUpper(tool) == tool {
			if os.Getenv(tool) == "" {
				t.Logf("%s: %s is not set, a block was skipped", document, tool)
				return false
			}
			continue
		}
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("%s: %s is not installed, a block was skipped", document, tool)
			return false
		}
	}
	return true
}

var unfinished = regexp.MustCompile(`(\\|\|)$`)

// typed is a command of a session and its output in the document.
type typed struct{ line, want string }

// commands returns the commands of a console block.
func commands(body string) (list []typed) {
	more := false
	for _, line := range strings.SplitAfter(body, "\n") {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			list = append(list, typed{line: strings.TrimSuffix(command, "\n")})
		} else if len(list) > 0 {
			c := &list[len(list)-1]
			if more {
				c.line += "\n" + strings.TrimSuffix(line, "\n")
			} else {
				c.want += line
			}
		}
		more = len(list) > 0 && list[len(list)-1].want == "" && unfinished.MatchString(list[len(list)-1].line)
	}
	return list
}

// Shell returns a function for Session.Run that runs a command by bash in a directory, with
// env added to the environment. The output includes standard error. The command must exit
// with code 0.
func Shell(dir string, env []string) func(t *testing.T, line string) (string, error) {
	return func(t *testing.T, line string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var out bytes.Buffer
		c := exec.CommandContext(ctx, "bash", "-c", line)
		c.Dir, c.Env = dir, append(os.Environ(), env...)
		c.Stdout, c.Stderr = &out, &out
		c.WaitDelay = time.Minute
		err := c.Run()
		return out.String(), err
	}
}

// like reports whether text matches want, in which "…" matches any text.
func like(text, want string) bool {
	pattern := regexp.QuoteMeta(want)
	pattern = regexp.MustCompile(`(?m)^…\n`).ReplaceAllString(pattern, `(?s:.*?)`)
	pattern = strings.ReplaceAll(pattern, "…", `.*?`)
	return regexp.MustCompile(`\A` + pattern + `\z`).MatchString(text)
}
