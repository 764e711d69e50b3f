package device

import (
	"fmt"
	"testing"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/gen"
	"github.com/lwsbt/lwsbt/internal/figures"
)

// Memory that metadata takes per allocation, on average over the synthetic stacks of a
// Cortex-M program:
//
//	go test ./device -run Overhead [-update]
func TestOverhead(t *testing.T) {
	model, ok := gen.ModelByName("cortex-m")
	if !ok {
		t.Fatal("no model cortex-m")
	}
	const n, node = 2000, 12
	before, table := 0.0, "| frames | ours, aligned to 8 | lws, aligned to 4 | list node, size and raw addresses | ESP-IDF heap trace, 24 + 8·depth |\n"+
		"| --- | --- | --- | --- | --- |\n"
	for _, depth := range []int{4, 8, 12} {
		program := model.Program(3)
		var s codec.Stack
		ours, lws := 0, 0
		for got := 0; got < n; {
			if program.Next(&s); len(s.PCs) < depth {
				continue
			}
			s.PCs = s.PCs[:depth]
			for _, search := range []codec.Search{codec.SearchBest, codec.SearchLws} {
				blob, err := codec.Encoder{Machine: codec.MachineExact32, Search: search}.AppendBlob(nil, &s, nil)
				if err != nil {
					t.Fatal(err)
				}
				if search == codec.SearchBest {
					ours += (node + len(blob) + 7) / 8 * 8
				} else {
					lws += node + (len(blob)+3)/4*4
				}
			}
			got++
		}
		mean := float64(ours) / n
		table += fmt.Sprintf("| %d | %.1f | %.1f | %d | %d |\n", depth, mean, float64(lws)/n, node+4+4*depth, 24+8*depth)
		if mean <= before || mean > float64(node+8+4*depth+8) {
			t.Errorf("%d frames take %.1f bytes", depth, mean)
		}
		before = mean
	}
	figures.Check(t, figuresFile, "overhead", table)
}
