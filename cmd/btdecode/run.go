package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/dump"
	"github.com/lwsbt/lwsbt/symbol"
)

// Exit codes.
const (
	exitOK    = 0
	exitData  = 1 // a record could not be read, under --strict
	exitUsage = 2 // usage, unreadable input, or nothing to do
)

// run is the command; it returns its exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "btdecode: %v\nTry 'btdecode --help'.\n", err)
		return exitUsage
	}
	if o.help {
		return exitOK
	}
	d := &decoder{options: o, stdin: stdin, stderr: stderr, cleanup: func() {}}
	defer d.process.Close()
	defer func() { d.cleanup() }()
	code, err := d.run(stdout)
	switch {
	case errors.Is(err, syscall.EPIPE):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "btdecode: %v\n", err)
		return exitUsage
	}
	return code
}

// decoder is one run of the command.
type decoder struct {
	*options
	stdin   io.Reader
	stderr  io.Writer
	process symbol.Process
	maps    []snapshot
	offset  uint64 // of the section that -j names

	sources []source
	cleanup func()
	scanner *dump.Scanner
	sink    sink
	places  []symbol.FrameAddr
	found   int64 // records
	markup  int   // lines that were not understood
}

// sink is what an output format is made of.
type sink interface {
	// record is given each record that could be read, at least in part. Places
	// are nil where nothing is looked up.
	record(rec *dump.Record, fixed symbol.Recovery, places []symbol.FrameAddr) error
	// unreadable is given the others.
	unreadable(rec *dump.Record) error
	// close writes what is left.
	close() error
}

func (d *decoder) run(stdout io.Writer) (code int, err error) {
	if err := d.open(); err != nil {
		return 0, err
	}
	out, done, err := d.create(stdout)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(out, 64<<10)
	d.sink = d.newSink(w, stdout)
	if err = d.readAll(w); err == nil && d.found > 0 {
		err = d.sink.close()
	}
	if e := w.Flush(); err == nil {
		err = e
	}
	if e := done(); err == nil {
		err = e
	}
	if err != nil {
		return 0, err
	}
	t := d.scanner.Tally()
	if !d.quiet {
		d.notes(t)
	}
	switch {
	case d.found == 0:
		return 0, fmt.Errorf("no records in %d bytes: looked for %s and %s", t.Bytes, codec.LeadIn, codec.LeadInDecoded)
	case t.Read+t.Cut == 0:
		return 0, fmt.Errorf("none of %d records could be read", d.found)
	case d.strict && t.Unreadable+t.Cut > 0:
		return exitData, nil
	}
	return exitOK, nil
}

// open opens what the flags name, and finds load bases where they are asked for.
func (d *decoder) open() (err error) {
	r := &d.process.Files
	r.DebugDirs, r.Sysroots, r.Adjust = d.debugDirs, d.sysroots, d.adjustment
	d.process.Lossless = d.machSet && !d.mach.Lossy()
	for _, e := range d.exes {
		g, err := symbol.ParseFileSpec(e)
		if err != nil {
			return fmt.Errorf("-e %w", err)
		}
		if err := r.AddFile(g); err != nil {
			return fmt.Errorf("-e %w", err)
		}
	}
	if d.section != "" {
		if d.offset, err = r.Files()[0].SectionAddr(d.section); err != nil {
			return fmt.Errorf("-j: %w", err)
		}
	}
	if d.maps, err = d.readSnapshots(); err != nil {
		return err
	}
	if d.sources, err = d.findSources(); err != nil {
		return err
	}
	r.SetBases(nil)
	if len(d.maps) == 0 && len(r.FilesWithoutBase()) > 0 && d.section == "" {
		if d.follow {
			d.note("--follow: load bases cannot be found in a log without an end; give --maps or -e FILE@0xBASE")
			return nil
		}
		return d.findBases()
	}
	return nil
}

// create opens the output; done closes it.
func (d *decoder) create(stdout io.Writer) (w io.Writer, done func() error, err error) {
	if d.output == "" || d.output == "-" {
		return stdout, func() error { return nil }, nil
	}
	f, err := os.Create(d.output)
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}

func (d *decoder) newSink(w *bufio.Writer, stdout io.Writer) sink {
	if d.top > 0 {
		return &topSink{stacks: newStacks(d.options), w: w, n: d.top, stderr: d.stderr}
	}
	switch d.format {
	case "addr2line":
		return &addr2lineSink{w: w, options: d.options}
	case "jsonl":
		return newJSONSink(w, d.options)
	case "folded":
		return &foldedSink{stacks: newStacks(d.options), w: w, count: d.weight == "count"}
	case "pprof":
		return &pprofSink{stacks: newStacks(d.options), w: w, process: &d.process}
	case "speedscope":
		return &speedscopeSink{stacks: newStacks(d.options), w: w}
	}
	if d.encode {
		return &encodeSink{w: w, passthrough: d.passthrough, machine: d.mach, how: d.how}
	}
	return newTextSink(w, d.options, stdout)
}

// readAll reads all sources.
func (d *decoder) readAll(w *bufio.Writer) error {
	flush := func() error { return nil }
	if d.follow {
		flush = w.Flush
	}
	return d.scan(d.sink, func(rec *dump.Record) error {
		if err := d.one(rec); err != nil {
			return err
		}
		return flush()
	})
}

// one hands one record to the sink.
func (d *decoder) one(rec *dump.Record) error {
	d.found++
	if rec.Err != nil && !rec.Cut {
		return d.sink.unreadable(rec)
	}
	for len(d.maps) > 0 && d.maps[0].from <= rec.Line {
		d.process.Maps.Set(d.maps[0].list)
		d.maps = d.maps[1:]
	}
	s := &rec.Stack
	if d.offset != 0 {
		for i := range s.PCs {
			s.PCs[i] += d.offset
		}
	}
	if !d.symbols() && d.process.Maps.Space() == nil {
		return d.sink.record(rec, d.process.Recover(s, rec.Blob), nil)
	}
	var fixed symbol.Recovery
	d.places, fixed = d.process.Resolve(d.places[:0], s, rec.Blob)
	return d.sink.record(rec, fixed, d.places)
}

// scan runs over all sources: text goes to the timeline and, if it wants it, to
// the sink; records to each.
func (d *decoder) scan(to any, each func(*dump.Record) error) error {
	text, _ := to.(textWriter)
	tap := &symbol.MarkupWriter{Timeline: &d.process.Maps, Bad: d.badMarkup}
	if d.scanner == nil {
		d.scanner = dump.NewScanner(nil, "")
	}
	d.scanner.Text, d.scanner.Bare = &textTap{text, tap}, d.bare
	d.scanner.Word32 = d.machSet && d.mach.Word() == 32
	for i := range d.sources {
		in, err := d.sources[i].open()
		if err != nil {
			return err
		}
		d.scanner.Reset(in, in.Name)
		for d.scanner.Next() {
			if err = each(d.scanner.Record()); err != nil {
				break
			}
		}
		if err == nil {
			err = d.scanner.Err()
		}
		in.Close()
		tap.Reset()
		if err != nil {
			return err
		}
	}
	return nil
}

// interrupted is done when the user ends --follow.
func interrupted() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	return ctx
}

// textWriter is a sink that wants the text between records.
type textWriter interface{ text(p []byte) error }

// textTap passes the text between records on to a sink that wants it, and to what
// reads its markup.
type textTap struct {
	sink   textWriter // may be nil
	markup *symbol.MarkupWriter
}

func (t *textTap) Write(p []byte) (int, error) {
	if t.sink != nil {
		if err := t.sink.text(p); err != nil {
			return 0, err
		}
	}
	return t.markup.Write(p)
}
