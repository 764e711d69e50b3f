package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Only a loopback name is answered, whatever the port.
func TestOnlyLocal(t *testing.T) {
	h := onlyLocal(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for host, want := range map[string]int{
		"localhost:8080": 200, "localhost": 200, "127.0.0.1:1": 200, "127.9.9.9": 200, "[::1]:8080": 200, "[::1]": 200,
		"attacker.example:8080": 403, "localhost.attacker.example": 403, "192.168.1.2:8080": 403, "0.0.0.0:8080": 403, "": 403,
	} {
		r := httptest.NewRequest("GET", "http://localhost/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("Host %q: status %d, want %d", host, w.Code, want)
		}
	}
	// A browser says which page a request comes from.
	for site, want := range map[string]int{"none": 200, "same-origin": 200, "same-site": 403, "cross-site": 403} {
		r := httptest.NewRequest("GET", "http://localhost:8080/saveconfig?config=x", nil)
		r.Header.Set("Sec-Fetch-Site", site)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("from a page of %s: status %d, want %d", site, w.Code, want)
		}
	}
}

// Browsers without Sec-Fetch-Site name the page of a request in Origin or Referer.
func TestForeignPages(t *testing.T) {
	h := onlyLocal(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for from, want := range map[string]int{
		"": 200, "http://localhost:8080": 200, "http://localhost:8080/ui/top?x=1": 200,
		"http://attacker.example": 403, "https://localhost:8080": 403, "http://localhost:8081": 403,
		"http://localhost:8080.attacker.example/": 403, "null": 403, "%": 403,
	} {
		for _, header := range []string{"Origin", "Referer"} {
			r := httptest.NewRequest("POST", "http://localhost:8080/top", nil)
			if from != "" {
				r.Header.Set(header, from)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s: %q: status %d, want %d", header, from, w.Code, want)
			}
		}
	}
}
