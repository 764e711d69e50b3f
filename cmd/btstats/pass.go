package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/recording"
	"github.com/lwsbt/lwsbt/internal/cli"
	"github.com/lwsbt/lwsbt/internal/cli/logflags"
	"github.com/lwsbt/lwsbt/internal/input"
)

// pass reads all logs once: input → recording.Reader → gathered.
type pass struct {
	r      *reporter
	g      *gathered
	ctx    context.Context // ends what reads ahead
	cancel func()
	inputs []*input.Input

	reader recording.Reader
	dumps  dumps
}

// open opens the logs. It opens ELF files only if the report needs the names of functions.
func (r *reporter) open(g *gathered) (*pass, error) {
	logs, err := logflags.Logs(r.args, r.stdin)
	if err != nil {
		return nil, err
	}
	p := &pass{r: r, g: g, dumps: dumps{g: g}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.reader.Always32 = r.given != nil && r.given.Word() == 32
	for _, l := range logs {
		g.files = append(g.files, l.Name)
		var in *input.Input
		switch {
		case l.Stream != nil:
			in = input.FromReader(l.Stream, l.Name)
		default:
			in, err = input.File(l.Name)
		}
		if err != nil {
			p.close()
			return nil, err
		}
		p.inputs = append(p.inputs, in)
	}
	return p, nil
}

// close closes all files.
func (p *pass) close() {
	p.cancel()
	for _, in := range p.inputs {
		if in.Stream != nil {
			in.Stream.Close()
		}
	}
}

// run reads all logs. Records before a read error count; the error is kept for the end of the
// report.
func (p *pass) run() error {
	for _, in := range p.inputs {
		before := p.g.dump.Records()
		err := p.read(in)
		var damage *readError
		switch n := p.g.dump.Records() - before; {
		case errors.As(err, &damage) && n > 0:
			p.g.broken = append(p.g.broken, fmt.Sprintf("%v (%d records before it are in the report)", err, n))
		case err != nil:
			return err
		}
	}
	return nil
}

// readError is an error in reading a log.
type readError struct{ text string }

func (e *readError) Error() string { return e.text }

// read reads a log.
func (p *pass) read(in *input.Input) error {
	hooks := input.Hooks{Ctx: p.ctx, Note: func(text string) { fmt.Fprintf(p.r.stderr, "btstats: %s\n", cli.Printable(text)) }}
	src, err := in.Open(&hooks)
	if err != nil {
		return err
	}
	defer src.Close()
	data := &counted{src: src, n: &p.g.tally.bytes, last: '\n'}
	p.reader.Reset(data, in.Name)
	p.dumps = dumps{g: p.g, stacks: p.dumps.stacks}
	defer func() {
		p.dumps.finish()
		p.g.tally.lines += p.reader.Place().Line - 1
		if data.last != '\n' {
			p.g.tally.lines++
		}
	}()
	for {
		it, err := p.reader.Next()
		switch {
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
		if p.dumps.open() {
			p.dumps.records.Text(it.Text)
		}
		return nil
	}
	p.g.tally.add(it)
	switch it.Kind {
	case recording.KindHeader:
		p.g.headers = true
		p.dumps.header(it)
		return nil
	case recording.KindEvent, recording.KindPathEvents, recording.KindPaths:
		return nil
	}
	switch {
	case it.Err != nil && p.r.Strict:
		return cli.Shortf("%v: %v", it.Place, it.Err)
	case p.dumps.open() && it.Counts():
		p.dumps.add(it)
	case it.Err != nil:
	case !p.dumps.records.Believes(it, p.dumps.record(it)): // a damaged line (BT-UF-4)
		p.g.damaged++
	default:
		p.g.add(it.Stack, it.Blob, p.g.inMemory(it))
	}
	return nil
}

// inMemory returns the blob of a record as in the device's memory, without the address of the
// block and the check, which only dumps have. The result is valid until the next call.
func (g *gathered) inMemory(it *recording.Item) []byte {
	if it.User == nil || it.Blob == nil {
		return it.Blob
	}
	if _, ok := it.User.Get(codec.TagAddress); !ok && it.User.Check() == codec.CheckNone {
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
