package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lwsbt/lwsbt/fleet/clickhouse"
	"github.com/lwsbt/lwsbt/fleet/internal/fleettest"
	"github.com/lwsbt/lwsbt/fleet/page"
	"github.com/lwsbt/lwsbt/fleet/query"
	"github.com/lwsbt/lwsbt/fleet/server"
	"github.com/lwsbt/lwsbt/fleet/store"
)

// fleetServer starts a server with tokens: each is its own kind, as in "read model=x".
func fleetServer(t *testing.T, dir string, lines ...string) (url string, s *store.Store, w *server.Writer) {
	t.Helper()
	s, err := store.Open(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	spool, err := server.OpenSpool(filepath.Join(dir, "spool"), 1<<30, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { spool.Close() })
	db, err := openDB(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	var tokens strings.Builder
	for _, l := range lines {
		kind, labels, _ := strings.Cut(l, " ")
		fmt.Fprintf(&tokens, "%s %x %s\n", kind, sha256.Sum256([]byte(l)), labels)
	}
	list, err := server.ReadTokens(strings.NewReader(tokens.String()), "tokens")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	metrics := server.NewMetrics(registry, spool)
	w = &server.Writer{Spool: spool, Store: s, DeleteDevice: s.DeleteDevice, Log: log, Metrics: metrics, MaxUploads: 2000, MaxFacts: 1 << 20}
	h := httptest.NewServer((&server.Server{Spool: spool, Tokens: list, Limits: server.DefaultLimits, Log: log, Metrics: metrics, Pages: page.New(db, log), Writer: w}).Handler(registry))
	t.Cleanup(h.Close)
	return h.URL, s, w
}

// answered sends a request, and returns the body of the answer.
func answered(t *testing.T, method, url, token string, body []byte, status int) string {
	t.Helper()
	resp := request(t, method, url, token, "", bytes.NewReader(body))
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("%s %s with %q: %s, %v, want %d: %s", method, url, token, resp.Status, err, status, text)
	}
	return string(text)
}

// holders returns the files below a directory with a name, in their own bytes or in a row.
func holders(t *testing.T, s *store.Store, dir, name string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if rel, err := filepath.Rel(s.Dir(), path); err == nil && strings.HasSuffix(path, ".parquet") {
			var rows any
			switch table, _, _ := strings.Cut(filepath.ToSlash(rel), "/"); table {
			case store.Dumps:
				rows, err = store.Read[store.Dump](s, rel)
			case store.Facts:
				rows, err = store.Read[store.Fact](s, rel)
			case store.JudgedPaths:
				rows, err = store.Read[store.Judged](s, rel)
			case store.JudgedDevices:
				rows, err = store.Read[store.JudgedDevice](s, rel)
			}
			if err != nil {
				return err
			}
			data = fmt.Append(data, rows)
		}
		if bytes.Contains(data, []byte(name)) || strings.Contains(path, name) {
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// DELETE of a device leaves no file with its name: not in the store, of which some files were replaced, judged or damaged, nor in
// the spool. Other devices stay.
func TestDeleteDevice(t *testing.T) {
	dir := t.TempDir()
	url, s, w := fleetServer(t, dir, "fleet", "delete", "read")
	send := func(device string, dumps int) {
		t.Helper()
		answered(t, "PUT", url+"/v1/dumps/"+device, "fleet", fleettest.Log(device, fmt.Sprint("b", dumps%2), dumps, 10), 201)
	}
	for i := range 6 {
		send("victim-17", i+3)
		send(fmt.Sprint("other-", i), i+3)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	answered(t, "GET", url+"/v1/builds/b0", "read", nil, 200) // which judges
	if err := s.Compact(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	send("victim-17", 20)
	send("other-0", 20) // both wait
	if n := len(holders(t, s, dir, "victim-17")); n < 10 {
		t.Fatalf("%d files have the device", n)
	}
	answered(t, "DELETE", url+"/v1/devices/victim-17", "read", nil, 401)
	answered(t, "DELETE", url+"/v1/devices/victim-17", "delete", nil, 204)
	if list := holders(t, s, dir, "victim-17"); len(list) > 0 {
		t.Errorf("the device is in %q", list)
	}
	if text := answered(t, "GET", url+"/v1/devices", "read", nil, 200); strings.Contains(text, "victim-17") || strings.Count(text, `"device":"other-`) != 6 {
		t.Errorf("%s", text)
	}
	kept, facts := stored(t, s.Dir())
	if dumps := 3 + 4 + 5 + 6 + 7 + 8 + 20; len(kept) != dumps || len(facts) != 10*dumps {
		t.Errorf("%d dumps, %d facts: want %d dumps of ten facts", len(kept), len(facts), dumps)
	}
	send("victim-17", 21) // it may come back
	answered(t, "DELETE", url+"/v1/devices/victim-17", "delete", nil, 204)
	answered(t, "DELETE", url+"/v1/devices/victim-17", "delete", nil, 204)
}

// A device is deleted from the tables of ClickHouse, too.
func TestDeleteInClickHouse(t *testing.T) {
	where := fleettest.ClickHouse(t)
	tables, err := clickhouse.Open(where)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range clickhouse.Schema(0) {
		r, err := tables.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	for _, d := range []string{"victim", "other"} {
		b := &store.Batch{Name: d, Day: time.Now(), Dumps: []store.Dump{{Build: "b", Device: d, Labels: store.Labels{"model": d}}}, Facts: []store.Fact{{Build: "b", Device: d, Bytes: 7}}}
		j := &store.Judgements{Devices: []store.JudgedDevice{{Build: "b", Device: d}}, Paths: []store.Judged{{Build: "b", Device: d}}}
		if err := tables.Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := tables.PutJudged(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	db := query.OpenClickHouse(tables)
	if list, err := db.Devices(store.WithLabels(t.Context(), store.Labels{"model": "victim"}), query.Scope{}, 0); err != nil || len(list) != 1 || list[0].Device != "victim" {
		t.Errorf("%+v %v", list, err)
	}
	if err := tables.DeleteDevice(t.Context(), "victim"); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{store.Dumps, store.Facts, store.JudgedPaths, store.JudgedDevices} {
		r, err := tables.Query(t.Context(), "select device from "+table)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for r.Next() {
			var d string
			if err := r.Scan(&d); err != nil {
				t.Fatal(err)
			}
			list = append(list, d)
		}
		if r.Close(); len(list) != 1 || list[0] != "other" {
			t.Errorf("%s: %q", table, list)
		}
	}
}

// Each question is answered for the devices with a label, of the upload or of the token, and a client with a label in its token sees
// no others.
func TestLabels(t *testing.T) {
	dir := t.TempDir()
	url, s, w := fleetServer(t, dir, "fleet", "fleet project=a", "read", "read project=a")
	for i, c := range []struct{ token, labels string }{{"fleet", ""}, {"fleet", "?label=model=x2&label=region=eu"}, {"fleet project=a", "?label=model=x2&label=project=b"}, {"fleet project=a", ""}} {
		d := fmt.Sprint("dev-", i)
		answered(t, "PUT", url+"/v1/dumps/"+d+c.labels, c.token, fleettest.Log(d, "b", 9, 10), 201)
	}
	answered(t, "PUT", url+"/v1/dumps/dev-9?label=Model", "fleet", fleettest.Log("dev-9", "b", 9, 10), 400)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		token, query string
		want         []int
	}{{"read", "", []int{0, 1, 2, 3}}, {"read", "?label=model=x2", []int{1, 2}}, {"read", "?label=project=b", nil}, {"read project=a", "", []int{2, 3}},
		{"read project=a", "?label=model=x2", []int{2}}, {"read project=a", "?label=project=b", []int{2, 3}}, {"read", "?label=region=eu", []int{1}}, {"read", "", []int{0, 1, 2, 3}}} {
		text := answered(t, "GET", url+"/v1/devices"+c.query, c.token, nil, 200)
		for i := range 4 {
			if has, want := strings.Contains(text, fmt.Sprintf(`"dev-%d"`, i)), strings.Contains(fmt.Sprint(c.want), fmt.Sprint(i)); has != want {
				t.Errorf("%s %s: dev-%d is there: %t, want %t", c.token, c.query, i, has, want)
			}
		}
	}
	answered(t, "GET", url+"/device/dev-0", "read project=a", nil, 404)
	answered(t, "GET", url+"/metrics", "read project=a", nil, 403)
	if text := answered(t, "GET", url+"/v1/builds/b", "read project=a", nil, 200); !strings.Contains(text, `"devices":2`) || strings.Contains(text, `"devices":4`) {
		t.Errorf("%.500s", text)
	}
	for _, args := range []string{"builds", "leaks --build b", "top --build b"} {
		want := map[string]string{"": "4", "model=x2": "2", "region=eu": "1"}
		for label, n := range want {
			code, out, errs := ask(append(strings.Fields(args), "--store", s.Dir(), "--label", label)[:len(strings.Fields(args))+2+2*min(1, len(label))]...)
			if code != 0 || !strings.Contains(out, n) {
				t.Errorf("%s --label %q: exit code %d, want %s devices\n%s%s", args, label, code, n, out, errs)
			}
		}
	}
	// Retention by label.
	if _, err := s.Retain(t.Context(), store.Retention{Labels: map[string]time.Duration{"model=x2": 24 * time.Hour}}, time.Now().AddDate(0, 0, 3)); err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	dumps, _ := stored(t, s.Dir())
	for _, d := range dumps {
		kept[d.Device] = true
	}
	if len(kept) != 2 || !kept["dev-0"] || !kept["dev-3"] {
		t.Errorf("kept: %v", kept)
	}
	if list := holders(t, s, s.Dir(), "dev-0"); len(list) == 0 {
		t.Error("other devices are deleted, too")
	}
}

// A device with a certificate of --client-ca sends its own dumps without a token, and no others.
func TestClientCertificate(t *testing.T) {
	ca, cert, key := certificates(t) // of localhost
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "read %x\n", sha256.Sum256([]byte("read"))), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &serve{clientCA: ca}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := pool("--client-ca", o.clientCA)
	if err != nil {
		t.Fatal(err)
	}
	_, _, w := fleetServer(t, dir, "read")
	list, err := server.ReadTokens(strings.NewReader(string(must(os.ReadFile(tokens)))), tokens)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	h := httptest.NewUnstartedServer((&server.Server{Spool: w.Spool, Tokens: list, Limits: server.DefaultLimits, Log: w.Log, Metrics: w.Metrics, Writer: w}).Handler(registry))
	h.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: trusted, ClientAuth: tls.VerifyClientCertIfGiven}
	h.StartTLS()
	defer h.Close()
	put := func(device string, certificates ...tls.Certificate) int {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: "localhost", Certificates: certificates}}}
		req, err := http.NewRequestWithContext(context.Background(), "PUT", h.URL+"/v1/dumps/"+device, bytes.NewReader(fleettest.Log(device, "b", 1, 5)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := put("localhost", pair); got != 201 {
		t.Errorf("with the certificate of the device: %d", got)
	}
	if got := put("other", pair); got != 401 {
		t.Errorf("another device: %d", got)
	}
	if got := put("localhost"); got != 401 {
		t.Errorf("without a certificate: %d", got)
	}
	_, otherCert, otherKey := certificates(t)
	foreign, err := tls.LoadX509KeyPair(otherCert, otherKey)
	if err != nil {
		t.Fatal(err)
	}
	if got := put("localhost", foreign); got == 201 {
		t.Error("a certificate of another authority is accepted")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// certificates writes an authority, and a certificate of it for localhost, with its key.
func certificates(t *testing.T) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sign := func(c, by *x509.Certificate, public *ecdsa.PublicKey, with *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, by, public, with)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	newKey := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	rootKey, leafKey := newKey(), newKey()
	der, err := x509.MarshalECPrivateKey(leafKey)
	if err != nil {
		t.Fatal(err)
	}
	return file("ca", "CERTIFICATE", sign(root, root, &rootKey.PublicKey, rootKey)), file("cert", "CERTIFICATE", sign(leaf, root, &leafKey.PublicKey, rootKey)), file("key", "EC PRIVATE KEY", der)
}
