package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// atLimit returns a log that is near a limit of an upload: one of the most call paths, of the most frames, of the most call paths over
// all dumps, or of the most dumps.
func atLimit(t *testing.T, kind int, device string) []byte {
	switch kind % 4 {
	case 0:
		return fleettest.Log(device, "b", 2, 90_000)
	case 1:
		return bytes.Replace(cmdtest.DeepLog(t, 50, 1000, 1000), []byte("dev=d1"), []byte("dev="+device), 1)
	case 2:
		log := fleettest.Log(device, "b", 1, 100)
		for n := range 9_000 {
			log = fmt.Appendf(log, "~h#begin %d k=diff base=%d\n~h#end %d\n", n+1, n, n+1)
		}
		return log
	}
	log := fmt.Appendf(nil, "~h#boot dev=%s build=b w=32\n", device)
	for n := range 10_000 {
		log = fmt.Appendf(log, "~h#begin %d t=%d\n~b#size: 16, %#x\n~h#end %d\n", n, n*1000, 0x8000000+16*n, n)
	}
	return log
}

// The memory of a server that reads 16 hostile uploads at the same time, of as many devices and addresses, and then writes them, is
// at most that of SECURITY.md.
func TestMemoryOfUploads(t *testing.T) {
	if !cmdtest.All() {
		t.Skip("it takes minutes: LWSBT_FULL is not all")
	}
	security, err := os.ReadFile(filepath.FromSlash("../../../SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	claim := regexp.MustCompile(`16 uploads at the limits at the same time take at most ([0-9,]+) MB`).FindSubmatch(security)
	if claim == nil {
		t.Fatal("SECURITY.md has no limit")
	}
	limit, err := strconv.Atoi(string(bytes.ReplaceAll(claim[1], []byte(","), nil)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var bodies [16][]byte
	for i := range bodies {
		bodies[i] = z.EncodeAll(atLimit(t, i, fmt.Sprint("h", i)), nil)
	}
	c := start(t, t.TempDir(), address)
	defer func() { c.Process.Kill(); c.Wait() }()
	var all sync.WaitGroup
	var accepted atomic.Int64
	for i := range bodies {
		all.Go(func() {
			from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i))}}
			client := &http.Client{Transport: &http.Transport{DialContext: from.DialContext}}
			req, err := http.NewRequest("PUT", "http://"+address+fmt.Sprintf("/v1/dumps/h%d", i), bytes.NewReader(bodies[i]))
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if text, _ := io.ReadAll(resp.Body); resp.StatusCode == 201 {
				accepted.Add(1)
			} else {
				t.Logf("upload %d: %s %s", i, resp.Status, text)
			}
		})
	}
	all.Wait()
	time.Sleep(10 * time.Second) // in which they are written, and judged
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	peak, err := strconv.Atoi(string(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)[1]))
	if err != nil || accepted.Load() < 8 {
		t.Fatalf("%v, %d accepted: too few to show anything", err, accepted.Load())
	}
	if t.Logf("%d uploads accepted, at most %d MB", accepted.Load(), peak/1000); peak/1000 > limit {
		t.Errorf("%d MB, SECURITY.md says %d", peak/1000, limit)
	}
}
