package main

import (
	"bytes"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

var update = flag.Bool("update", false, "write what the commands print into the documents")

// inPath returns an environment for bash in which this command is btfleet.
func inPath(t *testing.T) []string {
	t.Helper()
	cmdtest.Need(t, "bash")
	bin := t.TempDir()
	// The test binary acts as the command; see TestMain.
	script := "#!/bin/sh\n" + asCommand + "=1 exec '" + os.Args[0] + "' \"$@\"\n"
	if strings.Contains(os.Args[0], "'") {
		t.Skip("the test binary has a quote in its name")
	}
	if err := os.WriteFile(filepath.Join(bin, "btfleet"), []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	return []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "NO_COLOR=1"}
}

// TestSessions runs the commands in the documents, in an empty directory.
func TestSessions(t *testing.T) {
	env := inPath(t)
	for name, least := range map[string]int{"fleet.md": 3, "configuration.md": 3} {
		cmdtest.Session{Document: "../../docs/" + name, Least: least, Update: *update, Run: cmdtest.Shell(t.TempDir(), env)}.Test(t)
	}
}

// The commands of the pipelines in the document fail for the build that leaks, and only for it.
func TestPipelines(t *testing.T) {
	env := inPath(t)
	text, err := os.ReadFile(filepath.FromSlash("../../docs/configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^ +(?:run:|-) (btfleet leaks .*)$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) != 1 {
		t.Fatalf("%d commands in the document, want one for GitHub", len(commands))
	}
	store := leaky(t)
	for _, command := range commands {
		for fw, want := range map[string]int{"1.4.0": 0, "1.4.1": 1, "1.4.9": 2} {
			c := exec.Command("bash", "-e", "-c", command[1])
			c.Env = append(env, "STORE="+store, "FW="+fw)
			out, err := c.CombinedOutput()
			if code := c.ProcessState.ExitCode(); code != want {
				t.Errorf("%s, version %s: exit code %d, want %d; %v\n%s", command[1], fw, code, want, err, out)
			}
		}
	}
}

// systemd accepts the unit.
func TestUnit(t *testing.T) {
	cmdtest.Need(t, "systemd-analyze")
	text, err := os.ReadFile(filepath.FromSlash("../../deploy/btfleet.service"))
	if err != nil {
		t.Fatal(err)
	}
	// The program is not installed here.
	text = bytes.Replace(text, []byte("/usr/bin/btfleet "), []byte(os.Args[0]+" "), 1)
	unit := filepath.Join(t.TempDir(), "btfleet.service")
	if err := os.WriteFile(unit, text, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), "btfleet.service") {
		t.Errorf("%v: %s", err, out)
	}
	flags := serveCommand().Flags()
	for _, f := range regexp.MustCompile(` --([a-z-]+)`).FindAllSubmatch(text, -1) {
		if flags.Lookup(string(f[1])) == nil {
			t.Errorf("--%s: no such flag", f[1])
		}
	}
}

// The help of each command has an example and exit codes of its own, and fits a terminal of 80 columns.
func TestHelp(t *testing.T) {
	names := []string{""}
	for _, c := range newRoot().Commands() {
		names = append(names, c.Name())
	}
	for _, name := range names {
		code, out, errs := ask(append(strings.Fields(name), "--help")...)
		if code != 0 || !strings.Contains(out, "Usage:") {
			t.Errorf("%s: exit code %d, %s%s", name, code, out, errs)
		}
		if !strings.Contains(out, "Examples:\n  btfleet") || name != "" && (ownCodes[name] == "" || !strings.Contains(out, "Exit codes:\n  "+ownCodes[name][:9])) {
			t.Errorf("%s: no example, or no exit codes: %s", name, out)
		}
		for line := range strings.Lines(out) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
				t.Errorf("%s: %d characters: %s", name, n, line)
			}
		}
	}
}

// Without tokens only this machine can connect. Flags are checked before the server begins.
func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "127.9.9.9:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "192.0.2.1:1": false, "example.com:1": false, "127.0.0.1": false, "": false} {
		if got := loopback(address); got != want {
			t.Errorf("%q: %v, want %v", address, got, want)
		}
	}
	for _, args := range [][]string{{"serve", "--listen", ":1"}, {"serve", "--write-every", "0"}, {"serve", "--cert", "nofile", "--key", "nofile"}} {
		if code, _, errs := ask(args...); code != 2 || !strings.Contains(errs, args[1]) {
			t.Errorf("%v: exit code %d, %s", args, code, errs)
		}
	}
}

// The document has the columns of each table, and no others.
func TestColumns(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash("../../docs/store.md"))
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile(`[a-z_]+`)
	for table, row := range map[string]any{store.Dumps: store.Dump{}, store.Facts: store.Fact{}, store.Paths: store.Path{}, store.Frames: store.Frame{}} {
		var want []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(row)) {
			name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
			want = append(want, name)
		}
		inText := regexp.MustCompile("(?m)^\\| `" + table + "` \\|.*\\|(.*)\\|$").FindSubmatch(text)
		if len(inText) == 0 || !slices.Equal(word.FindAllString(string(inText[1]), -1), want) {
			t.Errorf("store.md, %s: %s, want %v", table, inText, want)
		}
	}
}

// The table of diff fits a terminal, with long names and many devices.
func TestDiffFits(t *testing.T) {
	frame := query.Frame{Function: "net::transport::session<tls, std::allocator<char>>::on_read(unsigned long)", File: "session.cpp", Line: 70}
	d := &query.Diff{BuildBefore: "aaaaaaaaaaaaaaaa", BuildAfter: "cccccccccccccccc", DevicesBefore: 9_999, DevicesAfter: 9_999, Comparable: true, ByName: true, Rows: []query.Change{
		{Before: 91_030, After: 99_376, Had: 9_990, Have: 9_999, Kind: "shrunk", P: 1.1e-21, Evidence: query.Perhaps, Stack: []query.Frame{frame}}}}
	var out strings.Builder
	if err := new(question).writeDiff(&out, d); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// compose.yaml has flags of btfleet serve, the port at which it listens, and the files and the directory of the Dockerfile. It is not
// run: that needs a Docker daemon.
func TestCompose(t *testing.T) {
	const deploy = "../../deploy"
	text, err := os.ReadFile(deploy + "/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Services map[string]struct {
			Build          struct{ Context, Dockerfile string }
			Command        []string
			Ports, Volumes []string
			Memory         string `yaml:"mem_limit"`
			Restart        string
			Grace          string `yaml:"stop_grace_period"`
		}
		Volumes map[string]struct{}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	s := c.Services["btfleet"]
	if len(c.Services) != 1 || len(s.Command) == 0 || s.Command[0] != "serve" {
		t.Fatalf("%+v", c)
	}
	serve := serveCommand()
	if err := serve.ParseFlags(s.Command[1:]); err != nil || serve.Flags().NArg() > 0 {
		t.Errorf("%v, %q", err, serve.Flags().Args())
	}
	_, port, err := net.SplitHostPort(serve.Flag("listen").Value.String())
	if want := port + ":" + port; err != nil || len(s.Ports) != 1 || s.Ports[0] != want {
		t.Errorf("ports %q, want %s, %v", s.Ports, want, err)
	}
	docker, err := os.ReadFile(filepath.Join(deploy, s.Build.Context, s.Build.Dockerfile))
	if err != nil {
		t.Fatal(err)
	}
	dir := regexp.MustCompile(`(?m)^WORKDIR (.*)$`).FindSubmatch(docker)
	name, target, _ := strings.Cut(s.Volumes[0], ":")
	if _, ok := c.Volumes[name]; !ok || len(s.Volumes) != 1 || target != string(dir[1]) || !bytes.Contains(docker, []byte("EXPOSE "+port+"\n")) {
		t.Errorf("volumes %q, port %s: not those of the Dockerfile", s.Volumes, port)
	}
	for _, flag := range []string{"store", "spool", "tokens"} {
		if v := serve.Flag(flag).Value.String(); strings.HasPrefix(v, "/") || !bytes.Contains(docker, []byte(`"`+v+`"`)) {
			t.Errorf("--%s %s is not in the volume", flag, v)
		}
	}
	t.Log("not run: that needs a Docker daemon")
}
