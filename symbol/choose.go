package symbol

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Boot is what a log says of the program of one boot. Fields that it does not give are "".
type Boot struct {
	Build    string // build ID in hexadecimal
	Firmware string // version
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
func (c *Choice) Equal(o *Choice) bool { return c.boot == o.boot && slices.Equal(c.why, o.why) }

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
	sure := c.byBuild()
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

// fit is how the code of a file fits the addresses of a boot.
type fit struct {
	own     []uint64 // distinct addresses in its code
	follow  int      // those that follow a call
	repeats bool     // each is in at least minRepeats records
	unknown bool     // calls cannot be recognized, or the load base is not known
}

func (f *fit) share() float64 { return float64(f.follow) / float64(max(len(f.own), 1)) }

// wrong reports whether the code of the file does not fit.
func (f *fit) wrong() bool {
	enough := len(f.own) >= minCalls || f.repeats && len(f.own) >= minFewCalls
	return !f.unknown && enough && f.share() < wrongShare
}

// fit compares the addresses with the code of a file.
func (c *chooser) fit(o *object) (f fit) {
	bias, known := o.bias(o.file)
	f.unknown = !o.file.CanTellCalls() || !known && c.e.Own == nil
	f.repeats = true
	own := map[uint64]bool{}
	add := func(pc uint64, n int) {
		if o.file.Executable(pc) {
			own[pc] = true
			f.repeats = f.repeats && n >= minRepeats
		}
	}
	if known {
		for a, n := range c.e.Memory {
			if pc, ok := o.file.ownAddr(a.PC, bias); ok && !a.Lossy && n >= c.least {
				add(pc, n)
			}
		}
	}
	if c.e.Own != nil {
		list := c.e.Own(o.file)
		most := 0
		for _, n := range list {
			most = max(most, n)
		}
		for pc, n := range list {
			if n*damagedShare >= most {
				add(pc, n)
			}
		}
	}
	if !known && c.e.Own == nil && len(c.p.added) > 1 {
		f.unknown = !c.anywhere(o.file, add)
	}
	f.own = slices.Sorted(maps.Keys(own))
	for _, pc := range f.own {
		if o.file.FollowsCall(pc) {
			f.follow++
		}
	}
	return f
}

// anywhere adds the addresses of a file at the load base that they vote for. It reports whether there is one.
func (c *chooser) anywhere(f *File, add func(pc uint64, n int)) bool {
	seen := distinct(slices.Collect(maps.Keys(c.e.Memory)))
	b := f.vote(seen)
	for _, a := range seen {
		if pc, ok := f.own(b.Bias, a.PC); ok && b.Sound() {
			add(pc, 1)
		}
	}
	return b.Sound()
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

// byFit keeps one of the candidates that exclude each other.
func (c *chooser) byFit() {
	for i, o := range c.p.added {
		rivals := []int{i}
		for k, other := range c.p.added {
			if k != i && c.why[i] == "" && c.why[k] == "" && excludes(o, other) {
				rivals = append(rivals, k)
			}
		}
		if len(rivals) == 1 {
			continue
		}
		best := c.best(rivals)
		if best < 0 && c.e.Own == nil && !slices.ContainsFunc(rivals, func(k int) bool {
			_, placed := c.p.added[k].bias(c.p.added[k].file)
			return placed || !c.fits[k].unknown
		}) {
			continue // no base could be inferred, which is said elsewhere
		}
		for _, k := range rivals {
			switch {
			case k == best:
			case best >= 0:
				c.why[k] = fmt.Sprintf("%s fits", c.p.added[best].file.Path)
			case c.p.config.Check:
				c.why[k] = "several ELF files may be the program"
			case k != slices.Min(rivals):
				c.why[k] = "--force"
			}
		}
		if best < 0 {
			c.ambiguous(rivals)
		}
	}
}

// ambiguous notes that none of several candidates could be chosen.
func (c *chooser) ambiguous(rivals []int) {
	var names []string
	total, wrong := 0, true
	for _, k := range rivals {
		f := &c.fits[k]
		names = append(names, fmt.Sprintf("%s (%d of %d addresses in its code follow a call)", c.p.added[k].file.Path, f.follow, len(f.own)))
		total, wrong = total+len(f.own), wrong && f.wrong()
	}
	slices.Sort(names)
	text := "no build= says which of these ran: "
	switch {
	case wrong:
		text = c.ran() + " ran, and is none of these: "
	case total == 0:
		return // no address is in any of them
	}
	text += strings.Join(names, ", ")
	if c.p.config.Check {
		c.notes = append(c.notes, text)
	} else {
		c.forced = append(c.forced, text+"; names may be wrong")
	}
}

// ran names the program of the boot.
func (c *chooser) ran() string {
	switch {
	case c.boot.Build != "":
		return "build " + short(c.boot.Build)
	case c.boot.Firmware != "":
		return "firmware " + c.boot.Firmware
	}
	return "another build"
}

// best returns the only candidate whose code fits, -1 if none or several do. Of several with the same
// functions at all addresses, it returns the first by build ID and path.
func (c *chooser) best(rivals []int) int {
	order := slices.SortedFunc(slices.Values(rivals), func(a, b int) int {
		x, y := &c.fits[a], &c.fits[b]
		if x.share() != y.share() {
			return -compare(x.share(), y.share())
		}
		if len(x.own) != len(y.own) {
			return len(y.own) - len(x.own)
		}
		f, g := c.p.added[a].file, c.p.added[b].file
		return strings.Compare(f.BuildID+f.Path, g.BuildID+g.Path)
	})
	first, second := &c.fits[order[0]], &c.fits[order[1]]
	switch {
	case first.unknown || first.wrong() || len(first.own) == 0:
		return -1
	case first.share() < sureShare && first.share()-second.share() < 1-wrongShare:
		return -1
	case len(first.own) > len(second.own) && first.follow > second.follow, first.share() > second.share():
		return order[0]
	}
	for _, k := range order[1:] {
		if f := &c.fits[k]; f.share() == first.share() && !slices.Equal(c.functions(order[0]), c.functions(k)) {
			return -1
		}
	}
	return order[0]
}

func compare(a, b float64) int {
	if a < b {
		return -1
	}
	return 1
}

// functions returns the functions at the addresses of a candidate.
func (c *chooser) functions(i int) (list []string) {
	f := c.p.added[i].file
	for _, pc := range c.fits[i].own {
		frames, _ := f.Lookup(nil, f.arch.CallAddr(pc))
		for _, fr := range frames {
			list = append(list, fr.Func)
		}
		list = append(list, "")
	}
	return list
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
