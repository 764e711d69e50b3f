package main

import (
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/server"
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
