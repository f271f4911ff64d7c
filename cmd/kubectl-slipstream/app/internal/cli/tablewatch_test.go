// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

// TestFollowWithoutConnection closes connections without a response, which client-go takes for the end of a watch without events.
func TestFollowWithoutConnection(t *testing.T) {
	var lists, broken atomic.Int64
	broken.Store(1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" || broken.Load() == 1 {
			panic(http.ErrAbortHandler)
		}
		lists.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"resourceVersion":"7"},"columnDefinitions":[{"name":"Name"}],"rows":[]}`)
	}))
	defer server.Close()
	config, nowhere := genericclioptions.NewConfigFlags(true), os.DevNull
	config.APIServer, config.KubeConfig = &server.URL, &nowhere
	tables, err := cli.NewTables(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls []string
	err = tables.Follow(ctx, cli.Selection{Resource: "environments"}, "1", cli.TableHandler{
		Lost: func(err error) {
			calls = append(calls, "lost")
			broken.Store(0)
		},
		Found: func() { calls = append(calls, "found") },
		Update: func(u cli.TableUpdate) {
			calls = append(calls, fmt.Sprint("all ", u.All))
			cancel()
		},
	})
	if got := fmt.Sprint(calls); err != nil || got != "[lost found all true]" || lists.Load() != 1 {
		t.Errorf("%s after %d lists: %v", got, lists.Load(), err)
	}
}
