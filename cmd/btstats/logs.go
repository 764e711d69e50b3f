package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lwsbt/lwsbt/codec"
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

// gathered holds the data read from logs.
type gathered struct {
	dump    *stats.Collector
	infer   stats.Inference
	tally   tally
	files   []string
	headers bool     // the log has ~h# lines, which lws does not write
	memory  []byte   // of inMemory
	broken  []string // logs that could not be read to their end, and why
	names   names
}

func (r *reporter) newGathered() *gathered {
	word := 64
	if r.given != nil {
		word = r.given.Word()
	}
	return &gathered{dump: stats.NewCollector(word)}
}

// add adds a record. blob is nil if the record has none. memory is the blob in the device's
// memory.
func (g *gathered) add(s *codec.Stack, blob, memory, text []byte) {
	g.dump.Add(s, memory, text)
	g.infer.Add(s, blob)
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
	o := stats.Options{Log: g.tally.log(g.files, g.headers), Machine: m, Given: given != nil, Sure: sure,
		Evidence: evidence, CapturedPre: r.pre, CapturedPost: r.post}
	if g.headers && r.captured == "" {
		o.CapturedPre, o.CapturedPost = 0, 0 // the default of device/
	}
	if r.Named() && r.addr == nil {
		g.names.settle()
		o.Name = func(pc uint64, lossy bool) string { return g.names.of[address{pc, lossy}] }
		if re := r.hide; re != nil {
			o.Hidden = func(pc uint64, lossy bool) bool {
				name := o.Name(pc, lossy)
				return name != "" && re.MatchString(name)
			}
		}
	}
	cli.Collect()
	return data.Report(o)
}

func (r *reporter) reportLogs() error {
	g := r.newGathered()
	p, err := r.open(g)
	if err != nil {
		return err
	}
	defer p.close()
	if r.Follow {
		p.each = r.reportEachInterval(g)
	}
	if err := p.run(); err != nil {
		return err
	}
	if g.dump.Records() == 0 {
		return g.tally.nothing(g.files, r.Bare)
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
func (r *reporter) reportEachInterval(g *gathered) func() error {
	next, reported := time.Now().Add(r.interval), uint64(0)
	return func() error {
		if time.Now().Before(next) || g.dump.Records() == reported {
			return nil
		}
		reported = g.dump.Records()
		rep := r.report(g, r.given)
		err := r.write(r.stdout, rep, rep.Sections())
		if err == nil && r.format != "json" {
			_, err = io.WriteString(r.stdout, "\n")
		}
		next = time.Now().Add(r.interval)
		return err
	}
}
