package cmdtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// axeVersion is the release of axe-core (MPL-2.0, by Deque) that examines pages. npm
// downloads it for the test; it is not part of pages or of this repository.
const axeVersion = "4.14.1"

// Axe returns the script of axe-core. It skips the test if the script cannot be downloaded.
func Axe(t testing.TB) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("no npm")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, npm, "pack", "--silent", "axe-core@"+axeVersion)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("npm cannot fetch axe-core: %v %s", err, out)
	}
	c = exec.Command("tar", "-xzf", "axe-core-"+axeVersion+".tgz", "package/axe.min.js")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	script, err := os.ReadFile(filepath.Join(dir, "package/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}
