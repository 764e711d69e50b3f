package server

import (
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

// body is an upload that arrives. What has arrived counts against Limits.Receiving.
type body struct {
	io.Reader
	s     *Server
	of    []*quota
	taken int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if e := b.take(int64(n)); e != nil {
		return n, e
	}
	return n, err
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
