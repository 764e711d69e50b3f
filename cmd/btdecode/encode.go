package main

import (
	"bufio"
	"fmt"

	"github.com/lwsbt/lwsbt/codec"
	"github.com/lwsbt/lwsbt/heaplog"
)

// encodeSink writes ~b# records as ~m# lines. It copies ~m# records.
type encodeSink struct {
	w           *bufio.Writer
	passthrough bool
	machine     codec.Machine
	search      codec.Search
	blob, buf   []byte
}

func (e *encodeSink) record(it *heaplog.Item) error {
	e.buf = append(e.buf[:0], it.Text...)
	if it.Kind == heaplog.Decoded {
		var err error
		if e.blob, err = codec.AppendBlob(e.blob[:0], it.Stack, e.machine, e.search); err != nil {
			return fmt.Errorf("%v: %w", it.Place, err)
		}
		e.buf = codec.AppendLine(e.buf[:0], e.blob)
	}
	return e.end()
}

func (e *encodeSink) unreadable(it *heaplog.Item) error {
	e.buf = fmt.Appendf(append(e.buf[:0], it.Text...), " [unreadable: %v]", it.Err)
	return e.end()
}

func (e *encodeSink) end() error {
	if !e.passthrough {
		e.buf = append(e.buf, '\n')
	}
	_, err := e.w.Write(e.buf)
	return err
}

func (e *encodeSink) text(p []byte) error {
	if !e.passthrough {
		return nil
	}
	_, err := e.w.Write(p)
	return err
}

func (e *encodeSink) close() error { return nil }
