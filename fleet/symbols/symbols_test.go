package symbols

import (
	"context"
	"debug/elf"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

const program = `
static inline __attribute__((always_inline)) int inner(int x) { return x * 3; }
__attribute__((noinline)) int outer(int x) {
	return inner(x) + 1;
}
int main(int argc, char **argv) { (void)argv; return outer(argc) == 7; }
`

func compile(t *testing.T, flags ...string) string {
	t.Helper()
	cmdtest.Need(t, "gcc")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.c"), []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("gcc", append([]string{"-g", "-O1", "-no-pie", "-o", "fw.elf", "p.c"}, flags...)...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "fw.elf")
}

// function returns the address of a function, from the symbol table.
func function(t *testing.T, file, name string) uint64 {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if s.Name == name {
			return s.Value
		}
	}
	t.Fatalf("%s has no function %s", file, name)
	return 0
}

// BuildID returns the build ID of the linker's note, as readelf prints it. Without a note, it
// returns a hash that does not depend on debug information.
func TestBuildID(t *testing.T) {
	cmdtest.Need(t, "readelf", "strip")
	file := compile(t, "-Wl,--build-id=0x5ca1ab1e0ddba115")
	if id, err := BuildID(file); err != nil || id != "5ca1ab1e0ddba115" {
		t.Errorf("%q %v", id, err)
	}
	file = compile(t, "-Wl,--build-id=none")
	whole, err := BuildID(file)
	if err != nil || len(whole) != 40 {
		t.Fatal(whole, err)
	}
	if out, err := exec.Command("strip", file).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if stripped, err := BuildID(file); err != nil || stripped != whole {
		t.Errorf("%s %v, want %s", stripped, err, whole)
	}
	if other, err := BuildID(compile(t, "-Wl,--build-id=none", "-O0")); err != nil || other == whole {
		t.Errorf("%s %v, want another", other, err)
	}
	if _, err := BuildID("symbols_test.go"); err == nil {
		t.Error("a file that is not an ELF file has a build ID")
	}
}

// put stores a log of a build with allocations by call paths of these addresses.
// stored is a store with its database.
type stored struct {
	*store.Store
	db *query.DB
}

func (s stored) Unnamed(ctx context.Context) (map[string][]string, error) { return s.db.Unnamed(ctx) }

// open returns an empty store.
func open(t *testing.T) stored {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	db, err := query.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return stored{s, db}
}

func put(t *testing.T, s stored, build string, addresses ...uint64) {
	t.Helper()
	log := "~h#boot w=64 build=" + build + "\n"
	for _, a := range addresses {
		log += fmt.Sprintf("~b#size: 16, %#x\n", a)
	}
	b := &store.Batch{Name: build + fmt.Sprint(addresses), Day: time.Now()}
	u := ingest.Upload{Device: "d", Received: time.Now(), Text: []byte(log)}
	if _, err := u.Read(t.Context(), &ingest.State{}, ingest.DefaultLimits, func(d *ingest.Dump) error { d.Append(b); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// names returns the functions of the addresses in a store, innermost first.
func names(t *testing.T, s stored, build string) map[string]string {
	t.Helper()
	list, err := s.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range list[store.Frames] {
		rows, err := store.Read[store.Frame](t.Context(), s.Store, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Build != build {
				continue
			}
			found[r.Address] = strings.TrimSpace(fmt.Sprintf("%s %s", found[r.Address], r.Function))
		}
	}
	return found
}

// Functions have names once the ELF file is in the store, and each address is looked up only
// once.
func TestUpdate(t *testing.T) {
	s := open(t)
	file := compile(t, "-Wl,--build-id=0x5ca1ab1e0ddba115")
	at := function(t, file, "outer") + 2
	put(t, s, "5ca1ab1e0ddba115", at)
	if n, err := Update(t.Context(), s, nil); err != nil || n.Asked != 0 {
		t.Errorf("without an ELF file: %v %v", n, err)
	}
	build, n, err := Add(t.Context(), s, file)
	if err != nil || build != "5ca1ab1e0ddba115" || n.Named != 1 {
		t.Fatal(build, n, err)
	}
	got := names(t, s, build)
	if name := got[fmt.Sprintf("%#x", at)]; name != "outer" && name != "inner outer" {
		t.Errorf("%q, want outer", got)
	}
	put(t, s, "5ca1ab1e0ddba115", at, function(t, file, "main")+4)
	if n, err := Update(t.Context(), s, nil); err != nil || n.Named != 1 {
		t.Errorf("%v %v, want one more", n, err)
	}
	if n, err := Update(t.Context(), s, nil); err != nil || n.Asked != 0 {
		t.Errorf("%v %v, want none", n, err)
	}
	put(t, s, "5ca1ab1e0ddba115", 0x10) // in no function
	if n, err := Update(t.Context(), s, nil); err != nil || n.Asked != 1 || n.Named != 0 || !strings.HasPrefix(n.String(), "0 of 1 addresses named: ") {
		t.Errorf("%v %v, want none of one", n, err)
	}
}

// The file comes from a debuginfod server, which the test implements.
func TestDebuginfod(t *testing.T) {
	file := compile(t, "-Wl,--build-id=0x5ca1ab1e0ddba115")
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked = append(asked, r.URL.Path); r.URL.Path != "/buildid/5ca1ab1e0ddba115/debuginfo" {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, file)
	}))
	defer server.Close()
	check(t, file, server.URL)
	if len(asked) != 1 {
		t.Errorf("%v", asked)
	}
}

// A file that is no ELF file does not keep other builds without names, and a server is not asked twice for what
// devices name.
func TestDebuginfodIsAskedOnce(t *testing.T) {
	file := compile(t, "-Wl,--build-id=0x5ca1ab1e0ddba115")
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked[r.URL.Path]++; r.URL.Path {
		case "/buildid/5ca1ab1e0ddba115/debuginfo":
			http.ServeFile(w, r, file)
		case "/buildid/0bad/debuginfo":
			fmt.Fprint(w, "no ELF file")
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	s := open(t)
	at := function(t, file, "outer") + 2
	for _, build := range []string{"0bad", "0404", "5ca1ab1e0ddba115"} {
		put(t, s, build, at)
	}
	servers := NewDebuginfod(server.URL)
	if n, err := Update(t.Context(), s, servers); err == nil || n.Named != 1 {
		t.Errorf("%v, %v, want one and an error", n, err)
	}
	put(t, s, "5ca1ab1e0ddba115", at+1)
	if n, err := Update(t.Context(), s, servers); err != nil || n.Named != 0 {
		t.Errorf("%v, %v", n, err)
	}
	if len(asked) != 3 {
		t.Errorf("%v", asked)
	}
	for path, n := range asked {
		if n != 1 {
			t.Errorf("%d requests for %s", n, path)
		}
	}
}

func check(t *testing.T, file string, servers ...string) {
	t.Helper()
	s := open(t)
	at := function(t, file, "outer") + 2
	put(t, s, "5ca1ab1e0ddba115", at)
	put(t, s, "../../of/a/device", at) // no server is asked for it
	if n, err := Update(t.Context(), s, NewDebuginfod(strings.Join(servers, " "))); err != nil || n.Named != 1 {
		t.Fatal(n, err)
	}
	if name := names(t, s, "5ca1ab1e0ddba115")[fmt.Sprintf("%#x", at)]; !strings.HasSuffix(name, "outer") {
		t.Errorf("%q, want outer", name)
	}
}

// The file comes from Debian's debuginfod server.
func TestRealDebuginfod(t *testing.T) {
	cmdtest.Long(t)
	cmdtest.Need(t, "debuginfod")
	file := compile(t, "-Wl,--build-id=0x5ca1ab1e0ddba115")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	l := httptest.NewServer(http.NotFoundHandler())
	port := l.Listener.Addr().String()[strings.LastIndex(l.Listener.Addr().String(), ":")+1:]
	l.Close()
	c := exec.CommandContext(ctx, "debuginfod", "-F", "-p", port, "-d", ":memory:", "-L", filepath.Dir(file))
	c.Env = append(os.Environ(), "DEBUGINFOD_URLS=")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill()
	server := "http://127.0.0.1:" + port
	for ctx.Err() == nil {
		if resp, err := http.Get(server + "/buildid/5ca1ab1e0ddba115/debuginfo"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == 200 {
				check(t, file, server)
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("debuginfod does not find the file")
}
