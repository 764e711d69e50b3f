package heaplog

import (
	"github.com/lwsbt/lwsbt/heap/heaplog/internal/forms"
	"github.com/lwsbt/lwsbt/internal/printable"
	"github.com/lwsbt/lwsbt/symbol"
)

// logNames names addresses by what the log says of them, such as the lines that idf_monitor adds
// below a trace.
type logNames struct {
	log   *forms.Reader // of the current log, nil before the first
	known map[uint64]*symbol.Location
}

// reset begins a log.
func (n *logNames) reset(log *forms.Reader) { *n = logNames{log: log} }

// any reports whether the log names functions.
func (n *logNames) any() bool { return n.log != nil && n.log.Named() }

// name returns the address with the functions that the log names, if a names none.
func (n *logNames) name(a symbol.Addr) symbol.Addr {
	if !n.any() {
		return a
	}
	frames := n.log.Frames(a.PC)
	if len(frames) == 0 || a.State == symbol.Lost || len(a.Frames()) > 0 {
		return a
	}
	l := n.known[a.PC]
	if l == nil {
		l = &symbol.Location{Own: a.PC}
		for i, f := range frames {
			name := printable.Text(f.Func)
			l.Frames = append(l.Frames, symbol.Frame{Func: name, Name: name, File: printable.Text(f.File), Line: f.Line, Inlined: i < len(frames)-1})
		}
		if n.known == nil {
			n.known = map[uint64]*symbol.Location{}
		}
		n.known[a.PC] = l
	}
	a.Location = l
	return a
}
