package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// A device may send with a token that is signed for it, and with no other.
func TestJWT(t *testing.T) {
	secret := []byte(strings.Repeat("s3cret", 6))
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, d, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := func(keys ...crypto.Signer) (file []byte) {
		for _, k := range keys {
			der, err := x509.MarshalPKIXPublicKey(k.Public())
			if err != nil {
				t.Fatal(err)
			}
			file = append(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})...)
		}
		return file
	}
	sign := func(m jwt.SigningMethod, key any, change func(jwt.MapClaims)) string {
		c := jwt.MapClaims{"sub": "d1", "exp": time.Now().Add(time.Hour).Unix()}
		change(c)
		text, err := jwt.NewWithClaims(m, c).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	same := func(jwt.MapClaims) {}
	hs, rs, es, ed := jwt.SigningMethodHS256, jwt.SigningMethodRS256, jwt.SigningMethodES256, jwt.SigningMethodEdDSA
	parts := strings.Split(sign(hs, secret, same), ".")
	enlarged := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"d1","exp":99999999999}`))
	for _, c := range []struct {
		name, token string
		keys        []byte
		want        bool
	}{
		{"HMAC", sign(hs, secret, same), secret, true},
		{"RSA", sign(rs, r, same), public(r), true},
		{"ECDSA", sign(es, e, same), public(e), true},
		{"Ed25519, second key", sign(ed, d, same), public(e, d), true},
		{"alg none", sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, same), secret, false},
		{"alg none, public key", sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, same), public(r), false},
		{"HMAC with the public key", sign(hs, public(r), same), public(r), false},
		{"HMAC with the trimmed public key", sign(hs, []byte(strings.TrimSpace(string(public(r)))), same), public(r), false},
		{"another secret", sign(hs, append([]byte("x"), secret...), same), secret, false},
		{"another key", sign(es, e, same), public(d), false},
		{"expired", sign(hs, secret, func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Second).Unix() }), secret, false},
		{"without an end", sign(hs, secret, func(c jwt.MapClaims) { delete(c, "exp") }), secret, false},
		{"not yet", sign(hs, secret, func(c jwt.MapClaims) { c["nbf"] = time.Now().Add(time.Hour).Unix() }), secret, false},
		{"another device", sign(hs, secret, func(c jwt.MapClaims) { c["sub"] = "d2" }), secret, false},
		{"no device", sign(hs, secret, func(c jwt.MapClaims) { delete(c, "sub") }), secret, false},
		{"changed claims", parts[0] + "." + enlarged + "." + parts[2], secret, false},
		{"no signature", parts[0] + "." + parts[1] + ".", secret, false},
		{"no token", "", secret, false},
	} {
		v, err := ReadJWT(c.keys)
		if err != nil {
			t.Fatal(c.name, err)
		}
		f := serve(t, t.TempDir(), open(t, t.TempDir()), must(ReadTokens(strings.NewReader("read "+hash("reader")), "tokens")))
		f.JWT = v
		want := map[bool]int{true: 201, false: 401}[c.want]
		if status, body := f.send(t, "d1", fleettest.Log("d1", "b", 1, 2), "Authorization", "Bearer "+c.token); status != want {
			t.Errorf("%s: %d %s, want %d", c.name, status, body, want)
		}
	}
	private, err := x509.MarshalPKCS8PrivateKey(e)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{"a short secret": []byte("secret"), "nothing": nil, "a private key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		"no key": []byte("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"), "cut PEM": public(r)[:100]} {
		if _, err := ReadJWT(file); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// A proxy's header limits what its user sees; without it, or with more than one, nobody sees anything, and the labels of a token
// have precedence.
func TestProjects(t *testing.T) {
	tokens := must(ReadTokens(strings.NewReader("read "+hash("proxy")+"\nread "+hash("own")+" project=b\n"), "tokens"))
	f := serve(t, t.TempDir(), open(t, t.TempDir()), tokens)
	f.Project = "X-Project"
	h := f.read(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := store.WithLabels(r.Context(), store.Labels{"project": "other"}) // as ?label=project=other
		fmt.Fprint(w, store.LabelsOf(inner)["project"])
	}))
	for _, c := range []struct {
		token    string
		projects []string
		status   int
		sees     string
	}{
		{"proxy", []string{"a"}, 200, "a"},
		{"proxy", []string{"*"}, 200, "other"},
		{"proxy", nil, 403, ""},
		{"proxy", []string{""}, 403, ""},
		{"proxy", []string{"a", "b"}, 403, ""},
		{"proxy", []string{"a' or 'x'='x"}, 403, ""},
		{"proxy", []string{"a,b"}, 403, ""},
		{"own", []string{"a"}, 200, "b"},
		{"own", []string{"*"}, 200, "b"},
		{"none", []string{"a"}, 401, ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth("", c.token)
		r.Header["X-Project"] = c.projects
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || c.status == 200 && w.Body.String() != c.sees {
			t.Errorf("%s, %q: %d %s, want %d %s", c.token, c.projects, w.Code, w.Body, c.status, c.sees)
		}
	}
}
