// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"mime"
	"net/http"
	"strings"
)

// contentPolicy lets the page load only its own files, and connect only to this server. Trusted Types refuse HTML that a script makes of texts.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// setHeaders sets the headers that each response has.
func setHeaders(to http.Header) {
	to.Set("Content-Security-Policy", contentPolicy)
	to.Set("X-Content-Type-Options", "nosniff")
	to.Set("Referrer-Policy", "no-referrer")
	to.Set("Cache-Control", "no-store")
	to.Set("Cross-Origin-Opener-Policy", "same-origin")
	to.Set("Cross-Origin-Resource-Policy", "same-origin")
	to.Set("X-Frame-Options", "DENY")
}

// guard refuses requests that do not come from the page.
type guard struct {
	// origin is the address of the page in the browser, such as http://127.0.0.1:43619, and host what a browser sends as the header Host.
	origin, host string
	protection   *http.CrossOriginProtection
}

// newGuard returns a guard for a page at an origin, without the standard port: browsers leave it out.
func newGuard(origin string) *guard {
	_, host, _ := strings.Cut(origin, "://")
	return &guard{origin, host, http.NewCrossOriginProtection()}
}

// checkHost refuses a request to another host. A page of another site can reach this server by a name that resolves to its address, but its
// requests have that name as Host.
func (g *guard) checkHost(r *http.Request) error {
	if r.Host != g.host {
		return &refusal{http.StatusMisdirectedRequest, "This server has no such host", "Open the page at its own address"}
	}
	return nil
}

// checkCall refuses a call of the API that a script of the page has not made.
func (g *guard) checkCall(r *http.Request) error {
	if r.Method != http.MethodPost {
		return &refusal{http.StatusMethodNotAllowed, "The API takes only POST", ""}
	}
	foreign := g.protection.Check(r) != nil || r.Header.Get("Origin") != g.origin || r.Header.Get("Sec-Fetch-Site") != "same-origin"
	if foreign || len(r.Header.Values("Origin")) != 1 || len(r.Header.Values("Sec-Fetch-Site")) != 1 {
		return &refusal{http.StatusForbidden, "The request is not one of the page", "Open the page at its own address, in a current browser"}
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return &refusal{http.StatusUnsupportedMediaType, "The API takes only JSON", ""}
	}
	return nil
}
