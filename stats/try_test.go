package stats

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"fmt"
	"github.com/lwsbt/lwsbt/codec"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestTry(t *testing.T) {
	for _, name := range []string{"perl", "cc1", "git00", "i386sql"} {
		f, _ := os.Open("/work/shared/captures/" + name + ".log.gz")
		z, _ := gzip.NewReader(f)
		sc := bufio.NewScanner(z)
		c := NewCollector()
		var s codec.Stack
		for sc.Scan() {
			b, _ := codec.ParseLine(nil, sc.Bytes())
			codec.Decode(&s, b)
			c.Add(&s, b, sc.Bytes())
		}
		m := codec.Wrap64
		if name == "i386sql" {
			m = codec.Wrap32
		}
		r := c.resolve(m)
		fmt.Println(name, c.records, len(c.order), "odd", c.oddBlobs, "hurt", r.hurt, "gap", r.gap, "differ", r.differ, r.of)
		for _, g := range gaps {
			if m == codec.Wrap64 {
				pc := c.place(sorted(c), g)
				d, _ := c.compare(pc, m)
				fmt.Println("  gap", g, d)
			}
		}
		a, _ := c.lwsLens(r, m).total()
		b, _ := c.newLens(r, m, codec.Lws).total()
		e, _ := c.newLens(r, m, codec.Best).total()
		fmt.Println("  lws", a, b, "best", e)
		// truth
		f, _ = os.Open("/work/shared/captures/" + name + ".truth.gz")
		z, _ = gzip.NewReader(f)
		sc = bufio.NewScanner(z)
		var tl, tb int
		for sc.Scan() {
			w := strings.Fields(sc.Text())
			s := codec.Stack{}
			for i, x := range w {
				v, _ := strconv.ParseUint(x, 0, 64)
				if i == 0 {
					s.Size = v
				} else {
					s.PCs = append(s.PCs, v)
				}
			}
			n, _ := codec.BlobBits(&s, m, codec.Lws)
			tl += codec.BlobLen(n)
			n, _ = codec.BlobBits(&s, m, codec.Best)
			tb += codec.BlobLen(n)
		}
		fmt.Println("  truth lws", tl, "best", tb)
	}
}
func sorted(c *Collector) []spot {
	m := map[spot]bool{}
	for _, p := range c.order {
		for n := range p.pcs {
			if s, ok := p.spot(n); ok {
				m[s] = true
			}
		}
	}
	var l []spot
	for s := range m {
		l = append(l, s)
	}
	slices.SortFunc(l, func(a, b spot) int { return cmp.Or(cmp.Compare(a.width, b.width), cmp.Compare(a.low, b.low)) })
	return l
}
