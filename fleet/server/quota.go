package server

import (
	"fmt"
	"hash/maphash"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
)

// quota limits what a device may send. Limits has the rates.
type quota struct {
	uploads, values, builds *rate.Limiter
	known                   []uint64 // hashes of the builds that it sent last
	busy                    int      // uploads that are being read
	ofAddress               *rate.Limiter
}

// maxQuotas is the number of devices whose quotas are stored, in about 60 MB. A device that sent
// nothing for a long time has all of its quota anyway.
const maxQuotas = 1 << 17

var seed = maphash.MakeSeed()

// quota returns the quota of a device. The caller holds s.mu.
func (s *Server) quota(device string) *quota {
	if s.quotas == nil {
		s.quotas, _ = simplelru.NewLRU[string, *quota](maxQuotas, nil) // an error only for a size of 0
	}
	q, ok := s.quotas.Get(device)
	if !ok {
		perDay := func(n int) *rate.Limiter { return rate.NewLimiter(rate.Limit(n)/(24*3600), n) }
		q = &quota{uploads: rate.NewLimiter(s.Limits.Rate, s.Limits.Burst), values: perDay(s.Limits.Values), builds: perDay(s.Limits.Builds)}
		s.quotas.Add(device, q)
	}
	return q
}

// Quotas of an address, and of the server, as multiples of those of a device.
const (
	addressTimes = 10
	serverTimes  = 50
)

// admit returns an error if a device has used its quota.
func (s *Server) admit(device string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.quota(device)
	if debt := 1 - q.values.Tokens(); debt > 0 {
		return limited(debt/float64(q.values.Limit()), "the device has sent %d values today: dumps, their call paths and frames", s.Limits.Values)
	}
	if !q.uploads.Allow() {
		return limited(60, "too many uploads of this device")
	}
	return nil
}

// charge takes what an upload has cost from the quota of its device. The quota of values may become
// negative, so that no upload is refused for it after it was read.
func (s *Server) charge(device string, values int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.quota(device)
	q.values.ReserveN(time.Now(), min(values+int(took.Seconds()*float64(s.Limits.Second)), q.values.Burst()))
}

// admitBuilds returns an error if the builds are more new ones than a device, its address, or all devices may send. A build is
// new to a device if it is none of its last ones, and to the server if no device sent it.
func (s *Server) admitBuilds(device, from string, builds []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.builds == nil {
		s.builds, _ = simplelru.NewLRU[uint64, struct{}](maxQuotas, nil)
		s.newBuilds = rate.NewLimiter(rate.Limit(serverTimes*s.Limits.Builds)/(24*3600), serverTimes*s.Limits.Builds)
	}
	q := s.quota(device)
	known := q.known
	var unknown []uint64
	for _, b := range builds {
		h := maphash.String(seed, b)
		if !slices.Contains(known, h) {
			known = append(known, h)
		}
		if !s.builds.Contains(h) && !slices.Contains(unknown, h) {
			unknown = append(unknown, h)
		}
	}
	if n := len(known) - len(q.known); n > 0 && !q.builds.AllowN(time.Now(), n) {
		return limited(24*3600/float64(s.Limits.Builds), "the device has sent %d builds today", s.Limits.Builds)
	}
	if n := len(unknown); n > 0 {
		if of := s.quota(from); from != "" && !of.address(s.Limits.Builds*addressTimes).AllowN(time.Now(), n) {
			return limited(24*3600/float64(addressTimes*s.Limits.Builds), "the address has sent %d new builds today", addressTimes*s.Limits.Builds)
		}
		if !s.newBuilds.AllowN(time.Now(), n) {
			return limited(24*3600/float64(serverTimes*s.Limits.Builds), "the devices have sent %d new builds today", serverTimes*s.Limits.Builds)
		}
	}
	for _, h := range unknown {
		s.builds.Add(h, struct{}{})
	}
	q.known = slices.Clone(known[max(0, len(known)-max(s.Limits.Builds, len(builds))):])
	return nil
}

// address returns the limiter of the new builds of an address.
func (q *quota) address(n int) *rate.Limiter {
	if q.ofAddress == nil {
		q.ofAddress = rate.NewLimiter(rate.Limit(n)/(24*3600), n)
	}
	return q.ofAddress
}

// limited returns a refusal because of a quota, until some seconds have passed.
func limited(seconds float64, format string, args ...any) *refusal {
	return &refusal{http.StatusTooManyRequests, "limited", fmt.Errorf(format, args...), 1 + int(min(math.Ceil(seconds), 24*3600))}
}
