package dwarf

import (
	"cmp"
	"errors"
	"slices"
	"sort"
	"strings"
)

// lineTable holds the rows of a unit's line program, by sequence. index maps addresses to
// seqs. err is what ended the reading of the program, if anything.
type lineTable struct {
	u     *unit
	dirs  []value
	files []lineFile
	seqs  []sequence
	index spans
	err   error
}

type lineFile struct {
	name value
	dir  uint64
	path string // "" until needed
}

// sequence is a run of rows with ascending addresses, for one piece of code.
type sequence struct {
	low  uint64
	rows []lineRow
}

// lineRow is the line of the code from its address up to the address of the next row.
type lineRow struct {
	off  uint32 // from the sequence's low
	line uint32
	file uint32
	disc uint32 // discriminator
}

// find returns the row for an address, or nil if there is none.
func (t *lineTable) find(pc uint64) *lineRow {
	i := t.index.find(pc)
	if i < 0 {
		return nil
	}
	s := t.seqs[i]
	n := sort.Search(len(s.rows), func(i int) bool { return uint64(s.rows[i].off) > pc-s.low })
	if n == 0 {
		return nil
	}
	return &s.rows[n-1]
}

// loadLines reads the unit's line program, once.
func (u *unit) loadLines() *lineTable {
	if u.lines != nil {
		return u.lines
	}
	u.lines = &lineTable{u: u}
	at := u.root[atLines]
	if at.class == 0 {
		u.lines.err = errors.New("a unit without lines")
		return u.lines
	}
	p := lineProgram{cursor: u.d.at(Line, at.u), table: u.lines}
	p.readHeader()
	p.run()
	u.lines.index, u.lines.err = layOut(p.ranges), p.err
	return u.lines
}

// lineProgram is the state machine that executes a line program. (DWARF 5, 6.2)
type lineProgram struct {
	cursor
	table *lineTable

	minInst, maxOps uint64
	lineBase        int64
	lineRange       uint8
	opcodeBase      uint8
	opLengths       []byte

	addr, op         uint64
	file, line, disc uint32

	low    uint64    // of the sequence
	rows   []lineRow // of the sequence
	ranges []ownedRange
}

// readHeader reads everything before the program. (DWARF 5, 6.2.4)
func (p *lineProgram) readHeader() {
	u := *p.table.u // the forms of the header have the table's own offset size
	n := uint64(0)
	n, u.offsetSize = p.length()
	end := p.cursor
	end.skip(n)
	p.b, p.ready, p.err = p.b[:end.off], min(p.ready, end.off), end.err
	version := p.uint(2)
	if version < 2 || version > 5 {
		p.fail("line table version %d, expected 2 to 5", version)
	}
	if version == 5 {
		p.skip(2) // sizes of addresses and of segment selectors
	}
	length := p.uint(u.offsetSize)
	program := p.cursor
	program.skip(length)
	p.minInst, p.maxOps = uint64(p.u8()), 1
	if version >= 4 {
		p.maxOps = max(1, uint64(p.u8()))
	}
	p.skip(1) // default is_stmt
	p.lineBase, p.lineRange, p.opcodeBase = int64(int8(p.u8())), p.u8(), p.u8()
	if p.lineRange == 0 || p.opcodeBase == 0 {
		p.fail("line range %d and opcode base %d, expected at least 1", p.lineRange, p.opcodeBase)
	}
	p.opLengths = p.take(max(1, uint64(p.opcodeBase)) - 1)
	t := p.table
	if version == 5 {
		for _, f := range p.readTable(&u, p.readFormat(&u), p.uleb()) {
			t.dirs = append(t.dirs, f.name)
		}
		t.files = p.readTable(&u, p.readFormat(&u), p.uleb())
	} else { // directory 0 and file 0 are those of the unit
		t.dirs = []value{{}}
		for _, f := range p.readTable(&u, fileV4[:1], untilEmpty) {
			t.dirs = append(t.dirs, f.name)
		}
		t.files = append([]lineFile{{name: u.root[atName]}}, p.readTable(&u, fileV4, untilEmpty)...)
	}
	p.continueAt(program)
}

// fileV4 is the attributes of a file in versions 2 to 4: name, directory, time and size. A
// directory has only the name.
var fileV4 = []attrSpec{
	{attr: atName, form: form{size: sizeString, class: classString}},
	{attr: atDirIndex, form: form{size: sizeULEB, class: classNumber}},
	{form: form{size: sizeULEB, class: classNumber}},
	{form: form{size: sizeULEB, class: classNumber}},
}

// attrsV5 are the attributes of directories and files in version 5, by DW_LNCT_*.
// (DWARF 5, 6.2.4.1)
var attrsV5 = map[uint64]attr{1: atName, 2: atDirIndex}

// readFormat reads the attributes of the directories or files of version 5.
func (p *lineProgram) readFormat(u *unit) (specs []attrSpec) {
	for range p.u8() {
		a := attrSpec{attr: attrsV5[p.uleb()]}
		a.form = u.form(p.uleb())
		specs = append(specs, a)
	}
	return specs
}

// Memory for parts of a table in bytes, including the growth of slices.
const (
	fileBytes     = 96 // a directory or a file
	rowBytes      = 32
	sequenceBytes = 128
)

// untilEmpty is the number of directories or files in versions 2 to 4: an empty name ends
// the table.
const untilEmpty = 1<<64 - 1

// readTable reads n directories or files.
func (p *lineProgram) readTable(u *unit, specs []attrSpec, n uint64) (list []lineFile) {
	for i := uint64(0); i < n && p.err == nil; i++ {
		if n == untilEmpty && p.need(1) && p.b[p.off] == 0 {
			p.skip(1)
			break
		}
		p.spend(0, fileBytes)
		start := p.off
		var e entry
		u.readEntry(&p.cursor, specs, &e)
		if p.off == start { // n could be any number
			p.fail("directories or files without bytes")
		}
		list = append(list, lineFile{name: e[atName], dir: e[atDirIndex].u})
	}
	return list
}

// Opcodes, DW_LNS_* and DW_LNE_*. (DWARF 5, 6.2.5)
const (
	lnsCopy           = 1
	lnsAdvancePC      = 2
	lnsAdvanceLine    = 3
	lnsSetFile        = 4
	lnsConstAddPC     = 8
	lnsFixedAdvancePC = 9

	lneEndSequence      = 1
	lneSetAddress       = 2
	lneSetDiscriminator = 4
)

func (p *lineProgram) reset() {
	p.addr, p.op, p.file, p.line, p.disc = 0, 0, 1, 1, 0
	p.rows = p.rows[:0]
}

// run executes the program.
func (p *lineProgram) run() {
	p.reset()
	for p.off < len(p.b) {
		p.spend(1, 0)
		op := p.u8()
		if op >= p.opcodeBase {
			op -= p.opcodeBase
			p.advance(uint64(op / p.lineRange))
			p.line += uint32(p.lineBase + int64(op%p.lineRange))
			p.row()
			continue
		}
		switch op {
		case 0:
			p.extended()
		case lnsCopy:
			p.row()
		case lnsAdvancePC:
			p.advance(p.uleb())
		case lnsAdvanceLine:
			p.line += uint32(p.sleb())
		case lnsSetFile:
			p.file = uint32(p.uleb())
		case lnsConstAddPC:
			p.advance(uint64((255 - p.opcodeBase) / p.lineRange))
		case lnsFixedAdvancePC:
			p.addr += p.uint(2)
			p.op = 0
		default:
			for range p.opLengths[op-1] {
				p.uleb()
			}
		}
	}
}

func (p *lineProgram) extended() {
	n := p.uleb()
	if n == 0 {
		return
	}
	next := p.cursor
	next.skip(n)
	switch p.u8() {
	case lneEndSequence:
		p.endSequence()
		p.reset()
	case lneSetAddress:
		p.addr, p.op = p.uint(int(min(n-1, 8))), 0
	case lneSetDiscriminator:
		p.disc = uint32(p.uleb())
	}
	p.continueAt(next)
}

func (p *lineProgram) advance(n uint64) {
	if p.maxOps == 1 {
		p.addr += n * p.minInst
		return
	}
	p.addr += p.minInst * ((p.op + n) / p.maxOps)
	p.op = (p.op + n) % p.maxOps
}

// row appends a row. It replaces an earlier row with the same address.
func (p *lineProgram) row() {
	if len(p.rows) == 0 {
		p.low = p.addr
	}
	off, disc := p.addr-p.low, p.disc
	p.disc = 0
	if off > 1<<32-1 { // before the start of the sequence, or 4 GiB after: not code
		return
	}
	r := lineRow{off: uint32(off), line: p.line, file: p.file, disc: disc}
	if n := len(p.rows); n > 0 && p.rows[n-1].off == r.off {
		p.rows[n-1] = r
		return
	}
	p.spend(0, rowBytes)
	if len(p.rows) == cap(p.rows) { // double it, which append does not for long slices
		p.rows = slices.Grow(p.rows, max(64, len(p.rows)))
	}
	p.rows = append(p.rows, r)
}

// endSequence ends a sequence. It drops a sequence that is not loaded.
func (p *lineProgram) endSequence() {
	t := p.table
	if len(p.rows) == 0 {
		return
	}
	claimed := p.d.claim(p.ranges, []addrRange{{p.low, p.addr}}, len(t.seqs))
	if len(claimed) == len(p.ranges) {
		return
	}
	p.ranges = claimed
	p.spend(0, sequenceBytes)
	rows := slices.Clone(p.rows)
	byAddr := func(a, b lineRow) int { return cmp.Compare(a.off, b.off) }
	if !slices.IsSortedFunc(rows, byAddr) {
		slices.SortStableFunc(rows, byAddr)
	}
	t.seqs = append(t.seqs, sequence{p.low, rows})
}

// path returns the full path of a file, including its directory and the directory of the
// unit. It does not clean the path, so that the path equals the output of other tools.
func (t *lineTable) path(file uint32) string {
	if uint64(file) >= uint64(len(t.files)) {
		return ""
	}
	f := &t.files[file]
	if f.path == "" {
		f.path = t.findPath(f)
		t.u.d.Budget.Alloc(int64(len(f.path)))
	}
	return f.path
}

func (t *lineTable) findPath(f *lineFile) string {
	name := string(t.u.text(f.name))
	if name == "" || absolute(name) {
		return name
	}
	dir := ""
	if f.dir < uint64(len(t.dirs)) {
		dir = string(t.u.text(t.dirs[f.dir]))
	}
	if !absolute(dir) {
		dir = join(string(t.u.text(t.u.root[atCompDir])), dir)
	}
	return join(dir, name)
}

func join(dir, name string) string {
	switch {
	case dir == "":
		return name
	case name == "":
		return dir
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

func absolute(p string) bool {
	return strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\`) ||
		len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
}
