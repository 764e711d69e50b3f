package server

import (
	"errors"
	"io"
	"net"
	"net/http"
)

// addressOf returns the address of a client, as a key of quotas. No device has such a name.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "\x00" + host
}

// body is an upload that arrives. What it holds counts against Limits.Receiving.
type body struct {
	s     *Server
	from  string
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

// take reserves n bytes.
func (b *body) take(n int64) error {
	s := b.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bodies == nil {
		s.bodies = map[string]int64{}
	}
	if s.bodies[""]+n > s.Limits.Receiving || s.bodies[b.from]+n > s.Limits.Receiving/4 {
		return limited(10, "too many uploads arrive at the same time")
	}
	b.taken += n
	s.bodies[""] += n
	s.bodies[b.from] += n
	return nil
}

// release gives back what the body holds.
func (b *body) release() {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.taken == 0 {
		return
	}
	b.s.bodies[""] -= b.taken
	if b.s.bodies[b.from] -= b.taken; b.s.bodies[b.from] == 0 {
		delete(b.s.bodies, b.from)
	}
}
