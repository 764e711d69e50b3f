package heaplog

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heap/leak"
	"github.com/lwsbt/lwsbt/heap/profile"
	"github.com/lwsbt/lwsbt/internal/cmdtest"
)

// block is a live block of a simulated device.
type block struct {
	size, address uint64
	pcs           []uint64
}

// A form of records.
type form string

const (
	plain     form = "sizes alone"
	addressed form = "addresses"
	checked   form = "addresses and checks"
)

// line returns its record.
func (b *block) line(t testing.TB, f form) string {
	t.Helper()
	var u *codec.User
	if f != plain {
		u = &codec.User{}
		u.Set(codec.TagAddress, b.address)
	}
	if f == checked {
		u.AddCheck()
	}
	blob, err := codec.Encoder{Machine: codec.MachineExact32}.AppendBlob(nil, &codec.Stack{Size: b.size, PCs: b.pcs}, u)
	if err != nil {
		t.Fatal(err)
	}
	return "~m#" + base64.StdEncoding.EncodeToString(blob) + "\n"
}

// weekStacks are the call paths of a simulated device, that of the leak first.
func weekStacks(r *rand.Rand) (list [][]uint64) {
	for range 12 {
		pcs := []uint64{}
		for range 1 + r.IntN(6) {
			pcs = append(pcs, 0x8000000+2*r.Uint64N(0x20000)|1)
		}
		list = append(list, pcs)
	}
	return list
}

// week returns the log of a week with an hourly dump: two blocks of 32 bytes leak per hour, other call paths
// come and go. sizes has the bytes of each dump by call path.
func week(t testing.TB, seed uint64, f form) (lines []string, stacks [][]uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	stacks = weekStacks(r)
	next := uint64(0x20000000)
	add := func(live []block, n, size int, pcs []uint64) []block {
		for range n {
			next += 64
			live = append(live, block{uint64(size), next, pcs})
		}
		return live
	}
	var live []block
	lines = append(lines, "~h#boot prog=node w=32 fw=1.2 code=8000000+40000 shift=1\n")
	for i, pcs := range stacks[1:] {
		live = add(live, 3+i, 16+8*i, pcs)
	}
	for hour := range 168 {
		live = add(live, 2, 32, stacks[0])
		live = slices.DeleteFunc(live, func(b block) bool { return &b.pcs[0] != &stacks[0][0] && r.IntN(10) == 0 })
		for i, pcs := range stacks[1:] {
			if r.IntN(3) == 0 {
				live = add(live, 1+r.IntN(2), 16+8*i, pcs)
			}
		}
		sum := uint64(0)
		for _, b := range live {
			sum += b.size
		}
		u := 1
		if f == plain {
			u = 0
		}
		lines = append(lines, fmt.Sprintf("~h#begin %d t=%d n=%d b=%d u=%d why=timer\n", hour, uint64(hour+1)*3_600_000_000, len(live), sum, u))
		for _, i := range r.Perm(len(live)) {
			lines = append(lines, live[i].line(t, f))
		}
		lines = append(lines, fmt.Sprintf("~h#end %d n=%d b=%d\n", hour, len(live), sum), "node: alive\n")
	}
	return lines, stacks
}

// damage loses or changes a part of the characters of lines, of the records alone or also of the others.
func damage(lines []string, part float64, headers bool, r *rand.Rand) []byte {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var b bytes.Buffer
	for i, line := range lines {
		if i == 0 || !headers && !strings.HasPrefix(line, "~m#") {
			b.WriteString(line)
			continue
		}
		for _, c := range []byte(line) {
			switch {
			case c == '\n' || r.Float64() >= part:
				b.WriteByte(c)
			case r.IntN(2) == 0:
				b.WriteByte(digits[r.IntN(len(digits))])
			}
		}
	}
	return b.Bytes()
}

// A week's log with damaged characters: the leak keeps its call path, and its true rate is inside the margins.
func TestDamagedWeek(t *testing.T) {
	const from = 77000
	seeds, parts := []uint64{from + 9, from + 15}, []float64{0.005, 0.02}
	if cmdtest.All() {
		seeds, parts = nil, []float64{0, 0.005, 0.02, 0.05}
		for i := range uint64(20) {
			seeds = append(seeds, from+i)
		}
	}
	for _, f := range []form{addressed, plain, checked} {
		for _, part := range parts {
			for _, headers := range []bool{false, true} {
				named, inside, whole, all, missing, wrong := 0, 0, 0, 0, 0.0, 0
				others, strays := 0, 0 // blocks of dumps that do not count here, and those of them with wrong addresses
				for _, seed := range seeds {
					lines, stacks := week(t, seed, f)
					log := damage(lines, part, headers, rand.New(rand.NewPCG(seed, 2)))
					r, err := Open(t.Context(), Stream(bytes.NewReader(log), "log"))
					if err != nil {
						t.Fatal(err)
					}
					s := leak.Series{Boots: []leak.Boot{{}}, Quantum: 32, Per: "hour"}
					b, first := &s.Boots[0], true
					var top profile.Allocation // of the last dump
					for d, err := range r.Dumps() {
						if err != nil {
							t.Fatal(err)
						}
						lost, _ := d.Missing()
						all, missing = all+1, missing+lost
						if d.Complete() {
							whole++
						}
						if !d.Timed || !d.Complete() && (d.Cut || lost > 0.5) {
							if n, bad := strangers(d, stacks); !first { // else no check was right yet
								others, strays = others+n, strays+bad
							}
							continue
						}
						_, bad := strangers(d, stacks)
						wrong += bad
						v := uint64(0)
						top = profile.Allocation{}
						for a := range d.Allocations() {
							if isPath(a.Path, stacks[0]) {
								v += a.Bytes
							}
							for _, at := range a.Path.Append(nil) {
								if !headers && (at.PC < 0x8000000-1<<20 || at.PC > 0x8040000+1<<20) {
									t.Errorf("%s, seed %d: an address 0x%x, far from the code", f, seed, at.PC)
								}
							}
							if a.Bytes > top.Bytes {
								top = a
							}
						}
						if at := d.Time.Hours(); first || at > b.At[len(b.At)-1] && at < 200 {
							b.At, b.Value, b.Kept = append(b.At, at), append(b.Value, float64(v)), append(b.Kept, 1-lost)
							first = false
						}
					}
					r.Close()
					if isPath(top.Path, stacks[0]) {
						named++
					}
					j := leak.Judge(s)
					if j.Low <= 64 && 64 <= j.High {
						inside++
					} else {
						t.Logf("seed %d: %v %.1f (%.1f to %.1f)", seed, j.Verdict, j.Rate, j.Low, j.High)
					}
				}
				name := fmt.Sprintf("%s, %.1f %% of the characters damaged, headers, too: %v", f, 100*part, headers)
				t.Logf("%s: named %d, rate inside %d of %d; %d of %d dumps complete, %.2f %% of the blocks missing, %d with wrong addresses, and %d of %d of other dumps", name, named, inside, len(seeds), whole, all, 100*missing/float64(all), wrong, strays, others)
				if f == checked && (wrong > 0 || strays > others/1000) {
					t.Errorf("%s: %d blocks with wrong addresses, and %d of %d of other dumps", name, wrong, strays, others)
				}
				least := 9
				if headers { // the times and the sums are damaged, too
					least = 7
				}
				if 10*named < least*len(seeds) || !headers && part < 0.05 && named < len(seeds) || 10*inside < least*len(seeds) && cmdtest.All() {
					t.Errorf("%s: named %d, rate inside %d of %d", name, named, inside, len(seeds))
				}
			}
		}
	}
}

// strangers returns the number of the blocks of a dump, and of those whose call path is none of stacks.
func strangers(d *profile.Dump, stacks [][]uint64) (n, wrong int) {
	for a := range d.Allocations() {
		n += int(a.Count)
		if !slices.ContainsFunc(stacks, func(pcs []uint64) bool { return isPath(a.Path, pcs) }) {
			wrong += int(a.Count)
		}
	}
	return n, wrong
}

// A damaged ~h#begin does not make damaged records count, where records of the boot have a check. (BT-UF-4)
func TestDamagedBegin(t *testing.T) {
	for name, c := range map[string]struct {
		begin string
		least int // blocks that count, of 161 in the dumps before and 78 in this one, half of them damaged
	}{
		"n= is k=":      {"~h#begin 2 t=10800000000 k=85 u=1\n", 190},
		"lost":          {"~h#bgin 2 t=10800000000 n=85 u=1\n", 190},
		"no header":     {"", 190},
		"u= lost":       {"~h#begin 2 t=10800000000\n", 161},
		"as a new boot": {"~h#begin 0 t=1\n", 161},
	} {
		lines, stacks := week(t, 3, checked)
		at := slices.IndexFunc(lines, func(s string) bool { return strings.HasPrefix(s, "~h#begin 2 ") })
		end := at + slices.IndexFunc(lines[at:], func(s string) bool { return strings.HasPrefix(s, "~h#end") })
		log := strings.Join(lines[:at], "") + c.begin + string(damage(lines[at:end], 0.02, false, rand.New(rand.NewPCG(1, 2)))[len(lines[at]):])
		r, err := Open(t.Context(), Stream(strings.NewReader(log), "log"))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for d, err := range r.Dumps() {
			if err != nil {
				t.Fatal(err)
			}
			all, wrong := strangers(d, stacks)
			if n += all; wrong > 0 {
				t.Errorf("%s: %d of %d blocks have wrong addresses", name, wrong, all)
			}
		}
		r.Close()
		if n < c.least {
			t.Errorf("%s: %d blocks count", name, n)
		}
	}
}

// isPath reports whether a call path has the addresses.
func isPath(p profile.Path, pcs []uint64) bool {
	var list []uint64
	for _, a := range p.Append(nil) {
		list = append(list, a.PC)
	}
	return slices.Equal(list, pcs)
}

// A dump with very many heaps does not take time for the square of their number: the first ones count.
func TestManyHeaps(t *testing.T) {
	var list []profile.Heap
	for i := range 100_000 {
		list = withHeap(list, profile.Heap{Name: fmt.Sprint(i), Free: profile.Amount{Bytes: uint64(i), Known: true}})
	}
	if len(list) != 256 || list[1].Free.Bytes != 1 {
		t.Errorf("%d heaps, want 256", len(list))
	}
	if list = withHeap(list, profile.Heap{Name: "1"}); len(list) != 256 || list[1].Free.Known {
		t.Errorf("%d heaps, the second is %+v, want its last report", len(list), list[1])
	}
}
