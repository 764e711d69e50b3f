package conformance

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// maxLine limits the length of a BTP/1 line, in bytes. The text of a blob of 65,535 bytes fits
// in hexadecimal, with space to spare.
const maxLine = 1 << 20

// Serve reads BTP/1 requests from in, and writes the answers of t to out. It returns a
// [*ParseError] at a line that is not BTP/1.
func Serve(t Testee, in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, maxLine)
	w := bufio.NewWriter(out)
	for row := 1; ; row++ {
		raw, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(raw) == 0 {
			return w.Flush()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			if errors.Is(err, bufio.ErrBufferFull) {
				err = faultAt("stdin", row, "a line of more than 1 MiB, expected less")
			}
			return errors.Join(w.Flush(), err)
		}
		line := strings.TrimSuffix(string(raw), "\n")
		if line == "quit" {
			return w.Flush()
		}
		answer, err := serveLine(t, line)
		if err != nil {
			return errors.Join(w.Flush(), faultAt("stdin", row, "%v", err))
		}
		w.WriteString(answer)
		w.WriteByte('\n')
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
}

func serveLine(t Testee, line string) (string, error) {
	if line == helloRequest {
		return t.Hello().Line(), nil
	}
	if strings.HasPrefix(line, "hello") {
		return "", errors.New(clip(line) + ", expected " + helloRequest)
	}
	id, r, known, err := ParseRequest(line)
	if err != nil {
		return "", err
	}
	if !known || !t.Hello().Offers(r) {
		return "skip " + id + " unsupported", nil
	}
	answers, err := t.Ask([]Request{r})
	if err != nil {
		return "", err
	}
	return answers[0].Line(r.Op, id), nil
}
