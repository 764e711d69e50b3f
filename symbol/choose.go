package symbol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
)

// Boot is what a log says of the program of one boot. Fields that it does not give are "".
type Boot struct {
	Build    string        // build ID in hexadecimal
	Firmware string        // version
	Text     string        // hash of Code in hexadecimal
	Code     []codec.Range // executable ranges
}

// Evidence has the return addresses of a boot, each with the number of records that have it.
type Evidence struct {
	Memory map[ReturnAddr]int // addresses in memory
	Mapped bool               // the log or the user has told where files are in memory
	// Own, if not nil, returns addresses of a file, for code offsets that count its own code.
	Own func(*File) map[uint64]int
}

// Choice tells which files of [Config.Files] a boot may use. The zero Choice allows all.
type Choice struct {
	boot   Boot
	why    []string // by file: why the boot does not use it, "" if it does
	Notes  []string // on boots whose program is in no file; their addresses have no names
	Forced []string // on files that do not match, from which names are taken all the same
}

// Equal reports whether two choices allow the same files for the same program.
func (c *Choice) Equal(o *Choice) bool {
	return c.boot.Build == o.boot.Build && c.boot.Firmware == o.boot.Firmware && c.boot.Text == o.boot.Text &&
		slices.Equal(c.boot.Code, o.boot.Code) && slices.Equal(c.why, o.why)
}

// Choose returns the choice of a boot. Files that cannot be in memory together are candidates: two
// programs, or files whose addresses overlap. A boot uses the candidate that has its build ID, else
// its version, else the only one whose code fits: return addresses follow a call instruction there.
// A file that does not match has no names, unless Config.Check is false. The order of Config.Files
// decides nothing.
func (p *Process) Choose(b Boot, e Evidence) *Choice {
	c := &chooser{p: p, boot: b, e: e, why: make([]string, len(p.added)), fits: make([]fit, len(p.added))}
	limit := 0
	for _, n := range e.Memory {
		limit = max(limit, n)
	}
	c.least = (limit + damagedShare - 1) / damagedShare
	for i, o := range p.added {
		c.fits[i] = c.fit(o)
	}
	sure := c.byBuild() || c.byText()
	if !sure {
		c.byVersion()
	}
	if !e.Mapped {
		c.byFit()
		if !sure {
			c.mismatches()
		}
	}
	return &Choice{b, c.why, c.notes, c.forced}
}

const (
	// damagedShare: an address counts if its records are at least 1/50 of those of the most frequent
	// one. Lines damaged on the way to the log have other addresses each time.
	damagedShare = 50
	// minCalls is the least number of addresses in the code of a file by which it can be rejected, and
	// minFewCalls that of addresses each of which is in at least minRepeats records.
	minCalls    = 5
	minFewCalls = 2
	minRepeats  = 4
	// wrongShare is the share of addresses that follow a call below which a file is rejected.
	wrongShare = 0.7
	// sureShare is the share from which a file is taken although another one fits nearly as well.
	sureShare = 0.9
)

// chooser makes a Choice.
type chooser struct {
	p             *Process
	boot          Boot
	e             Evidence
	least         int // records of an address that counts
	why           []string
	notes, forced []string
	fits          []fit
}

// byBuild excludes the programs that do not have the build ID of the boot. It reports whether one has it.
func (c *chooser) byBuild() (found bool) {
	if c.boot.Build == "" {
		return false
	}
	for i, o := range c.p.added {
		found = found || o.file.program && c.same(i)
	}
	var others []string
	for i, o := range c.p.added {
		switch {
		case !o.file.program || c.same(i) || o.file.BuildID == "" && !found:
		case found && !slices.ContainsFunc(c.p.added, func(s *object) bool { return c.same(c.index(s)) && excludes(s, o) }):
		default:
			others = append(others, fmt.Sprintf("%s is %s", o.file.Path, short(o.file.BuildID)))
			c.why[i] = fmt.Sprintf("build %s ran, and no ELF file of it is given", short(c.boot.Build))
		}
	}
	switch {
	case found || len(others) == 0:
	case c.p.config.Check:
		c.notes = append(c.notes, fmt.Sprintf("build %s ran; %s", short(c.boot.Build), strings.Join(others, ", ")))
	default:
		clear(c.why)
		c.forced = append(c.forced, fmt.Sprintf("build %s ran; %s: its names may be wrong", short(c.boot.Build), strings.Join(others, ", ")))
	}
	return found
}

func (c *chooser) index(o *object) int { return slices.Index(c.p.added, o) }

// same reports whether a file has the build ID of the boot, which a device may write in part, and which a
// line may have damaged.
func (c *chooser) same(i int) bool {
	id, build := c.p.added[i].file.BuildID, strings.ToLower(c.boot.Build)
	switch {
	case id == "" || build == "":
		return false
	case id == build, len(build) >= minPart && strings.HasPrefix(id, build):
		return true
	}
	return len(build) >= 2*minPart && nearly(id, build) && !c.fits[i].wrong()
}

// minPart is the least number of digits of a part of a build ID.
const minPart = 8

// nearly reports whether one text becomes the other if one character is lost, added or replaced.
func nearly(a, b string) bool {
	if d := len(a) - len(b); d < -1 || d > 1 {
		return false
	}
	n := min(len(a), len(b))
	head := 0
	for head < n && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return max(len(a), len(b))-head-tail <= 1
}

// byVersion excludes candidates of other versions if one has the version of the boot.
func (c *chooser) byVersion() {
	if c.boot.Firmware == "" {
		return
	}
	is := func(o *object) bool { return c.version(o) == c.boot.Firmware && c.why[c.index(o)] == "" }
	for i, o := range c.p.added {
		if c.why[i] == "" && !is(o) && slices.ContainsFunc(c.p.added, func(s *object) bool { return is(s) && excludes(s, o) && !c.fits[c.index(s)].wrong() }) {
			c.why[i] = fmt.Sprintf("firmware %s ran", c.boot.Firmware)
		}
	}
}

// version returns the version that the note of a file has.
func (c *chooser) version(o *object) string {
	l, _ := o.file.Layout()
	return l.Firmware
}

// mismatches excludes the files whose code does not fit.
func (c *chooser) mismatches() {
	for i, o := range c.p.added {
		f := &c.fits[i]
		if c.why[i] != "" || !f.wrong() {
			continue
		}
		text := fmt.Sprintf("%s ran, not %s: only %d of %d addresses in its code follow a call", c.ran(), o.file.Path, f.follow, len(f.own))
		if v := c.version(o); v != "" && v != c.boot.Firmware {
			text += ", and it is version " + v
		}
		if c.p.config.Check {
			c.why[i] = c.ran() + " ran, and not " + o.file.Path
			c.notes = append(c.notes, text)
		} else {
			c.forced = append(c.forced, text+": its names may be wrong")
		}
	}
}

// excludes reports whether two files cannot be in memory together.
func excludes(a, b *object) bool {
	if a == b {
		return false
	}
	x, placed := a.bias(a.file)
	y, also := b.bias(b.file)
	if !placed || !also {
		return a.file.program && b.file.program && !placed && !also
	}
	for _, s := range a.file.textSpans {
		for _, t := range b.file.textSpans {
			if s.low+x < t.high+y && t.low+y < s.high+x {
				return true
			}
		}
	}
	return false
}

// findVersions numbers the programs of which there are several builds.
func (p *Process) findVersions() {
	n := 0
	for i, a := range p.added {
		for _, b := range p.added[i+1:] {
			if !excludes(a, b) {
				continue
			}
			if a.versions == 0 {
				n++
				a.versions = n
			}
			b.versions = a.versions
		}
	}
}

// short returns the beginning of a build ID.
func short(id string) string {
	if id == "" {
		return "without a build ID"
	}
	return id[:min(len(id), 12)]
}

// Use makes the Process use the files of a choice.
func (p *Process) Use(c *Choice) {
	if p.choice.Equal(c) {
		return
	}
	p.choice, p.modules = *c, nil
	for i, o := range p.added {
		o.out = ""
		if i < len(c.why) {
			o.out = c.why[i]
		}
		o.excluded = o.excluded || o.out != ""
	}
	p.change()
	p.SetBases(p.bases)
}

// Current returns the files of the configuration that the boot uses.
func (p *Process) Current() (list []*File) {
	for _, o := range p.added {
		if o.out == "" {
			list = append(list, o.file)
		}
	}
	return list
}
