package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"

	"github.com/lwsbt/lwsbt/fleet/server"
)

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

// A broker that demands a certificate of its own authority gets that of --mqtt-cert.
func TestBrokerCertificates(t *testing.T) {
	ca, cert, key := certificates(t)
	o := &serve{broker: "mqtts://localhost", brokerCA: ca, brokerCert: cert, brokerKey: key}
	config, err := o.brokerTLS()
	if err != nil {
		t.Fatal(err)
	}
	demand := &tls.Config{Certificates: config.Certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: config.RootCAs}
	broker := mqtt.New(&mqtt.Options{Logger: slog.New(slog.DiscardHandler)})
	if err := broker.AddHook(new(auth.AllowHook), nil); err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", demand)
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.AddListener(listeners.NewNet("t", l)); err != nil {
		t.Fatal(err)
	}
	go broker.Serve()
	defer broker.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s := &server.Server{Log: slog.New(slog.DiscardHandler)}
	subscribed := func(config *tls.Config, wait time.Duration) bool {
		before := atomic.LoadInt64(&broker.Info.Subscriptions)
		ctx, stop := context.WithTimeout(t.Context(), wait)
		defer stop()
		go s.Subscribe(ctx, server.MQTT{URL: &url.URL{Scheme: "mqtts", Host: "localhost:" + port}, Filter: "a/+", Client: "c", TLS: config})
		for ctx.Err() == nil && atomic.LoadInt64(&broker.Info.Subscriptions) == before {
			time.Sleep(10 * time.Millisecond)
		}
		return ctx.Err() == nil
	}
	if subscribed(&tls.Config{RootCAs: config.RootCAs}, time.Second) {
		t.Error("the broker does not demand a certificate")
	}
	if !subscribed(config, 20*time.Second) {
		t.Error("not subscribed with the certificate")
	}
	for _, o := range []*serve{{broker: "mqtts://h", brokerCert: cert}, {broker: "mqtt://h", brokerCA: ca}, {broker: "mqtts://h", brokerCA: key}, {broker: "mqtts://h", brokerCert: key, brokerKey: key}} {
		if _, err := o.brokerTLS(); err == nil || !strings.Contains(err.Error(), "--mqtt-c") {
			t.Errorf("%+v is accepted, or refused for another reason: %v", o, err)
		}
	}
}
