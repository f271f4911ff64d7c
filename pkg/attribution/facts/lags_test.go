// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"maps"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/attribution"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// TestLags checks that a replica reads the lags that another has stored, by controller, and that its followers do not receive them as facts.
func TestLags(t *testing.T) {
	onBothStores(t, func(t *testing.T, client *clientv3.Client) {
		leader, next := newLog(client), newLog(client)
		follower := follow(t, next)
		want := attribution.Lags{Stored: time.Now().UTC().Truncate(0), Sources: map[string]time.Duration{"audit": 200 * time.Millisecond, "admission": 0}}
		if err := leader.StoreLags(t.Context(), "mirror", want); err != nil {
			t.Fatal(err)
		}
		if got, err := next.Lags(t.Context(), "mirror"); err != nil || !got.Stored.Equal(want.Stored) || !maps.Equal(got.Sources, want.Sources) {
			t.Errorf("lags = %v, %v, want %v", got, err, want)
		}
		if got, err := next.Lags(t.Context(), "catalog"); err != nil || got.Sources != nil {
			t.Errorf("lags of another controller = %v, %v, want none", got, err)
		}
		row := storetable.Row{Key: "mirror", Value: []byte("{")}
		if err := storetable.New(client.KV, prefix).Table("factlags").Put(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		if got, err := next.Lags(t.Context(), "mirror"); err == nil {
			t.Errorf("lags of a damaged row = %v, want an error", got)
		}
		if calls := follower.count().calls; calls != 1 {
			t.Errorf("follower received %d calls, want only that of the list", calls)
		}
	})
}
