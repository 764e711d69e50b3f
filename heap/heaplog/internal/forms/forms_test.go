package forms

import (
	"bufio"
	"bytes"
	"io"
)

// result is what the lines of a log are.
type result struct {
	Series  []*Series
	Heaps   []Heap
	Refusal string
}

// Read reads a log.
func Read(in io.Reader) result {
	l := NewLevels(nil)
	s := bufio.NewScanner(in)
	s.Buffer(nil, 32<<20)
	for n := int64(1); s.Scan(); n++ {
		l.Line(Line{plain(bytes.TrimRight(s.Bytes(), "\r")), n})
	}
	list, _ := l.seriesOf()
	heaps, refused := l.Heaps()
	return result{list, heaps, l.Refusal(refused)}
}

// seconds returns the time of a sample.
func (p *Place) seconds() float64 {
	if p.wall.clock != noClock {
		return p.wall.at
	}
	return p.up.at
}
