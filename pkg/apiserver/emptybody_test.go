// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestEmptyBodies(t *testing.T) {
	sync := request.RequestInfo{
		IsResourceRequest: true, APIGroup: "configbutler.ai", Verb: "create", Resource: "gitdestinations", Subresource: "sync",
	}
	main, other := sync, sync
	main.Subresource = ""
	other.APIGroup = "apps"
	tests := map[string]struct {
		info       request.RequestInfo
		body, want string
	}{
		"nothing":                 {info: sync, want: "{}"},
		"white space":             {info: sync, body: " \r\n\t\n", want: "{}"},
		"a document":              {info: sync, body: `{"spec":{"full":true}}`, want: `{"spec":{"full":true}}`},
		"space and a document":    {info: sync, body: "\n {}", want: "{}"},
		"a main resource":         {info: main},
		"another server's action": {info: other},
	}
	for name, tt := range tests {
		for _, chunked := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tt.body))
				if chunked {
					r.ContentLength = -1
				}
				r = r.WithContext(request.WithRequestInfo(r.Context(), &tt.info))
				got := ""
				withEmptyBodies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					got = string(body)
				})).ServeHTTP(httptest.NewRecorder(), r)
				if got != tt.want {
					t.Errorf("body %q, want %q", got, tt.want)
				}
			})
		}
	}
}
