package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/store"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// asCommand is an environment variable. If it is set, the test binary acts as btfleet.
const asCommand = "BTFLEET_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	code := m.Run()
	os.RemoveAll(leakyDir)
	os.Exit(code)
}

// start starts btfleet serve at an address and waits until it listens.
func start(t *testing.T, dir, address string, flags ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], append([]string{"serve", "--store", filepath.Join(dir, "store"), "--spool", filepath.Join(dir, "spool"),
		"--listen", address, "--write-every", "20ms", "--rate", "1000"}, flags...)...)
	// A killed process does not delete its temporary directory.
	c.Env = append(os.Environ(), asCommand+"=1", "TMPDIR="+dir)
	var log bytes.Buffer
	c.Stderr = &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if resp, err := http.Get("http://" + address + "/healthz"); err == nil {
			resp.Body.Close()
			return c
		}
		if time.Now().After(end) {
			c.Process.Kill()
			c.Wait()
			t.Fatalf("it does not listen:\n%s", log.String())
		}
	}
}

const killDevices, killPaths = 8, 20

// kill kills a server at random moments while devices send dumps, and at last interrupts one. It returns the
// numbers of acknowledged uploads by device. Upload i has the firmware i. Devices repeat uploads that were not acknowledged,
// so in the end each is in the store once.
func kill(t *testing.T, dir string, kills int, flags ...string) (sent []int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	ctx, stop := context.WithCancel(t.Context())
	sent = make([]int, killDevices)
	var clients sync.WaitGroup
	for d := range sent {
		clients.Go(func() {
			id := fmt.Sprintf("d%d", d)
			for ctx.Err() == nil {
				log := bytes.Replace(fleettest.Log(id, "b", 1, killPaths), []byte(" fw=1.0"), fmt.Appendf(nil, " fw=%d", sent[d]), 1)
				req, _ := http.NewRequest("PUT", "http://"+address+"/v1/dumps/"+id, bytes.NewReader(log))
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode == 201 || resp.StatusCode == 200 {
					sent[d]++
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for range kills {
		c := start(t, dir, address, flags...)
		time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond)
		c.Process.Kill()
		c.Wait()
	}
	c := start(t, dir, address, flags...)
	time.Sleep(50 * time.Millisecond)
	stop()
	clients.Wait()
	c.Process.Signal(os.Interrupt) // the server then writes all waiting uploads
	if err := c.Wait(); err != nil && !strings.Contains(err.Error(), "130") {
		t.Errorf("after an interrupt: %v", err)
	}
	return sent
}

// stored returns the dumps and the facts in the directory of a store.
func stored(t *testing.T, dir string) (dumps []store.Dump, facts []store.Fact) {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range list[store.Dumps] {
		d, err := store.Read[store.Dump](s, list[store.Dumps][i])
		f, err2 := store.Read[store.Fact](s, list[store.Facts][i])
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		dumps, facts = append(dumps, d...), append(facts, f...)
	}
	return dumps, facts
}

// Each upload that was acknowledged is in the store once, although servers are killed.
func TestKill(t *testing.T) {
	kills := 5
	switch {
	case cmdtest.All():
		kills = 200
	case cmdtest.Full():
		kills = 20
	}
	dir := t.TempDir()
	sent := kill(t, dir, kills)
	dumps, facts := stored(t, filepath.Join(dir, "store"))
	found := map[string]int{}
	for _, r := range dumps {
		found[r.Device+" "+r.FW]++
	}
	total := checkSent(t, sent, found, len(dumps), len(facts))
	t.Logf("%d uploads acknowledged, %d kills", total, kills)
	if total < kills {
		t.Errorf("only %d uploads", total)
	}
}

// checkSent compares what is in a store with the acknowledged uploads. found is the number of dumps by device and firmware.
func checkSent(t *testing.T, sent []int, found map[string]int, dumps, facts int) (total int) {
	for d, n := range sent {
		total += n
		for i := range n {
			if id := fmt.Sprintf("d%d %d", d, i); found[id] != 1 {
				t.Errorf("upload %s is in the store %d times", id, found[id])
			}
		}
	}
	// The last upload of a device may be stored although the device received no answer.
	if dumps < total || dumps > total+killDevices || facts != dumps*killPaths {
		t.Errorf("%d dumps with %d facts in the store, %d acknowledged", dumps, facts, total)
	}
	return total
}
