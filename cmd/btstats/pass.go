package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cli/logflags"
	"github.com/lwsbt/lwsbt/internal/input"
	"github.com/lwsbt/lwsbt/internal/process"
)

// pass reads all logs once: input → recording.Reader → gathered.
type pass struct {
	r      *reporter
	g      *gathered
	ctx    context.Context // ends what reads ahead
	cancel func()
	inputs []*input.Input
	each   func() error // called after each record, and while a log has no more data; may be nil
	err    error        // of each; ends the pass

	reader  recording.Reader
	log     recording.Log
	process *process.Process
	maps    []process.Snapshot // of --maps, those that do not apply yet
	mapped  bool               // --maps was given: the log's own map does not count
	code    *process.Code      // of this boot, nil before its first line of call paths
	used    *callpath.Names    // of its lines
	before  *callpath.Names    // used by the boot before
	pcs     []uint64           // reused
}

// open opens the logs. It opens ELF files only if the report needs the names of functions.
func (r *reporter) open(g *gathered) (*pass, error) {
	logs, err := logflags.Logs(r.args, r.stdin)
	if err != nil {
		return nil, err
	}
	p := &pass{r: r, g: g, mapped: len(r.Maps) > 0}
	p.ctx, p.cancel = context.WithCancel(r.ctx)
	p.reader.Bare = r.Bare
	p.reader.Always32 = r.given != nil && r.given.Word() == 32
	for _, l := range logs {
		g.files = append(g.files, l.Name)
		var in *input.Input
		switch {
		case l.Stream != nil:
			in = input.FromReader(l.Stream, l.Name)
		case r.Follow:
			in, err = input.Follow(l.Name)
		default:
			in, err = input.File(l.Name)
		}
		if err != nil {
			p.close()
			return nil, err
		}
		p.inputs = append(p.inputs, in)
	}
	if p.process, p.maps, err = r.openProcess(p.ctx); err != nil {
		p.close()
		return nil, err
	}
	g.names = names{process: p.process, named: r.Named(), machine: r.given, of: map[address]string{}, waiting: map[address]bool{}}
	return p, nil
}

// close closes all files.
func (p *pass) close() {
	p.cancel()
	if p.process != nil {
		p.process.Close()
	}
	for _, in := range p.inputs {
		if in.Stream != nil {
			in.Stream.Close()
		}
	}
}

// run reads all logs. Records before a read error count; the error is kept for the end of the
// report.
func (p *pass) run() error {
	for i, in := range p.inputs {
		p.begin(i == 0)
		before := p.g.dump.Records()
		err := p.read(in)
		var damage *readError
		switch n := p.g.dump.Records() - before; {
		case p.err != nil:
			return p.err
		case errors.As(err, &damage) && n > 0:
			p.g.broken = append(p.g.broken, fmt.Sprintf("%v (%d records before it are in the report)", err, n))
		case err != nil:
			return err
		}
	}
	p.log, p.used, p.before = recording.Log{}, nil, nil // the names of call paths, which may be as large as the rest
	return nil
}

// readError is an error in reading a log.
type readError struct{ text string }

func (e *readError) Error() string { return e.text }

// begin begins a log. Its records belong to another boot.
func (p *pass) begin(first bool) {
	p.process.NewLog()
	p.log = recording.Log{SameELF: p.log.SameELF}
	if !first {
		p.newCode()
	}
}

// newCode begins a boot with its ~h#boot line, or a log.
func (p *pass) newCode() {
	p.process.ResetCode()
	p.code, p.before = nil, p.used
}

// read reads a log.
func (p *pass) read(in *input.Input) error {
	hooks := input.Hooks{Ctx: p.ctx, Note: func(text string) { fmt.Fprintf(p.r.stderr, "btstats: %s\n", cli.Printable(text)) }, Idle: p.wait}
	src, err := in.Open(&hooks)
	if err != nil {
		return err
	}
	defer src.Close()
	data := &counted{src: src, n: &p.g.tally.bytes, last: '\n'}
	p.reader.Reset(data, in.Name)
	defer func() {
		p.g.tally.lines += p.reader.Place().Line - 1
		if data.last != '\n' {
			p.g.tally.lines++
		}
	}()
	for {
		it, err := p.reader.Next()
		switch {
		case p.err != nil:
			return p.err
		case err == io.EOF:
			return nil
		case err != nil:
			return &readError{in.Name + ": " + input.Reason(src.Compression, err)}
		}
		if err := p.use(it); err != nil {
			return err
		}
	}
}

// wait calls each.
func (p *pass) wait() error {
	if p.each != nil && p.err == nil {
		p.err = p.each()
	}
	return p.err
}

// counted counts the bytes that are read through it.
type counted struct {
	src  io.Reader
	n    *int64
	last byte
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.src.Read(b)
	if n > 0 {
		*c.n += int64(n)
		c.last = b[n-1]
	}
	return n, err
}

// use adds an item to what was gathered.
func (p *pass) use(it *recording.Item) error {
	if it.Kind == recording.KindText {
		if boots, _ := p.process.Markup(it.Text); boots {
			p.g.names.settle()
			p.log.Restart()
		}
		return nil
	}
	p.g.tally.add(it)
	switch it.Kind {
	case recording.KindHeader:
		p.g.headers = true
		p.header(it)
		return nil
	case recording.KindEvent, recording.KindPathEvents:
		return nil
	case recording.KindPaths:
		p.snapshot(it.Line)
		p.paths(it)
		return p.wait()
	}
	switch {
	case it.Err == nil:
		p.snapshot(it.Line)
		p.g.add(it.Stack, it.Blob, p.g.inMemory(it), it.Text)
		if err := p.g.names.record(it); err != nil {
			return err
		}
	case p.r.Strict:
		return cli.Shortf("%v: %v", it.Place, it.Err)
	}
	return p.wait()
}

// snapshot sets the memory map of --maps that applies from a line on.
func (p *pass) snapshot(line int64) {
	for len(p.maps) > 0 && p.maps[0].From <= line {
		p.process.Map(p.maps[0].List)
		p.maps = p.maps[1:]
	}
}

// header takes a ~h# line.
func (p *pass) header(it *recording.Item) {
	if it.Header.Verb == codec.VerbBoot {
		p.log.SameELF = len(p.process.Files()) > 0 && (p.code == nil || p.code.FromELF())
	}
	p.log.Add(it)
	p.process.Marked()
	switch it.Header.Verb {
	case codec.VerbBoot:
		p.g.names.settle()
		if !p.mapped {
			p.process.Reset()
		}
		p.newCode()
		p.g.names.word.Boot(it)
	case codec.VerbMap: // the modules known so far end here (BT-REC-4)
		if !p.mapped {
			p.process.Remap()
		}
	}
}

// paths adds the call paths of a line. All blocks of an entry count with their mean size.
func (p *pass) paths(it *recording.Item) {
	boot := p.log.Boot()
	if p.code == nil {
		p.code = process.NewCode(p.process, boot.Header, p.mapped)
	}
	if p.code.Settle() && p.before == boot.Names { // offsets of another map
		p.log.SetNames(&callpath.Names{})
	}
	at := p.log.Add(it)
	p.used = at.Boot.Names
	for i := range at.Entries {
		e := &at.Entries[i]
		if e.Definition || e.Live == 0 {
			continue
		}
		s := codec.Stack{Size: e.Bytes / e.Live, PCs: p.pcs[:0]}
		id := at.Boot.Names.Resolve(e.ID)
		outer, f, depth := at.Boot.Names.Outer(id)
		for range min(depth, codec.MaxDepth+1) { // a stack has no more, and AddPath counts those that have
			s.PCs = append(s.PCs, p.address(f))
			outer, f, _ = at.Boot.Names.Outer(outer)
		}
		p.pcs = s.PCs
		p.g.dump.AddPath(&s, e.Live)
		if s.PCs = s.PCs[:min(len(s.PCs), codec.MaxDepth)]; len(s.PCs) > 0 {
			p.g.infer.Add(&s, nil)
		}
	}
}

// address returns the address of a frame, or the code offset if it has none.
func (p *pass) address(f callpath.Frame) uint64 {
	if a, ok := p.code.Locate(f); ok {
		return a.PC
	}
	return f.Value
}

// inMemory returns the blob of a record as in the device's memory, without the address of the
// block, which only dumps have. The result is valid until the next call.
func (g *gathered) inMemory(it *recording.Item) []byte {
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
