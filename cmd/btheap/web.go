package main

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/pprof/driver"
)

// serveLocal serves pprof's pages. The pages have no access control, so serveLocal answers
// only requests to a loopback name. Otherwise, a foreign page could reach the server by a
// name that resolves to the loopback address.
func serveLocal(args *driver.HTTPServerArgs) error {
	l, err := net.Listen("tcp", args.Hostport)
	if err != nil {
		return err
	}
	pages := http.NewServeMux()
	for path, h := range args.Handlers {
		switch path {
		case "/":
			path = "/{$}"
		case "/saveconfig", "/deleteconfig":
			continue // these pages write the user's pprof settings
		}
		pages.Handle(path, h)
	}
	mux := http.NewServeMux()
	mux.Handle("/ui/", http.StripPrefix("/ui", pages)) // target of pprof's links
	mux.Handle("/", pages)
	server := &http.Server{Handler: onlyLocal(mux), ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(l)
}

// onlyLocal answers requests whose Host is a loopback name or address and that do not
// come from a page of another site. Browsers say where a request comes from in
// Sec-Fetch-Site (https://www.w3.org/TR/fetch-metadata/), older ones only in Origin or
// Referer, which must then name the host that is asked.
func onlyLocal(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.Trim(host, "[]")
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "expected a request to localhost", http.StatusForbidden)
			return
		}
		switch r.Header.Get("Sec-Fetch-Site") {
		case "", "none", "same-origin": // no browser, the user's own typing, or our page
		default:
			http.Error(w, "expected a request of this page or of the user", http.StatusForbidden)
			return
		}
		for _, from := range []string{r.Header.Get("Origin"), r.Header.Get("Referer")} {
			if u, err := url.Parse(from); from != "" && (err != nil || u.Scheme != "http" || u.Host != r.Host) {
				http.Error(w, "expected a request of this page or of the user", http.StatusForbidden)
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}
