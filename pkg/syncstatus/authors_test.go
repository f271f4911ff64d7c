// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

func TestAddAuthors(t *testing.T) {
	author := func(name string, workloads int32) v1alpha1.SourceAuthor {
		return v1alpha1.SourceAuthor{Username: name, Signal: v1alpha1.SignalAudit, Workloads: workloads}
	}
	type list = []v1alpha1.SourceAuthor
	for name, tt := range map[string]struct{ before, more, want list }{
		"none":             {},
		"the first":        {more: list{author("joe", 1), author("jane", 2)}, want: list{author("jane", 2), author("joe", 1)}},
		"the same again":   {before: list{author("jane", 2)}, more: list{author("jane", 2)}, want: list{author("jane", 2)}},
		"less of the same": {before: list{author("jane", 2)}, more: list{author("jane", 1)}, want: list{author("jane", 2)}},
		"more of the same": {
			before: list{author("jane", 2), author("joe", 1)}, more: list{author("joe", 3)}, want: list{author("joe", 3), author("jane", 2)},
		},
		"nothing more": {before: list{author("jane", 2)}, want: list{author("jane", 2)}},
		"of another signal": {
			before: list{{Signal: v1alpha1.SignalUnknown}}, more: list{author("", 0)}, want: list{author("", 0), {Signal: v1alpha1.SignalUnknown}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			record := &v1alpha1.SyncStatus{Status: v1alpha1.SyncRecord{ChangedBy: tt.before}}
			syncstatus.AddAuthors(record, tt.more)
			if diff := cmp.Diff(tt.want, record.Status.ChangedBy); diff != "" {
				t.Errorf("wrong authors (-want +got):\n%s", diff)
			}
		})
	}
}
