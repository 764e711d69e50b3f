package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/internal/cli"
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

// gathered is what was read of logs.
type gathered struct {
	dump  *stats.Collector
	infer dump.Inference
	sc    *dump.Scanner
	files []string

	broken []string // logs that could not be read to their end, and why
}

func (r *reporter) newGathered() *gathered {
	word := 64
	if r.given != nil {
		word = r.given.Word()
	}
	g := &gathered{dump: stats.NewCollector(word), sc: dump.NewScanner(nil, "")}
	g.sc.Bare = r.bare
	g.sc.Word32 = word == 32
	return g
}

// add adds the record of the scanner.
func (g *gathered) add(rec *dump.Record) {
	if rec.Err != nil {
		return
	}
	g.dump.Add(&rec.Stack, rec.Blob, rec.Text)
	g.infer.Add(&rec.Stack, rec.Blob)
}

// read adds the records of a log. each, if not nil, is called after every one.
func (r *reporter) read(g *gathered, in *dump.Input, each func() error) error {
	progress := newProgress(in, r.stderr)
	defer progress.done()
	g.files = append(g.files, in.Name)
	if each == nil && !r.strict {
		return r.readParallel(g, progress, in.Name)
	}
	g.sc.Reset(progress, in.Name)
	for g.sc.Next() {
		rec := g.sc.Record()
		if rec.Err != nil && r.strict {
			progress.done()
			return cli.Shortf("%v: %v", rec.Place, rec.Err)
		}
		g.add(rec)
		if each != nil {
			if err := each(); err != nil {
				return err
			}
		}
	}
	return g.sc.Err()
}

// readFile reads a log. What was read before an error counts: the error is kept for the
// end of the report.
func (r *reporter) readFile(g *gathered, path string) error {
	in, err := dump.Open(path, r.stdin)
	if err != nil {
		return err
	}
	defer in.Close()
	before := g.dump.Records()
	err = r.read(g, in, nil)
	if n := g.dump.Records() - before; err != nil && n > 0 && cli.Code(err) != cli.Short {
		g.broken = append(g.broken, fmt.Sprintf("%v (%d records before it are in the report)", err, n))
		return nil
	}
	return err
}

// something returns an error if there was not one record.
func (g *gathered) something(bare bool) error {
	if g.dump.Records() > 0 {
		return nil
	}
	looked := "~m# and ~b#"
	if bare {
		looked += ", and lines of nothing but base64"
	}
	t := g.sc.Tally()
	msg := fmt.Sprintf("%s: no record in %s, %s; looked for %s",
		strings.Join(g.files, ", "), cli.Count(t.Bytes, "byte"), cli.Count(t.Lines, "line"), looked)
	for _, f := range t.Faults() {
		msg += fmt.Sprintf("\n  %d unreadable, %s: first at %v: %v", f.Count, f.Reason, f.Places[0], f.Errs[0])
	}
	if c := t.Cuts(); c.Count > 0 {
		msg += fmt.Sprintf("\n  %d cut, first at %v", c.Count, c.Places[0])
	}
	return errors.New(msg)
}

// log is the tally for the report.
func (g *gathered) log() stats.Log {
	t := g.sc.Tally()
	l := stats.Log{Files: g.files, Bytes: t.Bytes, Lines: t.Lines, Blobs: t.ByKind[dump.Blob],
		Decoded: t.ByKind[dump.Decoded], Bare: t.ByKind[dump.Bare], Lenient: t.Lenient,
		Cut: t.Cut, CutByLws: t.CutByLws}
	for _, p := range t.Cuts().Places {
		l.CutAt = append(l.CutAt, p.String())
	}
	for _, f := range t.Faults() {
		fault := stats.Fault{Reason: string(f.Reason), Count: f.Count}
		for _, p := range f.Places {
			fault.First = append(fault.First, p.String())
		}
		l.Unreadable = append(l.Unreadable, fault)
	}
	return l
}

// machine is the one given, or the one inferred.
func (g *gathered) machine(given *codec.Machine) (m codec.Machine, sure bool) {
	if given != nil {
		return *given, true
	}
	return g.infer.Machine()
}

func (r *reporter) report(g *gathered) (*stats.Report, error) {
	m, sure := g.machine(r.given)
	data := g.dump
	evidence := g.infer.Evidence()
	if r.addr != nil {
		data, m = g.dump.Rebased(m, *r.addr)
		evidence = append(evidence, fmt.Sprintf("addresses moved to %#x, blobs as lws would write them there", *r.addr))
	}
	o := stats.Options{Log: g.log(), Machine: m, Given: r.given != nil, Sure: sure,
		Evidence: evidence, CapturedPre: r.pre, CapturedPost: r.post}
	if r.names.given() && r.addr == nil {
		word, by := 0, ""
		if r.given != nil || sure && m.Word() == 64 { // 32 bits can be a 64-bit program at low addresses
			word, by = m.Word(), "machine "+m.String()
		}
		n, err := r.names.open(g.dump, word, by)
		if err != nil {
			return nil, err
		}
		defer n.close()
		o.Name = n.name
		if re := r.names.hidden; re != nil {
			o.Hidden = func(pc uint64, lossy bool) bool {
				name := n.name(pc, lossy)
				return name != "" && re.MatchString(name)
			}
		}
	}
	return data.Report(o), nil
}

func (r *reporter) reportLogs() error {
	g := r.newGathered()
	paths := r.args
	if r.follow {
		paths = paths[:len(paths)-1]
	}
	for _, path := range paths {
		if err := r.readFile(g, path); err != nil {
			return err
		}
	}
	if r.follow {
		if err := r.followFile(g, r.args[len(r.args)-1]); err != nil {
			return err
		}
	}
	if err := g.something(r.bare); err != nil {
		return err
	}
	rep, err := r.report(g)
	if err != nil {
		return err
	}
	if err := r.write(r.stdout, rep, rep.Sections()); err != nil {
		return err
	}
	if len(g.broken) > 0 {
		return cli.Shortf("not read to the end: %s", strings.Join(g.broken, "; "))
	}
	return nil
}

// followFile reads a log until interrupted, with a report each interval in which
// records came.
func (r *reporter) followFile(g *gathered, path string) error {
	in, err := dump.Follow(r.ctx, path)
	if err != nil {
		return err
	}
	defer in.Close()
	next, reported := time.Now().Add(r.interval), uint64(0)
	due := func() error {
		if time.Now().Before(next) || g.dump.Records() == reported {
			return nil
		}
		reported = g.dump.Records()
		rep, err := r.report(g)
		if err == nil {
			err = r.write(r.stdout, rep, rep.Sections())
		}
		if err == nil && r.format != "json" {
			_, err = io.WriteString(r.stdout, "\n")
		}
		next = time.Now().Add(r.interval)
		return err
	}
	in.Idle = due
	return r.read(g, in, due)
}
