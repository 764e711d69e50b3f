package fleettest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Bucket starts a server with an empty bucket, and returns its URL for [store.Open]. middle, if
// not nil, wraps the server. Bucket sets the access key of the environment.
func Bucket(t *testing.T, middle func(http.Handler) http.Handler) string {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("fleet"); err != nil {
		t.Fatal(err)
	}
	h := gofakes3.New(backend).Server()
	if middle != nil {
		h = middle(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	return "s3://fleet?region=us-east-1&endpoint=" + s.URL
}
