package foreign

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// The texts of NuttX, from its sources: mm_memdump of mm/mm_heap/mm_memdump.c and
// mm/tlsf/mm_tlsf.c, mempool_memdump of mm/mempool/mempool.c (10.3 to 12.10), and the
// table of /proc/meminfo, which the command free prints (fs/procfs/fs_procfsmeminfo.c).
var nuttxSigns = []string{"Dump all used memory node info", "Dump all free memory node info", "maxused    maxfree"}

// The columns differ from version to version, so the line with their names says what the
// numbers are.
var (
	nuttxRow   = regexp.MustCompile(`((?:-?\d+\s+)+)(0x[0-9a-fA-F]+)((?:\s+0x[0-9a-fA-F]+)*)\s*$`)
	nuttxTotal = regexp.MustCompile(`(\d+)\s+(\d+)\s*$`)
	nuttxFree  = regexp.MustCompile(`((?:\d+\s+)+)(\S+)\s*$`)
)

// nuttx reads the dumps of NuttX.
type nuttx struct {
	*trace
	columns []string // of the rows, nil outside of a dump
	free    bool     // the rows are free blocks
	totals  bool     // the next row has the totals
	memory  []string // the columns of free, nil outside of it
	pcs     []uint64
}

func newNuttX(t *trace) lineReader { return &nuttx{trace: t} }

func (n *nuttx) line(text []byte) {
	switch {
	case bytes.Contains(text, []byte("Dump all used memory node info")):
		n.close(-1, -1)
		n.begin()
		n.columns, n.free = []string{}, false
	case bytes.Contains(text, []byte("Dump all free memory node info")):
		n.close(-1, -1)
		n.columns, n.free = []string{}, true
	case bytes.Contains(text, []byte("Total Blks")):
		n.totals = n.columns != nil && !n.free
		n.columns = nil
	case n.totals:
		if m := nuttxTotal.FindSubmatch(text); m != nil {
			n.close(number(m[1]), number(m[2]))
			n.totals = false
		}
	case n.columns != nil && bytes.Contains(text, []byte("Address")):
		n.columns = columns(text, "PID", "Size", "Overhead", "Sequence", "Address")
	case n.columns != nil && !n.free:
		n.row(text)
	case bytes.Contains(text, []byte("maxused")) && bytes.Contains(text, []byte("maxfree")):
		n.memory = columns(text, "total", "used", "free", "maxused", "maxfree")
	case n.memory != nil:
		n.usage(text)
	}
}

// columns returns those of the names that a line has, in its order.
func columns(text []byte, names ...string) []string {
	var found []string
	for _, field := range strings.Fields(string(text)) {
		if slices.Contains(names, field) {
			found = append(found, field)
		}
	}
	return found
}

// row reads the line of a block.
func (n *nuttx) row(text []byte) {
	m := nuttxRow.FindSubmatch(text)
	if m == nil {
		if bytes.Contains(text, []byte(" 0x")) {
			n.skipped++
		}
		return
	}
	numbers := bytes.Fields(m[1])
	before := slices.Index(n.columns, "Address")
	if before < 0 || len(numbers) < before {
		n.skipped++
		return
	}
	numbers = numbers[len(numbers)-before:]
	b := block{pcs: hexes(n.pcs[:0], m[3], " \t")}
	n.pcs = b.pcs
	for i, name := range n.columns[:before] {
		v := number(numbers[i])
		switch {
		case v < 0:
		case name == "PID":
			b.user.Set(codec.TagThread, uint64(v))
		case name == "Sequence":
			b.user.Set(codec.TagSequence, uint64(v))
		case name == "Size":
			b.size = v
		}
	}
	b.user.Set(codec.TagAddress, address(m[2]))
	n.record(&b)
}

// usage reads the line of a heap in the table of free: Umem, Kmem, or another.
func (n *nuttx) usage(text []byte) {
	m := nuttxFree.FindSubmatch(text)
	if m == nil {
		n.memory = nil
		return
	}
	values := map[string]int64{}
	numbers := bytes.Fields(m[1])
	if len(numbers) < len(n.memory) {
		n.memory = nil
		if bytes.HasSuffix(m[2], []byte("mem")) {
			n.skipped++
		}
		return
	}
	for i, name := range n.memory {
		values[name] = number(numbers[i])
	}
	least := int64(-1)
	if used, ok := values["maxused"]; ok {
		least = values["total"] - used
	}
	if name := string(m[2]); name != "Prog" && name != "Page" { // flash, and pages
		n.heap(heap{name, values["total"], values["free"], values["maxfree"], least})
	}
}

func (n *nuttx) end() {}
