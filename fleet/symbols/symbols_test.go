package symbols

import (
	"debug/elf"
	"fmt"
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

// The build is that of the linker's note, or the one that the user names.
func TestBuild(t *testing.T) {
	s := open(t)
	with, without := compile(t, "-Wl,--build-id=0x5ca1ab1e0ddba115"), compile(t, "-Wl,--build-id=none")
	for _, c := range []struct{ file, id, want string }{{with, "", "5ca1ab1e0ddba115"}, {with, "v7", "v7"}, {without, "v7", "v7"}, {without, "", ""}, {"symbols_test.go", "v7", ""}} {
		if build, _, err := Add(t.Context(), s.Store, s.db, c.file, c.id); build != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s, %q: build %q, %v, want %q", c.file, c.id, build, err, c.want)
		}
	}
}

// put stores a log of a build with allocations by call paths of these addresses.
// stored is a store with its database.
type stored struct {
	*store.Store
	db *query.DB
}

// open returns an empty store.
func open(t *testing.T) stored {
	t.Helper()
	s, err := store.Open(t.TempDir())
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
		rows, err := store.Read[store.Frame](s.Store, name)
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
	if n, err := Update(t.Context(), s.Store, s.db); err != nil || n.Asked != 0 {
		t.Errorf("without an ELF file: %v %v", n, err)
	}
	build, n, err := Add(t.Context(), s.Store, s.db, file, "")
	if err != nil || build != "5ca1ab1e0ddba115" || n.Named != 1 {
		t.Fatal(build, n, err)
	}
	got := names(t, s, build)
	if name := got[fmt.Sprintf("%#x", at)]; name != "outer" && name != "inner outer" {
		t.Errorf("%q, want outer", got)
	}
	put(t, s, "5ca1ab1e0ddba115", at, function(t, file, "main")+4)
	if n, err := Update(t.Context(), s.Store, s.db); err != nil || n.Named != 1 {
		t.Errorf("%v %v, want one more", n, err)
	}
	if n, err := Update(t.Context(), s.Store, s.db); err != nil || n.Asked != 0 {
		t.Errorf("%v %v, want none", n, err)
	}
	put(t, s, "5ca1ab1e0ddba115", 0x10) // in no function
	if n, err := Update(t.Context(), s.Store, s.db); err != nil || n.Asked != 1 || n.Named != 0 || !strings.HasPrefix(n.String(), "0 of 1 addresses named: ") {
		t.Errorf("%v %v, want none of one", n, err)
	}
}
