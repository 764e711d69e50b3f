package server

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/lwsbt/lwsbt/fleet/ingest"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// Tokens holds the rights of clients, by the hashes of their tokens. The lines of a file of
// tokens have one of these forms; HASH is the SHA-256 of the token in hexadecimal:
//
//	device NAME HASH    the client may send dumps of this device
//	fleet HASH          the client may send dumps of all devices
//	read HASH           the client may see all answers
//	delete HASH         the client may delete devices
//
// Labels, NAME=VALUE, may follow the first three: the dumps that the client sends have them, and it sees only dumps that
// have them. Empty lines and lines that begin with # are skipped.
type Tokens struct {
	now atomic.Pointer[rights]
}

// rights are the lines of a file of tokens.
type rights map[[sha256.Size]byte][]right

type right struct {
	kind, device string
	labels       store.Labels
}

// ReadTokens reads a file of tokens.
func ReadTokens(r io.Reader, name string) (*Tokens, error) {
	t := rights{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(strings.TrimPrefix(lines.Text(), "\ufeff")) // some editors begin a file with it
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		next := right{kind: fields[0]}
		fields = fields[1:]
		known := next.kind == "fleet" || next.kind == "read" || next.kind == "delete"
		if next.kind == "device" && len(fields) > 0 {
			known, next.device, fields = ingest.CheckDevice(fields[0]) == nil, fields[0], fields[1:]
		}
		if !known || len(fields) == 0 || next.kind == "delete" && len(fields) > 1 {
			return nil, fmt.Errorf(`%s:%d: expected "device NAME HASH", "fleet HASH", "read HASH" or "delete HASH"`, name, n)
		}
		var hash [sha256.Size]byte
		sum, err := hex.DecodeString(fields[0])
		if err != nil || copy(hash[:], sum) != sha256.Size || len(sum) != sha256.Size {
			return nil, fmt.Errorf("%s:%d: expected a SHA-256 of 64 hexadecimal digits", name, n)
		}
		for _, text := range fields[1:] {
			if err := next.labels.Set(text); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, n, err)
			}
		}
		t[hash] = append(t[hash], next)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(t) == 0 { // as while it is written
		return nil, fmt.Errorf("%s: no token (btfleet token makes one)", name)
	}
	list := &Tokens{}
	list.now.Store(&t)
	return list, nil
}

// Replace replaces all rights by those of another list.
func (t *Tokens) Replace(by *Tokens) { t.now.Store(by.now.Load()) }

// NewToken returns a random token and its hash in hexadecimal.
func NewToken() (token, hash string) {
	var b [24]byte
	rand.Read(b[:])
	token = base64.RawURLEncoding.EncodeToString(b[:])
	sum := sha256.Sum256([]byte(token))
	return token, hex.EncodeToString(sum[:])
}

// may returns the right of a token to do something, for device with a device. All tokens have every right if t is nil.
func (t *Tokens) may(token, kind, device string) (r right, ok bool) {
	if t == nil {
		return r, true
	}
	for _, r := range (*t.now.Load())[sha256.Sum256([]byte(token))] {
		if r.kind == kind && r.device == device {
			return r, true
		}
	}
	return r, false
}

// sender returns the client that sends dumps of a device, if it may: by its certificate, whose common name is that of the device,
// or by its token.
func (s *Server) sender(r *http.Request, device string) (c *client, ok bool) {
	c = &client{device: device, address: addressOf(r)}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && r.TLS.VerifiedChains[0][0].Subject.CommonName == device {
		return c, true
	}
	token := tokenOf(r)
	of, ok := s.Tokens.may(token, "device", device)
	if !ok {
		of, ok = s.Tokens.may(token, "fleet", "")
	}
	c.token, c.labels = token, of.labels
	return c, ok
}

// tokenOf returns the token of a request: the bearer token, or the password of basic authentication.
func tokenOf(r *http.Request) string {
	if scheme, t, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return t
	}
	_, password, _ := r.BasicAuth()
	return password
}
