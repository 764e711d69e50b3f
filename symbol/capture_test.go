package symbol

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
)

// capture is a capture of a real program: blobs, true stacks, memory map.
type capture struct {
	lines []string
	truth [][]uint64
	space *space
}

func readCapture(t testing.TB, dir, name string) capture {
	t.Helper()
	var c capture
	c.lines = gzipLines(t, filepath.Join(dir, name+".log.gz"))
	for _, line := range gzipLines(t, filepath.Join(dir, name+".truth.gz")) {
		var pcs []uint64
		for _, f := range strings.Fields(line)[1:] {
			var pc uint64
			if _, err := fmt.Sscanf(f, "0x%x", &pc); err != nil {
				t.Fatal(err)
			}
			pcs = append(pcs, pc)
		}
		c.truth = append(c.truth, pcs)
	}
	if len(c.lines) == 0 || len(c.lines) != len(c.truth) {
		t.Fatalf("%s: %d lines and %d true stacks", name, len(c.lines), len(c.truth))
	}
	maps, err := os.Open(filepath.Join(dir, name+".maps"))
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	list, err := ReadMaps(maps, maps.Name())
	if err != nil {
		t.Fatal(err)
	}
	c.space = newSpace(list)
	return c
}

func gzipLines(t testing.TB, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	s := bufio.NewScanner(io.Reader(z))
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return lines
}

// captureDirs is the captures in the repository, and the whole ones where
// LWSBT_CAPTURES says where they are.
func captureDirs() []string {
	dirs := []string{filepath.Join("..", "corpus", "captures")}
	if d := os.Getenv("LWSBT_CAPTURES"); d != "" {
		dirs = append(dirs, d)
	}
	return dirs
}

// Every frame of the captures, and none of them wrong, with the map.
func TestRecoverCaptures(t *testing.T) {
	for _, dir := range captureDirs() {
		for _, name := range []string{"perl", "cc1", "git00"} {
			c := readCapture(t, dir, name)
			var r recoverer
			frames, recovered, right, wrong := 0, 0, 0, 0
			for i := range c.lines {
				s, blob := c.decode(t, i)
				addrs := exact(s.PCs)
				r.recover(addrs, s.Marks.Lossy, blob, c.space)
				for n, a := range addrs {
					frames++
					if a.State == Inferred {
						recovered++
					}
					switch {
					case a.State == Lost:
					case a.PC == c.truth[i][n]:
						right++
					default:
						wrong++
					}
				}
			}
			t.Logf("%s/%s: %d frames, %d recovered, %d right, %d wrong and not marked", dir, name, frames, recovered, right, wrong)
			if right != frames || wrong != 0 || recovered == 0 {
				t.Errorf("%s: %d of %d frames right, %d wrong and not marked, %d recovered", name, right, frames, wrong, recovered)
			}
		}
	}
}

// decode decodes a line of the capture.
func (c *capture) decode(t testing.TB, i int) (*codec.Stack, []byte) {
	t.Helper()
	var s codec.Stack
	blob, err := codec.Decoder{}.ParseLine(nil, []byte(c.lines[i]))
	if err == nil {
		err = codec.Decoder{}.Decode(&s, nil, blob)
	}
	if err != nil || len(s.PCs) != len(c.truth[i]) {
		t.Fatalf("line %d: %d frames, want %d; %v", i+1, len(s.PCs), len(c.truth[i]), err)
	}
	return &s, blob
}

// openPrograms opens the position-independent files below /usr that a capture has, and
// returns where each was loaded.
func (c *capture) openPrograms() (p *Process, truth map[*File]uint64) {
	p, truth = &Process{}, map[*File]uint64{}
	opened := map[string]bool{}
	for _, m := range c.space.list {
		if m.Module == nil || opened[m.Module.Name] || m.Offset != 0 || !strings.HasPrefix(m.Module.Name, "/usr/") {
			continue
		}
		if f, err := Open(m.Module.Name, nil); err == nil && f.PIE {
			opened[m.Module.Name] = true
			p.added = append(p.added, &object{FileSpec: FileSpec{Path: f.Path}, file: f})
			truth[f] = m.Start
		}
	}
	return p, truth
}

// Captures of Debian programs are resolved with only their ELF files. The test needs the
// captures in LWSBT_CAPTURES, and the same builds of the programs at the same paths.
func TestBaseOfCaptures(t *testing.T) {
	dir := os.Getenv("LWSBT_CAPTURES")
	if dir == "" {
		t.Skip("LWSBT_CAPTURES does not say where the whole captures are")
	}
	for _, name := range []string{"perl", "cc1", "git00"} {
		c := readCapture(t, dir, name)
		p, truth := c.openPrograms()
		var all []ReturnAddr
		for i := range c.lines {
			s, _ := c.decode(t, i)
			for n, pc := range s.PCs {
				all = append(all, ReturnAddr{pc, s.Marks.Lossy>>n&1 == 1})
			}
		}
		p.SetBases(InferBases(p.Files(), all))
		for _, b := range p.bases {
			t.Logf("%s: %v; chance 10^%.0f", name, b, b.logP)
		}
		right, wrong, lost := 0, 0, 0
		for i := range c.lines {
			s, blob := c.decode(t, i)
			for n, a := range p.Resolve(nil, s, blob) {
				switch {
				case a.State == Lost:
					lost++
				case a.State == Inferred && a.Location.Own != c.truth[i][n]-truth[a.Location.Module.File],
					a.State == Exact && a.PC != c.truth[i][n]:
					wrong++
				default:
					right++
				}
			}
		}
		t.Logf("%s: %d right, %d lost, %d wrong", name, right, lost, wrong)
		if wrong > 0 || right == 0 {
			t.Errorf("%s: %d frames wrong and not marked, %d right", name, wrong, right)
		}
	}
}
