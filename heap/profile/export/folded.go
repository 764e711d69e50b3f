package export

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lwsbt/lwsbt/heap/profile"
)

var foldedName = strings.NewReplacer(";", ":", "\n", " ", "\r", " ")

// writeFolded writes a line per call path, outermost function first, as flamegraph.pl and
// inferno read it.
func writeFolded(w io.Writer, p *profile.Profile, weight profile.Weight) error {
	if v := p.Current(); v.By == profile.ByLine { // the format has only functions
		v.By = profile.ByFunction
		p = p.View(v)
	}
	b := bufio.NewWriterSize(w, 64<<10)
	for row := range p.Rows() {
		v := row.Value()
		if v.IsZero() {
			continue
		}
		stack := row.Stack()
		for i, site := range slices.Backward(stack) {
			b.WriteString(foldedName.Replace(site.String()))
			if i > 0 {
				b.WriteByte(';')
			}
		}
		if len(stack) == 0 {
			b.WriteString("(no frames)")
		}
		if _, err := fmt.Fprintf(b, " %d\n", weight.Of(v)); err != nil {
			return err
		}
	}
	return b.Flush()
}
