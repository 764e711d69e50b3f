package dwarf

import (
	"cmp"
	std "debug/dwarf"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// lineTable holds the rows of a line program, by sequence.
type lineTable struct {
	u     *unit // the unit it was first read for
	dirs  []value
	files []lineFile
	// paths caches the full paths of files.
	paths map[uint32]string

	rows []lineRow
	seqs []sequence // by low
}

type lineFile struct {
	name value
	dir  uint32
}

// sequence is a run of rows with ascending addresses, for one piece of code.
type sequence struct {
	low, high   uint64
	reach       uint64 // highest high of this and all earlier sequences
	first, rows int32
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
	i := sort.Search(len(t.seqs), func(i int) bool { return t.seqs[i].low > pc }) - 1
	for ; i >= 0 && t.seqs[i].reach > pc && t.u.d.Budget.Step(1); i-- {
		if s := &t.seqs[i]; pc < s.high {
			rows := t.rows[s.first : s.first+s.rows]
			off := uint32(pc - s.low)
			n := sort.Search(len(rows), func(i int) bool { return rows[i].off > off })
			if n > 0 {
				return &rows[n-1]
			}
		}
	}
	return nil
}

// lineTable reads the unit's line program, once.
func (u *unit) lineTable() (*lineTable, error) {
	if u.lines == nil && u.linesErr == nil {
		u.lines, u.linesErr = u.readLines()
	}
	return u.lines, u.linesErr
}

func (u *unit) readLines() (*lineTable, error) {
	if !u.hasLines {
		return nil, errors.New("a unit without lines")
	}
	if t := u.d.tables[u.lineOff]; t != nil {
		return t, nil
	}
	p := lineProgram{table: &lineTable{u: u, paths: map[uint32]string{}}}
	if err := p.readHeader(u); err != nil {
		return nil, fmt.Errorf(".debug_line %#x: %w", u.lineOff, err)
	}
	err := p.run()
	t := p.table
	if u.d.Budget.exceeded() {
		return nil, ErrBudget
	}
	slices.SortStableFunc(t.seqs, func(a, b sequence) int { return cmp.Compare(a.low, b.low) })
	reach := uint64(0)
	for i := range t.seqs {
		reach = max(reach, t.seqs[i].high)
		t.seqs[i].reach = reach
	}
	t.rows = slices.Clone(t.rows)
	if err != nil && len(t.seqs) == 0 {
		return nil, fmt.Errorf(".debug_line %#x: %w", u.lineOff, err)
	}
	u.d.tables[u.lineOff] = t
	return t, nil
}

// lineProgram is the state machine that executes a line program. (DWARF 5, 6.2)
type lineProgram struct {
	cursor
	table    *lineTable
	addrSize int
	version  uint16

	minInst, maxOps uint64
	lineBase        int64
	lineRange       uint8
	opcodeBase      uint8
	opLengths       []byte

	addr, op         uint64
	file, line, disc uint32
	start            int // first row of the sequence
	low              uint64
	sorted           bool
}

// readHeader reads everything before the program. (DWARF 5, 6.2.4)
func (p *lineProgram) readHeader(u *unit) error {
	d := u.d
	c := d.at(d.Line, u.lineOff)
	n, dwarf64 := c.length()
	if c.bad || n > uint64(len(c.b)-c.off) {
		return fmt.Errorf("table of %d bytes ends beyond its section", n)
	}
	c.b = c.b[:c.off+int(n)]
	p.version, p.addrSize = uint16(c.uint(2)), u.addrSize
	if p.version < 2 || p.version > 5 {
		return fmt.Errorf("line table version %d, expected 2 to 5", p.version)
	}
	if p.version >= 5 {
		p.addrSize = int(c.u8())
		c.skip(1)
	}
	headerLen := c.offset(dwarf64)
	program := c.off + int(min(headerLen, uint64(len(c.b))))
	p.minInst, p.maxOps = uint64(c.u8()), 1
	if p.version >= 4 {
		p.maxOps = max(1, uint64(c.u8()))
	}
	c.skip(1) // default is_stmt
	p.lineBase, p.lineRange, p.opcodeBase = int64(int8(c.u8())), c.u8(), c.u8()
	if p.opcodeBase == 0 {
		return errors.New("opcode base 0, expected at least 1")
	}
	p.opLengths = c.take(int(p.opcodeBase) - 1)
	hu := *u // forms of the header have the table's own offset size
	hu.dwarf64 = dwarf64
	if p.version >= 5 {
		p.readEntriesV5(&hu, &c)
	} else {
		p.readEntriesV4(&c, d)
	}
	if c.bad || program > len(c.b) {
		return errors.New("header ends beyond its table")
	}
	p.cursor = c
	p.off = program
	return nil
}

// Memory for parts of a table in bytes, including the growth of slices.
const (
	entryBytes    = 48 // a directory or a file
	rowBytes      = 32
	sequenceBytes = 64
)

// inLine marks a string in .debug_line itself.
const inLine = 0xffff

// readEntriesV4 reads the directories and files of versions 2 to 4. File 0 is the file of the
// unit.
func (p *lineProgram) readEntriesV4(c *cursor, d *Data) {
	t := p.table
	t.dirs, t.files = []value{{}}, []lineFile{{name: t.u.name}}
	here := func() (value, bool) {
		if !d.Budget.Step(1) || !d.Budget.Alloc(entryBytes) {
			return value{}, false
		}
		v := value{form: inLine, u: uint64(c.off)}
		s := c.str()
		return v, len(s) > 0 && !c.bad
	}
	for v, ok := here(); ok; v, ok = here() {
		t.dirs = append(t.dirs, v)
	}
	for v, ok := here(); ok; v, ok = here() {
		t.files = append(t.files, lineFile{name: v, dir: uint32(c.uleb())})
		c.uleb()
		c.uleb()
	}
}

// Contents of version 5 entries, DW_LNCT_*. (DWARF 5, 6.2.4.1)
const (
	contentPath = 1
	contentDir  = 2
)

func (p *lineProgram) readEntriesV5(u *unit, c *cursor) {
	t := p.table
	p.readTable(u, c, func(name value, _ uint64) { t.dirs = append(t.dirs, name) })
	p.readTable(u, c, func(name value, dir uint64) {
		t.files = append(t.files, lineFile{name: name, dir: uint32(dir)})
	})
}

func (p *lineProgram) readTable(u *unit, c *cursor, add func(name value, dir uint64)) {
	var format [256]attrSpec
	kinds := int(c.u8())
	for i := range kinds {
		format[i] = attrSpec{attr: std.Attr(c.uleb()), form: uint32(c.uleb())}
	}
	n := c.uleb()
	for ; n > 0 && !c.bad; n-- {
		if !u.d.Budget.Step(kinds) || !u.d.Budget.Alloc(entryBytes) {
			return
		}
		var name value
		var dir uint64
		before := c.off
		for _, a := range format[:kinds] {
			switch v := u.value(c, a); a.attr {
			case contentPath:
				if name = v; v.form == formString {
					name.form = inLine
				}
			case contentDir:
				dir = v.u
			}
		}
		if c.bad || c.off == before { // entries without bytes could count for ever
			return
		}
		add(name, dir)
	}
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
	p.start, p.sorted = len(p.table.rows), true
}

// run executes the program.
func (p *lineProgram) run() error {
	p.reset()
	budget := p.table.u.d.Budget
	for p.off < len(p.b) {
		if !budget.Step(1) {
			return ErrBudget
		}
		op := p.u8()
		if op >= p.opcodeBase {
			if p.lineRange == 0 {
				return errors.New("line range 0")
			}
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
			if p.lineRange == 0 {
				return errors.New("line range 0")
			}
			p.advance(uint64((255 - p.opcodeBase) / p.lineRange))
		case lnsFixedAdvancePC:
			p.addr += p.uint(2)
			p.op = 0
		default:
			for range p.opLengths[op-1] {
				p.uleb()
			}
		}
		if p.bad {
			return errors.New("program ends within an instruction")
		}
	}
	return nil
}

func (p *lineProgram) extended() {
	n := p.uleb()
	if n == 0 {
		return
	}
	next := p.off + int(min(n, uint64(len(p.b))))
	switch p.u8() {
	case lneEndSequence:
		p.endSequence()
		p.reset()
	case lneSetAddress:
		p.addr, p.op = p.uint(int(min(n-1, 8))), 0
	case lneSetDiscriminator:
		p.disc = uint32(p.uleb())
	}
	if next > len(p.b) {
		p.bad = true
		return
	}
	p.off = next
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
	t := p.table
	if len(t.rows) == p.start {
		p.low = p.addr
	}
	off := p.addr - p.low
	disc := p.disc
	p.disc = 0
	if off > 1<<32-1 { // before the start of the sequence, or 4 GiB after: not code
		p.sorted = false
		return
	}
	r := lineRow{off: uint32(off), line: p.line, file: p.file, disc: disc}
	if n := len(t.rows); n > p.start {
		if t.rows[n-1].off == r.off {
			t.rows[n-1] = r
			return
		}
		p.sorted = p.sorted && t.rows[n-1].off < r.off
	}
	if !t.u.d.Budget.Alloc(rowBytes) {
		p.bad = true
		return
	}
	if len(t.rows) == cap(t.rows) {
		t.rows = slices.Grow(t.rows, max(64, len(t.rows)))
	}
	t.rows = append(t.rows, r)
}

// endSequence ends a sequence. It drops a sequence that is not loaded.
func (p *lineProgram) endSequence() {
	t := p.table
	r := addrRange{p.low, p.addr}
	if len(t.rows) == p.start || !t.u.d.loaded(r) {
		t.rows = t.rows[:p.start]
		return
	}
	rows := t.rows[p.start:]
	if !p.sorted {
		slices.SortStableFunc(rows, func(a, b lineRow) int { return cmp.Compare(a.off, b.off) })
	}
	if !t.u.d.Budget.Alloc(sequenceBytes) {
		p.bad = true
		return
	}
	t.seqs = append(t.seqs, sequence{low: r.low, high: r.high, first: int32(p.start), rows: int32(len(rows))})
}

// path returns the full path of a file, including its directory and the directory of the
// unit. It does not clean the path, so that the path equals the output of other tools.
func (t *lineTable) path(file uint32) string {
	if p, ok := t.paths[file]; ok {
		return p
	}
	p := t.findPath(file)
	t.u.d.Budget.Alloc(int64(len(p)) + entryBytes)
	t.paths[file] = p
	return p
}

func (t *lineTable) findPath(file uint32) string {
	if uint64(file) >= uint64(len(t.files)) {
		return ""
	}
	f := t.files[file]
	name := t.text(f.name)
	if name == "" || absolute(name) {
		return name
	}
	dir := ""
	if uint64(f.dir) < uint64(len(t.dirs)) {
		dir = t.text(t.dirs[f.dir])
	}
	if !absolute(dir) {
		if unitDir := string(t.u.text(t.u.dir)); unitDir != "" {
			dir = join(unitDir, dir)
		}
	}
	return join(dir, name)
}

func (t *lineTable) text(v value) string {
	if v.form == inLine {
		return string(stringAt(t.u.d.Line, v.u))
	}
	return string(t.u.text(v))
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
