// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

func TestSweep(t *testing.T) {
	const mine, moved, others = "uid-1/search/aaaa/", "uid-1/search/bbbb/", "uid-2/search/aaaa/"
	rows := []string{
		"damaged", mine + "batch", mine + "known/Instance/apps/v1", moved + "batch", others + "batch", others + "known/a", "uid-1/search",
	}
	for name, tt := range map[string]struct {
		keep []string
		want []string
	}{
		"nothing is kept":   {},
		"one ledger":        {keep: []string{mine}, want: []string{mine + "batch", mine + "known/Instance/apps/v1"}},
		"one ledger of two": {keep: []string{moved, others}, want: []string{moved + "batch", others + "batch", others + "known/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			table := storetable.New(bolttest.NewKV(t), "/work").Table("pipeline-ledger")
			for _, key := range rows {
				// These values cannot be decrypted.
				if err := table.Put(t.Context(), storetable.Row{Key: key, Value: []byte("k8s:enc:aesgcm:v1:gone:" + key)}); err != nil {
					t.Fatal(err)
				}
			}
			err := sweep(t.Context(), table, func(prefix string) bool { return slices.Contains(tt.keep, prefix) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, keysOf(t, table)); diff != "" {
				t.Errorf("rows differ (-want +got):\n%s", diff)
			}
		})
	}
}

func keysOf(t testing.TB, table *storetable.Table) (keys []string) {
	t.Helper()
	for row, err := range table.ScanEach(t.Context(), "", "") {
		if unopened := (&storetable.UnopenedError{}); err != nil && !errors.As(err, &unopened) {
			t.Fatal(err)
		}
		keys = append(keys, row.Key)
	}
	return keys
}
