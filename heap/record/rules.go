//go:build linux

package record

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"unsafe"

	"github.com/lwsbt/lwsbt/heap/core/unwind"
)

// rules is the part of the memory with rules for code without unwind tables, as musl's C library
// is. The library in the program may make none, so they are made here, from the files.
type rules struct {
	bytes []byte
	used  int
	count *atomic.Uint32
	known map[uint64]bool // keys of tables
}

func newRules(b []byte) rules {
	head := (*tables)(unsafe.Pointer(&b[0]))
	return rules{b, int(unsafe.Sizeof(tables{}) + ringTables*unsafe.Sizeof(table{})), &head.count, map[uint64]bool{}}
}

// moduleKey returns the key of the module of a file: see table in ring.h.
func moduleKey(f io.ReaderAt) (key uint64, ok bool) {
	var page [4096]byte
	if n, _ := f.ReadAt(page[:], 0); n < len(page) {
		return 0, false
	}
	for b := page[:]; len(b) > 0; b = b[8:] {
		key = (key ^ binary.NativeEndian.Uint64(b)) * ringCheck
		key ^= key >> 32
	}
	return key, true
}

// add adds the table of a module. Without entries, it says that there are no rules.
func (r *rules) add(key uint64, list []uint64) {
	n := int(r.count.Load())
	if r.known[key] || n == ringTables {
		return
	}
	r.known[key] = true
	if r.used+8*len(list) > len(r.bytes) {
		list = nil
	}
	all := unsafe.Slice((*uint64)(unsafe.Pointer(&r.bytes[0])), len(r.bytes)/8)
	copy(all[r.used/8:], list)
	t := (*table)(unsafe.Pointer(&r.bytes[int(unsafe.Sizeof(tables{}))+n*int(unsafe.Sizeof(table{}))]))
	*t = table{key, uint32(r.used), uint32(len(list) / 2)}
	r.used += 8 * len(list)
	r.count.Store(uint32(n + 1))
}

// lacksTables reports whether an ELF file has no unwind tables for exceptions, or is musl's C library,
// which has four entries.
func lacksTables(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	const ehFrame = 0x6474e550 // PT_GNU_EH_FRAME
	for _, p := range f.Progs {
		if p.Type == ehFrame && p.Filesz >= 12+8*16 {
			return false
		}
	}
	return true
}

// fileRules returns the table of a file, from the user's cache if it is there. The error is nil if the
// file has no rules.
func fileRules(path string) (key uint64, list []uint64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	key, ok := moduleKey(f)
	if info, e := f.Stat(); !ok || e != nil || !info.Mode().IsRegular() || info.Size() > 64<<20 {
		return key, nil, fmt.Errorf("%s: too small, or over 64 MB", path)
	}
	hash := sha256.New()
	fmt.Fprintln(hash, "rules 1")
	if _, err := io.Copy(hash, f); err != nil {
		return key, nil, err
	}
	dir, dirErr := cacheDir("rules")
	cache := filepath.Join(dir, fmt.Sprintf("%x", hash.Sum(nil)[:16]))
	if dirErr == nil {
		if text, err := os.ReadFile(cache); err == nil && len(text)%16 == 0 {
			list = make([]uint64, len(text)/8)
			_, err := binary.Decode(text, binary.LittleEndian, list)
			return key, list, err
		}
	}
	o, err := unwind.NewObject(f, path)
	if err != nil {
		return key, nil, err
	}
	word := map[elf.Class]int64{elf.ELFCLASS32: 4, elf.ELFCLASS64: 8}[o.Class]
	for _, c := range o.CallRules() {
		if packed, ok := packRule(&c, word); ok {
			list = append(list, c.After, packed)
		}
	}
	if text, err := binary.Append(nil, binary.LittleEndian, list); dirErr == nil && err == nil { // whole or not at all
		temp := fmt.Sprintf("%s.%d.tmp", cache, os.Getpid())
		if os.WriteFile(temp, text, 0o600) != nil || os.Rename(temp, cache) != nil {
			os.Remove(temp)
		}
	}
	return key, list, nil
}

// packRule returns a rule as in ring.h, if it fits.
func packRule(c *unwind.CallRule, word int64) (uint64, bool) {
	kind := uint64(ruleSp)
	if c.FromFP {
		kind = ruleFp
	}
	const cfaLimit, wordLimit = 1 << 27, 1 << 15
	fits := c.CFA >= 0 && c.CFA < cfaLimit && c.RA%word == 0 && c.RA != 0 && -c.RA/word < wordLimit && c.RA < 0
	fp := int64(0)
	if c.FPSaved {
		fp = c.FP / word
		fits = fits && c.FP%word == 0 && fp < 0 && -fp < wordLimit
	}
	return kind<<61 | uint64(c.CFA)<<33 | uint64(uint16(c.RA/word))<<17 | uint64(uint16(fp))<<1 | 1, fits
}

// prepare adds the rules of a file that the program is about to load, if it has no unwind tables.
func (r *rules) prepare(path string) {
	if path == "" || !lacksTables(path) {
		return
	}
	if key, list, err := fileRules(path); err == nil {
		r.add(key, list)
	}
}

// lacks adds the rules of a module that a process loaded, as soon as they are made.
func (r *Recorder) lacks(p *process, name string) {
	file := fmt.Sprintf("/proc/%d/root%s", p.host, name)
	if r.asked[file] || !filepath.IsAbs(name) {
		return
	}
	r.asked[file] = true
	go func() {
		key, list, _ := fileRules(file)
		select {
		case r.calls <- func() { r.memory.rules.add(key, list) }:
		case <-r.stopped:
		}
	}()
}
