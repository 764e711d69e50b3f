package dump

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
)

// maxOnlyLine is how much of a line is matched, in bytes.
const maxOnlyLine = 256 << 10

// Only returns a reader of the lines of r that match, for logs of several devices.
// Of the others the line ends remain, so that lines keep their numbers; with drop,
// nothing remains. A line is matched by its first 256 KiB.
func Only(r io.Reader, match *regexp.Regexp, drop bool) io.Reader {
	return &only{r: bufio.NewReaderSize(r, maxOnlyLine), match: match, drop: drop}
}

type only struct {
	r     *bufio.Reader
	match *regexp.Regexp
	drop  bool
	rest  []byte // of a line that is to be returned
	keep  bool   // what follows is of a line that matches
	in    bool   // inside a line
}

func (o *only) Read(p []byte) (int, error) {
	for len(o.rest) == 0 {
		line, err := o.r.ReadSlice('\n')
		if len(line) == 0 && err != nil {
			return 0, err
		}
		if !o.in {
			o.keep = o.match.Match(bytes.TrimRight(line, "\r\n"))
		}
		ends := line[len(line)-1] == '\n'
		o.in = !ends
		switch {
		case o.keep:
			o.rest = line
		case ends && !o.drop:
			o.rest = line[len(line)-1:]
		}
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}
