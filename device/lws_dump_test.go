package device

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// The function of docs/device.md for users of plain lws compiles with lws, and writes headers that can be read around
// the lines of lws, of which an empty list has none.
func TestLwsDump(t *testing.T) {
	lws := lwsFlags(t)
	code := regexp.MustCompile(`(?s)\nstatic void dump_heap\(.*?\n}\n`).FindString(read(t, "../docs/device.md"))
	if code == "" {
		t.Fatal("docs/device.md has no dump_heap")
	}
	source := filepath.Join(t.TempDir(), "app.c")
	program := "#define _GNU_SOURCE\n#include <malloc.h>\n#include <stdio.h>\n#include <libwebsockets.h>\n" +
		"static lws_dll2_owner_t owner;\n#undef _lws_alloc_metadata_dump_lws\n" +
		"#define _lws_alloc_metadata_dump_lws(cb, arg) _lws_alloc_metadata_dump(&owner, cb, arg)\n" + code + `
int main(void)
{
	dump_heap("timer");
	dump_heap("exit");
	return 0;
}
`
	if err := os.WriteFile(source, []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(filepath.Dir(source), "app")
	if out, err := exec.Command("gcc", append([]string{"-Wall", "-Werror", source, "-o", exe}, lws...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(exe).Output()
	if err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for line := range strings.Lines(string(out)) {
		var h codec.Header
		if err := codec.ParseHeader(&h, []byte(strings.TrimSpace(line))); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		verbs = append(verbs, string(h.Verb))
	}
	if got := strings.Join(verbs, " "); got != "boot begin heap end begin heap end" {
		t.Errorf("%s: %q", got, out)
	}
}
