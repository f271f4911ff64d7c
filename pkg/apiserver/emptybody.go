// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// withEmptyBodies reads an empty body of a create request for a subresource as {}: all fields of an action have
// defaults. The decoder would reject an empty document.
func withEmptyBodies(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if ok && info.IsResourceRequest && info.APIGroup == v1alpha1.GroupName && info.Verb == "create" && info.Subresource != "" {
			fillBody(r)
		}
		handler.ServeHTTP(w, r)
	})
}

// fillBody replaces a body that is empty except for white space. It waits for the first other byte.
func fillBody(r *http.Request) {
	body := bufio.NewReader(r.Body)
	for {
		next, err := body.Peek(1)
		switch {
		case errors.Is(err, io.EOF):
			r.Body = io.NopCloser(strings.NewReader("{}"))
			r.ContentLength = int64(len("{}"))
			return
		case err == nil && unicode.IsSpace(rune(next[0])):
			_, _ = body.Discard(1)
		default:
			r.Body = readCloser{body, r.Body}
			return
		}
	}
}

// readCloser reads from one reader and closes another.
type readCloser struct {
	io.Reader
	io.Closer
}
