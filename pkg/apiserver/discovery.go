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

// withQuietDiscovery answers discovery requests to their end, also those that the client has cancelled meanwhile.
//
// Every few seconds kube-apiserver's aggregator sends five of them at once, to see whether the server is available, and
// cancels the others when the first is answered. The handlers behind would log five errors for each that was cancelled.
// Discovery takes no time that would be worth saving. What cannot be written to a client that has not cancelled is an error as before.
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

// isDiscovery says whether a request asks for groups, the versions of one, or the types of one: /apis, /apis/GROUP and
// /apis/GROUP/VERSION.
func isDiscovery(r *http.Request) bool {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	return r.Method == http.MethodGet && segments[0] == "apis" && len(segments) <= 3
}

// cancellableWriter writes nothing any more, and says that all is well, once the client has cancelled.
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
