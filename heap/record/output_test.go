//go:build linux

package record

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"
)

// A program may have very many children: what is kept of an ended recording has no buffers.
func TestClosedOutput(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	list := make([]*output, 200)
	for i := range list {
		list[i] = newOutput(nopCloser{io.Discard}, nil)
		list[i].write(bytes.Repeat([]byte("~h#lost\n"), 100))
		list[i].close()
	}
	if grown := int64(heap() - before); grown > 1<<20 {
		t.Errorf("%d bytes for %d ended recordings", grown, len(list))
	}
	runtime.KeepAlive(list)
}

// A child that has the PID of one that ended has a recording of its own, even if btrecord has
// not seen yet that the other one ended.
func TestReusedPID(t *testing.T) {
	const child = testPID + 1
	var names []string
	r, err := New(Config{Slots: 8, Words: 4096, Children: true}, func(name string, _ bool) (io.WriteCloser, string, error) {
		names = append(names, name)
		return nopCloser{io.Discard}, name, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	produce(r.memory, 0, testPID, testPID, 5).image(testPID, 1, 0, "/bin/parent")
	for i := range uint64(3) {
		p := produce(r.memory, int(i)+1, child, child, 6+i)
		p.image(child, testPID, 5, "/bin/child")
		p.freed(16)
	}
	p := produce(r.memory, 4, child, child, 9) // the last one executes a program
	p.image(child, testPID, 0, "/bin/other")
	r.Over()
	r.Run(0)
	want := []string{fmt.Sprint(testPID), fmt.Sprint(child), fmt.Sprint(child), fmt.Sprint(child)}
	if !slices.Equal(names, want) {
		t.Errorf("recordings %q, want %q", names, want)
	}
}
