// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// headers are those of each response.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; " +
		"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY",
	"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
}

// TestRequestsOfOthers checks that only the page can call the API: not a site with a name that resolves to this address, nor another
// site, nor a page without a session.
func TestRequestsOfOthers(t *testing.T) {
	p := login(t, newCluster(t))
	tests := map[string]struct {
		path   string
		change func(*http.Request)
		status int
	}{
		"as the page":         {"/api/list", func(*http.Request) {}, http.StatusOK},
		"another host":        {"/api/list", func(r *http.Request) { r.Host = "rebound.example.com:80" }, http.StatusMisdirectedRequest},
		"another port":        {"/api/list", func(r *http.Request) { r.Host = "127.0.0.1" }, http.StatusMisdirectedRequest},
		"localhost":           {"/", func(r *http.Request) { r.Host = strings.Replace(r.Host, "127.0.0.1", "localhost", 1) }, http.StatusMisdirectedRequest},
		"no origin":           {"/api/list", func(r *http.Request) { r.Header.Del("Origin") }, http.StatusForbidden},
		"another origin":      {"/api/list", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, http.StatusForbidden},
		"no opaque origin":    {"/api/list", func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"two origins":         {"/api/list", func(r *http.Request) { r.Header.Add("Origin", "http://example.com") }, http.StatusForbidden},
		"another site":        {"/api/list", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"the same site":       {"/api/list", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"an address bar":      {"/api/list", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, http.StatusForbidden},
		"no site":             {"/api/list", func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }, http.StatusForbidden},
		"GET":                 {"/api/list", func(r *http.Request) { r.Method = http.MethodGet }, http.StatusMethodNotAllowed},
		"a form":              {"/api/list", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"no session":          {"/api/list", func(r *http.Request) { r.Header.Del("X-Slipstream-Session") }, http.StatusUnauthorized},
		"a wrong session":     {"/api/list", func(r *http.Request) { r.Header.Set("X-Slipstream-Session", strings.Repeat("0", 64)) }, http.StatusUnauthorized},
		"a part of a session": {"/api/list", func(r *http.Request) { r.Header.Set("X-Slipstream-Session", p.session[:63]) }, http.StatusUnauthorized},
		"an unknown call":     {"/api/lists", func(*http.Request) {}, http.StatusNotFound},
		"the API server":      {"/apis/configbutler.ai/v1alpha1/environments", func(*http.Request) {}, http.StatusNotFound},
		"a file":              {"/index.html", func(*http.Request) {}, http.StatusNotFound},
		"a way up":            {"/app.js/../../command.go", func(*http.Request) {}, http.StatusNotFound},
		"a posted file":       {"/app.js", func(*http.Request) {}, http.StatusMethodNotAllowed},
		"options":             {"/api/list", func(r *http.Request) { r.Method = http.MethodOptions }, http.StatusMethodNotAllowed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := p.request(t.Context(), t, test.path, `{"resource":"environments"}`)
			test.change(r)
			got := p.do(t, r)
			if got.status != test.status {
				t.Errorf("status %d, want %d: %s", got.status, test.status, got.body)
			}
			checkHeaders(t, got.header)
		})
	}
}

// checkHeaders checks the headers of a response, and that it allows nothing to other sites.
func checkHeaders(t *testing.T, of http.Header) {
	t.Helper()
	for name, want := range headers {
		if found := of.Values(name); len(found) != 1 || found[0] != want {
			t.Errorf("%s is %q, want %q", name, found, want)
		}
	}
	for name := range maps.Keys(of) {
		if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" {
			t.Errorf("the response has %s", name)
		}
	}
}

// TestBodies checks that a body that the API does not know is refused.
func TestBodies(t *testing.T) {
	p := login(t, newCluster(t))
	for body, want := range map[string]int{
		`{"resource":"environments"}`:                            http.StatusOK,
		`{"resource":"environments","path":"/etc/passwd"}`:       http.StatusBadRequest,
		`{"resource":"environments"}{"resource":"environments"}`: http.StatusBadRequest,
		`{"resource":"environments"`:                             http.StatusBadRequest,
		`[]`:                                                     http.StatusBadRequest,
		``:                                                       http.StatusBadRequest,
		`{"resource":"secrets"}`:                                 http.StatusBadRequest,
		`{"resource":"environments/alice"}`:                      http.StatusBadRequest,
		`{"resource":"environments","namespace":"../../"}`:                 http.StatusBadRequest,
		`{"resource":"environments","labelSelector":"="}`:                  http.StatusBadRequest,
		`{"resource":"environments","fields":{"author":"jane"}}`:           http.StatusBadRequest,
		`{"resource":"changes","fields":{"author":"jane"}}`:                http.StatusOK,
		`{"resource":"` + strings.Repeat("x", 64<<10) + `"}`:               http.StatusRequestEntityTooLarge,
		`{"resource":"environments"}` + strings.Repeat(" ", 64<<10) + "{}": http.StatusRequestEntityTooLarge,
	} {
		if status, text := p.call(t, "/api/list", body); status != want {
			t.Errorf("%.80s: status %d, want %d: %s", body, status, want, text)
		}
	}
}

// TestCodeIsUsedOnce checks that a link opens one session, which ends when the page says so.
func TestCodeIsUsedOnce(t *testing.T) {
	p := login(t, newCluster(t))
	for _, code := range []string{p.code, "", "wrong"} {
		status, body := p.call(t, "/api/session", map[string]string{"code": code})
		if status != http.StatusUnauthorized || !strings.Contains(body, "Press Enter in the terminal") {
			t.Errorf("code %q: status %d: %s", code, status, body)
		}
	}
	tab := p.stream(t, "/api/stream", "{}")
	if status, body := p.call(t, "/api/end", "{}"); status != http.StatusOK {
		t.Errorf("the end of a session: status %d: %s", status, body)
	}
	for m := tab.next(t); m != nil; m = tab.next(t) {
		if m.Type == "ping" {
			t.Fatal("the stream of an ended session continues")
		}
	}
	if status, body := p.call(t, "/api/list", `{"resource":"environments"}`); status != http.StatusUnauthorized {
		t.Errorf("a session that has ended: status %d: %s", status, body)
	}
}

// TestFiles checks that the files of the page are served before there is a session.
func TestFiles(t *testing.T) {
	p := open(t, newCluster(t))
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/app.js": "text/javascript; charset=utf-8", "/app.css": "text/css; charset=utf-8", "/favicon.svg": "image/svg+xml",
	} {
		r := p.request(t.Context(), t, path, "")
		r.Method, r.Body, r.ContentLength, r.Header = http.MethodGet, nil, 0, http.Header{}
		got := p.do(t, r)
		if got.status != http.StatusOK || got.header.Get("Content-Type") != kind {
			t.Errorf("%s: status %d, type %s: %s", path, got.status, got.header.Get("Content-Type"), got.body)
		}
		checkHeaders(t, got.header)
	}
}

// TestOptionsOfTheServer checks that a request about the server itself, not a path of it, has the headers.
func TestOptionsOfTheServer(t *testing.T) {
	p := open(t, newCluster(t))
	r := p.request(t.Context(), t, "/", "")
	r.Method, r.Body, r.URL.Opaque = http.MethodOptions, io.NopCloser(bytes.NewReader(nil)), "*"
	got := p.do(t, r)
	if got.status != http.StatusNotFound {
		t.Errorf("status %d", got.status)
	}
	checkHeaders(t, got.header)
}
