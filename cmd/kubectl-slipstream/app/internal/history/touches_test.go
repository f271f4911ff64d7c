// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"testing"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/history"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// TestTouches compares fields of changes with fields whose list items are identified in another way.
func TestTouches(t *testing.T) {
	for _, test := range []struct {
		named, path string
		want        bool
	}{
		{"/spec/replicas", "/spec/replicas", true},
		{"/spec", "/spec/replicas", true},
		{"/spec/replicas", "/spec/paused", false},
		{"/spec/ports[name=http]/targetPort", "/spec/ports[port=80,protocol=TCP]/targetPort", true},
		{"/spec/ports[name=http]", "/spec/ports[port=80,protocol=TCP]/targetPort", true},
		{"/spec/ports", "/spec/ports[port=80,protocol=TCP]", true},
		{"/spec/externalIPs[=a]", "/spec/ports[port=80,protocol=TCP]", false},
		{
			"/spec/template/spec/containers[name=web]/volumeMounts[name=data]/readOnly",
			"/spec/template/spec/containers[name=web]/volumeMounts[mountPath=~1data]/readOnly", true,
		},
		{
			"/spec/template/spec/containers[name=log]/volumeMounts[name=data]/readOnly",
			"/spec/template/spec/containers[name=web]/volumeMounts[mountPath=~1data]/readOnly", false,
		},
	} {
		path, err := fieldpath.Parse(test.path)
		if err != nil {
			t.Fatal(err)
		}
		change := &v1alpha1.Change{Spec: v1alpha1.ChangeSpec{Fields: []string{test.named}}}
		if got := history.Touches(change, path); got != test.want {
			t.Errorf("%s and %s: %t", test.named, test.path, got)
		}
	}
}
