// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

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
		Update: func(u cli.TableUpdate) {
			calls = append(calls, fmt.Sprint("all ", u.All))
			cancel()
		},
	})
	if got := fmt.Sprint(calls); err != nil || got != "[lost all true]" || lists.Load() != 1 {
		t.Errorf("%s after %d lists: %v", got, lists.Load(), err)
	}
}

// tripper serves requests without a network, so that time can be virtual.
type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestFollowWithoutWatch lists objects for an hour while each watch fails: often at first, and then less often.
func TestFollowWithoutWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		config, nowhere, server := genericclioptions.NewConfigFlags(true), os.DevNull, "http://127.0.0.1"
		config.APIServer, config.KubeConfig = &server, &nowhere
		config.WithWrapConfigFn(func(of *rest.Config) *rest.Config {
			of.Transport = tripper(func(r *http.Request) (*http.Response, error) {
				code, body := http.StatusServiceUnavailable, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":503}`
				if r.URL.Query().Get("watch") == "" {
					lists++
					code, body = http.StatusOK, `{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"resourceVersion":"7"},"rows":[]}`
				}
				return &http.Response{
					StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
				}, nil
			})
			return of
		})
		tables, err := cli.NewTables(config)
		if err != nil {
			t.Fatal(err)
		}
		handler := cli.TableHandler{Update: func(cli.TableUpdate) {}, Lost: func(err error) { t.Errorf("lost: %v", err) }}
		if err := tables.Follow(ctx, cli.Selection{Resource: "environments"}, "1", handler); err != nil {
			t.Fatal(err)
		}
		if lists < 300 || lists > 400 {
			t.Errorf("%d lists in an hour", lists)
		}
	})
}
