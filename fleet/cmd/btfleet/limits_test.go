package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/server"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// Clients that open connections and send nothing cannot use up the files and the memory of the server:
// more than the limit wait, until others end.
func TestConnections(t *testing.T) {
	most := server.DefaultLimits.Connections
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur < uint64(most)+200 {
		t.Skipf("a limit of %d open files, %v", files.Cur, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c := start(t, t.TempDir(), address)
	defer func() { c.Process.Kill(); c.Wait() }()
	http.DefaultClient.CloseIdleConnections()
	answers := func() bool {
		client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + address + "/healthz")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	}
	var open []net.Conn
	begin := time.Now()
	for range most {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\n")
		open = append(open, conn)
	}
	if time.Since(begin) < 7*time.Second && answers() { // after 10 s, the server closes the first ones
		t.Errorf("an answer beside %d open connections", most)
	}
	for _, conn := range open[most/2:] {
		conn.Close()
	}
	if !answers() {
		t.Error("no answer after connections were closed")
	}
}

// SIGHUP replaces the tokens, unless the file cannot be read, and does not end the server.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens")
	write := func(lines string) {
		if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one, oneHash := server.NewToken()
	two, twoHash := server.NewToken()
	write("read " + oneHash + "\n")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c := start(t, dir, address, "--tokens", file)
	defer func() { c.Process.Kill(); c.Wait() }()
	status := func(token string) int {
		resp := request(t, "GET", "http://"+address+"/v1/builds", token, "", nil)
		return resp.StatusCode
	}
	if status(one) != 200 || status(two) != 401 {
		t.Fatal("the tokens do not count")
	}
	hangUp := func() {
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	write("read " + twoHash + "\n")
	hangUp()
	for end := time.Now().Add(10 * time.Second); status(two) != 200; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the new token does not count")
		}
	}
	if status(one) != 401 {
		t.Error("the old token counts")
	}
	for _, bad := range []func(){func() { write("read 12\n") }, func() { write("# no token\n") }, func() { os.Remove(file) }} {
		bad()
		hangUp()
		time.Sleep(100 * time.Millisecond)
		if status(two) != 200 {
			t.Error("a file that cannot be read changes the tokens")
		}
	}
}

// SIGHUP replaces the certificate, unless it cannot be read.
func TestCertificateReload(t *testing.T) {
	dir := t.TempDir()
	_, cert, key := certificates(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c := start(t, dir, address, "--cert", cert, "--key", key)
	defer func() { c.Process.Kill(); c.Wait() }()
	hangUp := func() {
		if err := c.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	served := func() string {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return string(conn.ConnectionState().PeerCertificates[0].Raw)
	}
	first := served()
	_, newCert, newKey := certificates(t)
	for from, to := range map[string]string{newCert: cert, newKey: key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if served() != first {
		t.Fatal("the new certificate is served without SIGHUP")
	}
	hangUp()
	for end := time.Now().Add(10 * time.Second); served() == first; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the new certificate is not served")
		}
	}
	second := served()
	if err := os.WriteFile(key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp()
	time.Sleep(100 * time.Millisecond)
	if served() != second {
		t.Error("a key that cannot be read changes the certificate")
	}
}

// A damaged file is an error of compact, and its day is deleted like the others.
func TestOldDamagedFile(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().AddDate(0, 0, -9)
	for i := range 5 {
		d := fmt.Sprint("d", i)
		b := &store.Batch{Name: d, Day: old, Dumps: []store.Dump{{Build: "b", Device: d, Upload: d}}, Facts: []store.Fact{{Build: "b", Device: d}}}
		if err := s.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	bad := "facts/day=" + old.UTC().Format(time.DateOnly) + "/d2.parquet"
	if err := os.WriteFile(filepath.Join(dir, bad), []byte("PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := ask("compact", "--store", dir, "--keep-days", "3")
	if code != 1 || !strings.Contains(errs, bad) || !strings.Contains(errs, "deleted "+old.UTC().Format(time.DateOnly)) {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if code, _, errs := ask("compact", "--store", dir, "--keep-days", "3"); code != 0 || errs != "" {
		t.Errorf("then exit code %d, %s", code, errs)
	}
}
