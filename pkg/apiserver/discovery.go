// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	"k8s.io/klog/v2"
)

// withQuietDiscovery completes discovery requests even if the client cancels them.
//
// Every few seconds, kube-apiserver's aggregator sends five of them at once to check the server's availability, and
// cancels the others after the first response. The discovery handlers would log five errors for each cancelled request.
// Discovery is cheap, so nothing is lost. Write errors without a cancellation are unchanged.
func withQuietDiscovery(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isDiscovery(r) {
			handler.ServeHTTP(w, r)
			return
		}
		quiet := responsewriter.WrapForHTTP1Or2(&cancellableWriter{ResponseWriter: w, client: r.Context(), path: r.URL.Path})
		handler.ServeHTTP(quiet, r.WithContext(context.WithoutCancel(r.Context())))
	})
}

// isDiscovery reports whether a request is for the groups, the versions of a group or the resources of a version:
// /apis, /apis/GROUP or /apis/GROUP/VERSION.
func isDiscovery(r *http.Request) bool {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	return r.Method == http.MethodGet && segments[0] == "apis" && len(segments) <= 3
}

// cancellableWriter discards writes and reports success once the client has cancelled.
type cancellableWriter struct {
	http.ResponseWriter

	client context.Context //nolint:containedctx // It is looked at when something cannot be written.
	path   string
}

var _ responsewriter.UserProvidedDecorator = &cancellableWriter{}

func (w *cancellableWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *cancellableWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	if err != nil && w.client.Err() != nil {
		klog.FromContext(w.client).V(4).Info("A discovery request was cancelled", "path", w.path, "reason", err.Error())
		return len(p), nil //nolint:nilerr // Nobody waits for the answer any more.
	}
	return n, err
}
