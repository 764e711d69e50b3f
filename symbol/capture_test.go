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
			var s codec.Stack
			frames, lossy, right, unmarked := 0, 0, 0, 0
			for i, line := range c.lines {
				blob, err := codec.ParseLine(nil, []byte(line))
				if err == nil {
					err = codec.Decode(&s, blob)
				}
				if err != nil || len(s.PCs) != len(c.truth[i]) {
					t.Fatalf("%s line %d: %d frames, want %d; %v", name, i+1, len(s.PCs), len(c.truth[i]), err)
				}
				addrs := exact(s.PCs)
				r.recover(addrs, s.Marks.Lossy, blob, c.space)
				for n, want := range c.truth[i] {
					frames++
					if addrs[n].State == Inferred {
						lossy++
					}
					switch {
					case addrs[n].PC == want && addrs[n].State != Lost:
						right++
					case addrs[n].State != Lost:
						unmarked++
					}
				}
			}
			t.Logf("%s/%s: %d frames, %d recovered, %d right, %d wrong and not marked", dir, name, frames, lossy, right, unmarked)
			if right != frames || unmarked != 0 || lossy == 0 {
				t.Errorf("%s: %d of %d frames right, %d wrong and not marked, %d recovered", name, right, frames, unmarked, lossy)
			}
		}
	}
}

// Captures by the ELF files alone: programs of Debian that stand where they were
// captured. Only for where LWSBT_CAPTURES says so, and the very build is there.
func TestBaseOfCaptures(t *testing.T) {
	dir := os.Getenv("LWSBT_CAPTURES")
	if dir == "" {
		t.Skip("LWSBT_CAPTURES does not say where the whole captures are")
	}
	for _, name := range []string{"perl", "cc1", "git00"} {
		c := readCapture(t, dir, name)
		var p Process
		truth := map[*File]uint64{}
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
		var all []ReturnAddr
		var stacks []codec.Stack
		var blobs [][]byte
		for _, line := range c.lines {
			blob, _ := codec.ParseLine(nil, []byte(line))
			var s codec.Stack
			if err := codec.Decode(&s, blob); err != nil {
				t.Fatal(err)
			}
			for i, pc := range s.PCs {
				all = append(all, ReturnAddr{pc, s.Marks.Lossy>>i&1 == 1})
			}
			stacks, blobs = append(stacks, s), append(blobs, blob)
		}
		p.SetBases(InferBases(p.Files(), all))
		for _, b := range p.bases {
			t.Logf("%s: %v; chance 10^%.0f", name, b, b.logP)
		}
		right, wrong, lost := 0, 0, 0
		for i := range stacks {
			places := p.Resolve(nil, &stacks[i], blobs[i])
			for n, place := range places {
				switch {
				case place.State == Lost:
					lost++
				case place.State == Inferred && place.Location.Own != c.truth[i][n]-truth[place.Location.Module.File],
					place.State == Exact && place.PC != c.truth[i][n]:
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
