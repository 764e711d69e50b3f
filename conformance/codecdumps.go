package conformance

import (
	"slices"
	"strconv"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/codec/callpath"
	heaplog "github.com/lwsbt/lwsbt/heap/log"
)

// dumpLog reads the dumps of call paths in a log: package heaplog finds headers and lines,
// package callpath adds up the entries.
type dumpLog struct {
	boots  int
	header *codec.Header // of the boot
	names  *callpath.Names
	lines  callpath.Sequence
	open   *codecDump // nil outside of dumps
	dumps  []*codecDump
}

// codecDump is a dump between its begin and its end.
type codecDump struct {
	callpath.Dump
	boot       int
	begin, end *codec.Header
	count      uint64 // of records
	bytes      uint64
	paths      []callpath.PathSum // if the dump is a difference, with the paths of its base
	whole      bool               // the dump has ended, and nothing is known to be missing
}

// codecDumps returns the words of the dumps of a log.
func codecDumps(text []byte) (string, error) {
	log, err := openText(text)
	if err != nil {
		return "", err
	}
	defer log.Close()
	l := dumpLog{names: &callpath.Names{}}
	for it, err := range log.Items() {
		switch {
		case err != nil || it.Kind == heaplog.KindText || it.Kind == heaplog.KindIdle || !isRecord(it): // a log without dumps is an answer, too
		case it.Kind == heaplog.KindMark:
			l.mark(it.Header)
		case it.Kind == heaplog.KindPaths:
			l.line(it.Paths)
		case l.open != nil && (it.Text[1] == 'm' || it.Text[1] == 'b'):
			l.open.count++
			if it.Err == nil {
				l.open.bytes += it.Stack.Size
			}
		}
	}
	out := make([]pathDump, len(l.dumps))
	for i := range l.dumps {
		out[i] = l.dumps[i].words(l.dumps[:i])
	}
	return dumpsWords(out), nil
}

// mark processes a header. (BT-HEAD-4, BT-NAME-3, BT-DUMP-1)
func (l *dumpLog) mark(header *codec.Header) {
	h := *header
	h.Keys = slices.Clone(h.Keys)
	switch h.Verb {
	case codec.VerbBoot:
		_, coded := h.Get("code")
		if l.header == nil || !coded || !callpath.KeepsNames(l.header, &h) {
			l.names = &callpath.Names{}
		}
		l.boots++
		l.header, l.open, l.lines = &h, nil, callpath.Sequence{Known: true}
	case codec.VerbBegin:
		sample, _ := h.Uint("sample")
		l.open = &codecDump{Dump: callpath.Dump{Names: l.names, Sample: sample}, boot: l.boots, begin: &h}
		l.dumps = append(l.dumps, l.open)
	case codec.VerbEnd:
		if l.open != nil && h.Number == l.open.begin.Number {
			l.open.end = &h
		}
		l.open = nil
	}
}

// line processes a line of call paths. (BT-DUMP-2)
func (l *dumpLog) line(line *callpath.Line) {
	lost := l.lines.Line(uint64(line.Seq), 1<<12)
	ours := l.open != nil && uint32(line.Dump) == l.open.begin.Number%64
	if ours {
		l.open.Lines++
		l.open.Gaps += lost
	}
	for e := (callpath.Entry{}); line.Next(&e); {
		if id := l.names.Add(&e.Path); ours && !e.Definition {
			l.open.Add(id, &e)
		}
	}
}

// words returns the dump as a vector has it. earlier are the dumps above it. (BT-DUMP-3)
func (d *codecDump) words(earlier []*codecDump) pathDump {
	out := pathDump{Number: uint64(d.begin.Number), Boot: d.boot, Open: d.end == nil}
	first, from := d.begin.Uint("l")
	last, to := uint64(0), false
	if d.end != nil {
		last, to = d.end.Uint("l")
	}
	lines := d.Lost(last-first, from && to)
	blocks, complete := d.missing("n", d.Live+d.count)
	bytes, whole := d.missing("b", d.Bytes+d.bytes)
	out.Lost = [3]string{strconv.FormatInt(lines, 10), blocks, bytes}
	d.paths = d.Paths()
	if kind, _ := d.begin.Get("k"); kind == "diff" {
		out.NoBase = true
		number, _ := d.begin.Uint("base")
		for _, base := range slices.Backward(earlier) {
			if base.boot == d.boot && uint64(base.begin.Number) == number {
				out.NoBase = !base.whole
				d.paths = d.Names.Apply(d.paths, base.paths)
				break
			}
		}
	}
	d.whole = !out.Open && !out.NoBase && lines == 0 && complete && whole
	for _, s := range d.paths {
		if s.Live == 0 && s.Bytes == 0 {
			continue
		}
		out.Paths = append(out.Paths, pathTotal{d.Names.Path(s.ID, nil), s, s.LiveEst > 0 || s.BytesEst > 0})
	}
	return out
}

// missing returns the value of a key of ~h#end, or else of ~h#begin, minus read; "-" if
// neither header has the key. none reports whether nothing is known to be missing. (BT-HEAD-4)
func (d *codecDump) missing(key string, read uint64) (text string, none bool) {
	for _, h := range []*codec.Header{d.end, d.begin} {
		if h == nil {
			continue
		}
		if n, ok := h.Uint(key); ok {
			return strconv.FormatInt(int64(n-read), 10), n == read
		}
	}
	return "-", true
}
