package server

import (
	"errors"
	"io"
	"net"
	"net/http"
)

// addressOf returns the address of a client.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// body is an upload that arrives. What it holds counts against Limits.Receiving.
type body struct {
	s     *Server
	of    []*quota
	taken int64
}

// read returns the bytes of a body.
func (b *body) read(r io.Reader) (data []byte, err error) {
	for {
		if free := cap(data) - len(data); free < 4096 {
			more := min(max(int64(len(data)), 16<<10), b.s.Limits.Body-int64(len(data))+1)
			if more <= int64(free) {
				more = int64(free) + 1
			}
			if err := b.take(more); err != nil {
				return nil, err
			}
			data = append(make([]byte, 0, int64(len(data))+more), data...)
		}
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// take reserves n bytes; a negative number gives them back.
func (b *body) take(n int64) error {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	for _, q := range b.of {
		if n > 0 && q.arriving+n > q.limit {
			return limited(10, "too many uploads of the %s arrive at the same time", q.name)
		}
	}
	for _, q := range b.of {
		q.arriving += n
	}
	b.taken += n
	return nil
}
