package server

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/lwsbt/lwsbt/fleet/ingest"
)

// Tokens holds the rights of clients, by the hashes of their tokens. The lines of a file of
// tokens have one of three forms; HASH is the SHA-256 of the token in hexadecimal:
//
//	device NAME HASH    the client may send dumps of this device
//	fleet HASH          the client may send dumps of all devices
//	read HASH           the client may see all answers
//
// Empty lines and lines that begin with # are skipped.
type Tokens struct {
	now atomic.Pointer[rights]
}

type rights struct {
	device map[string][][sha256.Size]byte
	fleet  [][sha256.Size]byte
	read   [][sha256.Size]byte
}

// ReadTokens reads a file of tokens.
func ReadTokens(r io.Reader, name string) (*Tokens, error) {
	t := &rights{device: map[string][][sha256.Size]byte{}}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(strings.TrimPrefix(lines.Text(), "\ufeff")) // some editors begin a file with it
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		var hash [sha256.Size]byte
		sum, err := hex.DecodeString(fields[len(fields)-1])
		if err != nil || copy(hash[:], sum) != sha256.Size || len(sum) != sha256.Size {
			return nil, fmt.Errorf("%s:%d: expected a SHA-256 of 64 hexadecimal digits at the end", name, n)
		}
		switch {
		case fields[0] == "device" && len(fields) == 3 && ingest.CheckDevice(fields[1]) == nil:
			t.device[fields[1]] = append(t.device[fields[1]], hash)
		case fields[0] == "fleet" && len(fields) == 2:
			t.fleet = append(t.fleet, hash)
		case fields[0] == "read" && len(fields) == 2:
			t.read = append(t.read, hash)
		default:
			return nil, fmt.Errorf(`%s:%d: expected "device NAME HASH", "fleet HASH" or "read HASH"`, name, n)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(t.device)+len(t.fleet)+len(t.read) == 0 { // as while it is written
		return nil, fmt.Errorf("%s: no token (btfleet token makes one)", name)
	}
	list := &Tokens{}
	list.now.Store(t)
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

// has reports whether a token is in a list. It compares all hashes, in constant time.
func has(list [][sha256.Size]byte, token string) bool {
	sum := sha256.Sum256([]byte(token))
	found := 0
	for i := range list {
		found |= subtle.ConstantTimeCompare(list[i][:], sum[:])
	}
	return found == 1
}

// Send reports whether a token may send dumps of a device.
func (t *Tokens) Send(token, device string) bool {
	now := t.now.Load()
	return has(now.fleet, token) || has(now.device[device], token)
}

// Read reports whether a token may see the answers.
func (t *Tokens) Read(token string) bool { return has(t.now.Load().read, token) }

// tokenOf returns the token of a request: the bearer token, or the password of basic authentication.
func tokenOf(r *http.Request) string {
	if scheme, t, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return t
	}
	_, password, _ := r.BasicAuth()
	return password
}
