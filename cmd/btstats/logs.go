package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/stats"
)

// reporter is one run of the command.
type reporter struct {
	*config
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

// gathered holds the data read from logs.
type gathered struct {
	dump     *stats.Collector
	infer    stats.Inference
	tally    tally
	files    []string
	headers  bool     // the log has ~h# lines, which lws does not write
	memory   []byte   // of inMemory
	broken   []string // logs that could not be read to their end, and why
	damaged  int64    // damaged records that are left out
	restored int64    // damaged records that count as others
	unlike   int64    // dumps that have other records than they announce
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
func (g *gathered) add(s *codec.Stack, blob, memory []byte) {
	g.dump.Add(s, memory)
	g.infer.Add(s, blob)
}

// machine returns the machine that --machine names, or else the inferred machine.
func (g *gathered) machine(given *codec.Machine) (m codec.Machine, sure bool) {
	if given != nil {
		return *given, true
	}
	return g.infer.Machine()
}

// report returns the report.
func (r *reporter) report(g *gathered) *stats.Report {
	m, sure := g.machine(r.given)
	o := stats.Options{Log: g.tally.log(g.files, g.headers), Machine: m, Given: r.given != nil, Sure: sure,
		Evidence: g.infer.Evidence(), CapturedPre: r.pre, CapturedPost: r.post}
	if g.headers && r.captured == "" {
		o.CapturedPre, o.CapturedPost = 0, 0 // the default of device/
	}
	cli.Collect()
	return g.dump.Report(o)
}

func (r *reporter) reportLogs() error {
	g := r.newGathered()
	p, err := r.open(g)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.run(); err != nil {
		return err
	}
	if g.dump.Records() == 0 {
		return g.tally.nothing(g.files, g.damaged)
	}
	if err := r.write(r.stdout, r.report(g)); err != nil {
		return err
	}
	if len(g.broken) > 0 {
		return cli.Shortf("not read to the end: %s", strings.Join(g.broken, "; "))
	}
	note := func(n int64, what, text string) {
		if n > 0 {
			fmt.Fprintf(r.stderr, "btstats: %s %s\n", cli.Count(n, what), text)
		}
	}
	note(g.restored, "damaged record", "counted as the records that they were, or as the sums of their dumps say")
	note(g.damaged, "damaged record", "left out")
	note(g.unlike, "dump", fmt.Sprintf("of %d without the records that they announce", g.tally.dumps))
	return nil
}
