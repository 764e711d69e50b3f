package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	heaplog "github.com/lwsbt/lwsbt/heap/log"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cli/logflags"
	"github.com/lwsbt/lwsbt/stats"
)

// reporter is one run of the command.
type reporter struct {
	*config
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

// gathered holds the data read from logs.
type gathered struct {
	dump    *stats.Collector
	infer   stats.Inference
	summary heaplog.Summary
	files   []string
	dumps   int64    // ~h#begin headers
	headers bool     // the log has ~h# lines, which lws does not write
	memory  []byte   // of inMemory
	broken  []string // logs that could not be read to their end, and why
	names   map[address]string
}

// address is an address in a record.
type address struct {
	pc    uint64
	lossy bool // only the low 31 bits of pc are known
}

func (r *reporter) newGathered() *gathered {
	word := 64
	if r.given != nil {
		word = r.given.Word()
	}
	return &gathered{dump: stats.NewCollector(word), names: map[address]string{}}
}

// name keeps the function of each address of a record. For inlined calls it is the outermost
// function, which has the frame.
func (g *gathered) name(it *heaplog.Item) {
	for i, a := range it.Allocs[0].Stack {
		if frames := a.Frames(); len(frames) > 0 {
			g.names[address{it.Stack.PCs[i], it.Stack.Marks.Lossy>>i&1 != 0}] = frames[len(frames)-1].Name
		}
	}
}

// add adds a record. blob is nil if the record has none. memory is the blob in the device's
// memory.
func (g *gathered) add(s *codec.Stack, blob, memory, text []byte) {
	g.dump.Add(s, memory, text)
	g.infer.Add(s, blob)
}

// inMemory returns the blob of an item as in the device's memory, without the address of the
// block, which only dumps have. The result is valid until the next call.
func (g *gathered) inMemory(it *heaplog.Item) []byte {
	if it.User == nil || it.Blob == nil {
		return it.Blob
	}
	if _, ok := it.User.Get(codec.TagAddress); !ok {
		return it.Blob
	}
	var rest codec.User
	for _, tag := range []codec.Tag{codec.TagTime, codec.TagThread, codec.TagSequence} {
		if v, ok := it.User.Get(tag); ok {
			rest.Set(tag, v)
		}
	}
	blob, err := codec.AppendUser(g.memory[:0], it.Blob, &rest)
	if err != nil {
		return it.Blob
	}
	g.memory = blob
	return blob
}

// addPaths adds the call paths of a line. All blocks of an entry count with their mean size.
func (g *gathered) addPaths(it *heaplog.Item) {
	for i := range it.Allocs {
		a := &it.Allocs[i]
		if a.Definition || a.Count == 0 {
			continue
		}
		s := codec.Stack{Size: a.Bytes / a.Count}
		for _, addr := range a.Stack {
			s.PCs = append(s.PCs, addr.PC)
		}
		g.dump.AddPath(&s, a.Count)
		if s.PCs = s.PCs[:min(len(s.PCs), codec.MaxDepth)]; len(s.PCs) > 0 {
			g.infer.Add(&s, nil)
		}
	}
}

// open opens the logs. It opens ELF files only if the report needs the names of functions.
func (r *reporter) open() (*heaplog.Reader, error) {
	var more []heaplog.Option
	if !r.Named() {
		more = append(more, heaplog.Unnamed())
	}
	if r.Follow {
		more = append(more, heaplog.Refresh(refresh))
	}
	return r.Open(r.ctx, r.args, r.stdin, more...)
}

// refresh is the silence of a followed log after which a due report is written.
const refresh = 50 * time.Millisecond

// read adds the records of all logs. Records read before an error count; the error is
// kept for the end of the report. each, if not nil, is called after each record, and
// when a followed log has no more records for now.
func (r *reporter) read(g *gathered, log *heaplog.Reader, each func() error) error {
	defer func() { g.summary = log.Summary() }()
	file, before := "", uint64(0) // records before the file
	for it, err := range log.Items() {
		if err != nil {
			if err = g.failed(err, before); err != nil {
				return err
			}
			continue
		}
		if it.File != file {
			file, before = it.File, g.dump.Records()
		}
		switch it.Kind {
		case recording.KindHeader:
			g.headers = true
			if it.Header.Verb == codec.VerbBegin {
				g.dumps++
			}
			continue
		case recording.KindText, recording.KindEvent, recording.KindPathEvents:
			continue
		case recording.KindPaths:
			g.addPaths(it)
		case recording.KindIdle:
		default:
			if it.Err != nil && r.Strict {
				return cli.Shortf("%v: %v", it.Place, it.Err)
			}
			if it.Err == nil {
				g.add(it.Stack, it.Blob, g.inMemory(it), it.Text)
				if r.Named() {
					g.name(it)
				}
			}
		}
		if each != nil {
			if err := each(); err != nil {
				return err
			}
		}
	}
	return nil
}

// failed returns a read error, unless the report includes it. before is the number of
// records before the log.
func (g *gathered) failed(err error, before uint64) error {
	var read *heaplog.ReadError
	n := g.dump.Records() - before
	switch {
	case errors.Is(err, heaplog.ErrNoRecord): // see something
	case errors.As(err, &read) && n > 0:
		g.broken = append(g.broken, fmt.Sprintf("%v (%d records before it are in the report)", err, n))
	case errors.As(err, &read), !errors.Is(err, context.Canceled):
		return err
	}
	return nil
}

// something returns an error if there was no record.
func (g *gathered) something(bare bool) error {
	if g.dump.Records() > 0 {
		return nil
	}
	looked := "~m#, ~b# and ~p#"
	if bare {
		looked += ", and lines of nothing but base64"
	}
	sum := &g.summary
	msg := fmt.Sprintf("%s: no record in %s, %s; looked for %s",
		strings.Join(g.files, ", "), cli.Count(sum.Bytes, "byte"), cli.Count(sum.Lines, "line"), looked)
	for _, f := range sum.Faults {
		if !f.Cut {
			msg += fmt.Sprintf("\n  %d unreadable, %s: first at %v: %v", f.Count, f.Reason, f.Places[0], f.Errs[0])
		}
	}
	if cuts := g.cuts(); len(cuts) > 0 {
		msg += fmt.Sprintf("\n  %d cut, first at %v", sum.Cut, cuts[0])
	}
	return errors.New(msg)
}

// cuts returns the places of the first cut records, at most three.
func (g *gathered) cuts() (list []recording.Place) {
	for _, f := range g.summary.Faults {
		if f.Cut {
			list = append(list, f.Places...)
		}
	}
	slices.SortStableFunc(list, func(a, b recording.Place) int {
		return cmp.Or(slices.Index(g.files, a.File)-slices.Index(g.files, b.File), cmp.Compare(a.Offset, b.Offset))
	})
	return list[:min(len(list), 3)]
}

// log returns the summary for the report.
func (g *gathered) log() stats.Log {
	sum := &g.summary
	l := stats.Log{Files: g.files, Device: g.headers, Bytes: sum.Bytes, Lines: sum.Lines, Blobs: sum.Records[recording.KindBlob],
		Dumps: g.dumps, Decoded: sum.Records[recording.KindDecoded], Bare: sum.Records[recording.KindBareBlob], Lenient: sum.Lenient,
		Cut: sum.Cut, CutByLws: sum.CutByLws}
	for _, p := range g.cuts() {
		l.CutAt = append(l.CutAt, p.String())
	}
	for _, f := range sum.Faults {
		if f.Cut {
			continue
		}
		fault := stats.Fault{Reason: string(f.Reason), Count: f.Count}
		for _, p := range f.Places {
			fault.First = append(fault.First, p.String())
		}
		l.Unreadable = append(l.Unreadable, fault)
	}
	return l
}

// machine returns the machine that --machine names, or else the inferred machine.
func (g *gathered) machine(given *codec.Machine) (m codec.Machine, sure bool) {
	if given != nil {
		return *given, true
	}
	return g.infer.Machine()
}

// report returns the report for a machine, which is inferred if given is nil.
func (r *reporter) report(g *gathered, given *codec.Machine) *stats.Report {
	m, sure := g.machine(given)
	data := g.dump
	evidence := g.infer.Evidence()
	if r.addr != nil {
		data, m = g.dump.Rebased(m, *r.addr)
		evidence = append(evidence, fmt.Sprintf("addresses moved to %#x, blobs as lws would write them there", *r.addr))
	}
	o := stats.Options{Log: g.log(), Machine: m, Given: given != nil, Sure: sure,
		Evidence: evidence, CapturedPre: r.pre, CapturedPost: r.post}
	if g.headers && r.captured == "" {
		o.CapturedPre, o.CapturedPost = 0, 0 // the default of device/
	}
	if r.Named() && r.addr == nil {
		o.Name = func(pc uint64, lossy bool) string { return g.names[address{pc, lossy}] }
		if re := r.Filter.Hide; re != nil {
			o.Hidden = func(pc uint64, lossy bool) bool {
				name := o.Name(pc, lossy)
				return name != "" && re.MatchString(name)
			}
		}
	}
	return data.Report(o)
}

func (r *reporter) reportLogs() error {
	g := r.newGathered()
	for _, path := range r.args {
		switch {
		case path == cli.Stdio:
			path = logflags.Stdin
		case logflags.IsRecord(path):
			path = "<arguments>"
		}
		g.files = append(g.files, path)
	}
	log, err := r.open()
	if err != nil {
		return err
	}
	defer log.Close()
	var each func() error
	if r.Follow {
		each = r.reportEachInterval(g, log)
	}
	if err := r.read(g, log, each); err != nil {
		return err
	}
	if err := g.something(r.Bare); err != nil {
		return err
	}
	rep := r.report(g, r.given)
	if err := r.write(r.stdout, rep, rep.Sections()); err != nil {
		return err
	}
	if len(g.broken) > 0 {
		return cli.Shortf("not read to the end: %s", strings.Join(g.broken, "; "))
	}
	return nil
}

// reportEachInterval returns a function that writes a report if the interval is over and
// has new records.
func (r *reporter) reportEachInterval(g *gathered, log *heaplog.Reader) func() error {
	next, reported := time.Now().Add(r.interval), uint64(0)
	return func() error {
		if time.Now().Before(next) || g.dump.Records() == reported {
			return nil
		}
		reported = g.dump.Records()
		g.summary = log.Summary()
		rep := r.report(g, r.given)
		err := r.write(r.stdout, rep, rep.Sections())
		if err == nil && r.format != "json" {
			_, err = io.WriteString(r.stdout, "\n")
		}
		next = time.Now().Add(r.interval)
		return err
	}
}
