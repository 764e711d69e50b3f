package fleettest

import (
	"bufio"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

//go:embed clickhouse.js
var clickhouse []byte

// ClickHouse starts ClickHouse (chDB of npm) behind its HTTP interface, and returns the URL of its
// default database. It skips the test if chDB is not installed.
func ClickHouse(t testing.TB) string {
	t.Helper()
	cmdtest.Need(t, "node")
	if exec.Command("node", "-e", "require.resolve('chdb')").Run() != nil {
		t.Skip("chdb of npm is not installed, or not in NODE_PATH")
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "clickhouse.js")
	if err := os.WriteFile(script, clickhouse, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("node", script, dir)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); c.Wait() })
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("chdb: %v", err)
	}
	return "http://127.0.0.1:" + strings.TrimSpace(port) + "/default"
}
