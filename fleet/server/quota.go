package server

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"net/http"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/lwsbt/lwsbt/fleet/store"
)

// client is who sends an upload. What a device, an address, a token, and all together may have is limited, in this order.
type client struct {
	device  string
	address string
	token   string // "" without tokens
	labels  store.Labels
}

// shares are the parts of the server that one device, address or token may have at a time, and what it may send per day, as
// a multiple of the limits of a device.
var shares = [...]struct {
	name        string
	part, times int
}{{"device", 8, 1}, {"address", 4, 10}, {"token", 2, 25}, {"server", 1, 50}}

// quota is what a device, an address, a token or the server may still have.
type quota struct {
	name            string
	uploads         *rate.Limiter // of a device
	values, builds  *rate.Limiter // per day
	slots           chan struct{} // uploads that are being read
	arriving, limit int64         // bytes of uploads that arrive, or wait to be read
}

// maxQuotas is the number of quotas that are stored, in about 100 MB. A device that sent
// nothing for a long time has all of its quota anyway.
const maxQuotas = 1 << 17

var seed = maphash.MakeSeed()

// quotas returns the quotas of a client. The caller holds s.mu.
func (s *Server) quotas(c *client) (list []*quota) {
	if s.known == nil {
		s.known, _ = simplelru.NewLRU[string, *quota](maxQuotas, nil) // an error only for a size of 0
		s.builds, _ = simplelru.NewLRU[uint64, struct{}](maxQuotas, nil)
	}
	for i, key := range [...]string{c.device, c.address, c.token, "all"} {
		if key == "" {
			continue
		}
		share := &shares[i]
		key = share.name + " " + key
		q, ok := s.known.Get(key)
		if !ok {
			perDay := func(n int) *rate.Limiter { return rate.NewLimiter(rate.Limit(n)/(24*3600), n) }
			q = &quota{name: share.name, values: perDay(s.Limits.Values * share.times), builds: perDay(s.Limits.Builds * share.times),
				slots: make(chan struct{}, max(1, s.Limits.Uploads/share.part)), limit: s.Limits.Receiving / int64(share.part)}
			if i == 0 {
				q.uploads = rate.NewLimiter(s.Limits.Rate, s.Limits.Burst)
			} else if i == len(shares)-1 {
				q.values.SetLimit(rate.Inf) // no device is refused for what others have sent
			}
			s.known.Add(key, q)
		}
		list = append(list, q)
	}
	return list
}

// admit returns an error if a client has used its quota.
func (s *Server) admit(c *client) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.quotas(c) {
		if debt := 1 - q.values.Tokens(); debt > 0 {
			return limited(debt/float64(q.values.Limit()), "the %s has sent %d values today: dumps, their call paths and frames", q.name, q.values.Burst())
		}
		if q.uploads != nil && !q.uploads.Allow() {
			return limited(60, "too many uploads of this device")
		}
	}
	return nil
}

// charge takes what an upload has cost from the quotas of its client. The quota of values may become
// negative, so that no upload is refused for it after it was read.
func (s *Server) charge(c *client, values int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.quotas(c) {
		q.values.ReserveN(time.Now(), min(values+int(took.Seconds()*float64(s.Limits.Second)), q.values.Burst()))
	}
}

// admitBuilds returns an error if more of the builds are new to the server than a client may send.
func (s *Server) admitBuilds(c *client, builds []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.quotas(c)
	unknown := map[uint64]bool{}
	for _, b := range builds {
		if h := maphash.String(seed, b); !s.builds.Contains(h) {
			unknown[h] = true
		}
	}
	for _, q := range list {
		if q.builds.Tokens() < float64(len(unknown)) {
			return limited(24*3600/float64(q.builds.Burst()), "the %s has sent %d new builds today", q.name, q.builds.Burst())
		}
	}
	for _, q := range list {
		q.builds.AllowN(time.Now(), len(unknown))
	}
	for h := range unknown {
		s.builds.Add(h, struct{}{})
	}
	return nil
}

// slot waits until a client may have an upload read.
func (s *Server) slot(ctx context.Context, c *client) (release func(), err error) {
	s.mu.Lock()
	list := s.quotas(c)
	s.mu.Unlock()
	n := 0
	release = func() {
		for _, q := range list[:n] {
			<-q.slots
		}
	}
	wait := time.NewTimer(20 * time.Second)
	defer wait.Stop()
	for _, q := range list { // in this order: one that waits for a share holds none that is larger
		select {
		case q.slots <- struct{}{}:
			n++
			continue
		case <-ctx.Done():
		case <-wait.C:
		}
		release()
		return nil, limited(10, "%d uploads of the %s are being read", cap(q.slots), q.name)
	}
	return release, nil
}

// limited returns a refusal because of a quota, until some seconds have passed.
func limited(seconds float64, format string, args ...any) *refusal {
	return &refusal{http.StatusTooManyRequests, "limited", fmt.Errorf(format, args...), 1 + int(min(math.Ceil(seconds), 24*3600))}
}
