// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// tables serves empty tables, after a number of errors for each resource.
func tables(t *testing.T, failures int32, failure *apierrors.StatusError) *genericclioptions.ConfigFlags {
	t.Helper()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/changes") && requests.Add(1) <= failures:
			status := failure.Status()
			status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			w.WriteHeader(int(status.Code))
			_ = json.NewEncoder(w).Encode(status)
		default:
			_, _ = io.WriteString(w, `{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"resourceVersion":"7"},"columnDefinitions":[{"name":"Name"}]}`)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	config, nowhere := genericclioptions.NewConfigFlags(true), os.DevNull
	config.APIServer, config.KubeConfig = &server.URL, &nowhere
	return config
}

// TestTriedAgain lists a resource again after the user may not list it, and after another error.
func TestTriedAgain(t *testing.T) {
	for name, failure := range map[string]*apierrors.StatusError{
		"refused": apierrors.NewForbidden(v1alpha1.Resource("changes"), "", io.EOF),
		"lost":    apierrors.NewServiceUnavailable("it restarts"),
	} {
		t.Run(name, func(t *testing.T) {
			cluster, err := connect(tables(t, 2, failure))
			if err != nil {
				t.Fatal(err)
			}
			h := newHub(streamed, nil)
			s := h.subscribe(1)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				(&feed{cluster: cluster, hub: h, refusedPause: time.Millisecond, lostPause: time.Millisecond}).run(ctx)
			}()
			defer func() {
				cancel()
				<-ended
			}()
			for {
				<-s.changed
				if slices.ContainsFunc(h.take(s), func(message any) bool {
					m, ok := message.(tableMessage)
					return ok && m.Resource == "changes"
				}) {
					return
				}
			}
		})
	}
}

// TestIdle ends the command after some time without a request.
func TestIdle(t *testing.T) {
	streams, _, out, notes := genericiooptions.NewTestIOStreams()
	d := &dashboard{IOStreams: streams, config: tables(t, 0, nil), idle: time.Millisecond}
	if err := d.run(t.Context(), NewCommand(streams, d.config, nil).PersistentFlags()); err != nil || notes.String() != errIdle.Error()+"\n" {
		t.Errorf("ended with %v, noted %q", err, notes)
	}
	if !strings.HasPrefix(out.String(), "http://127.0.0.1:") {
		t.Errorf("printed %q", out)
	}
}
