// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldpath_test

import (
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

func TestSummary(t *testing.T) {
	for _, tt := range []struct {
		paths []string
		more  int
		want  string
	}{
		{nil, 0, ""},
		{[]string{"/spec/replicas"}, 0, "/spec/replicas"},
		{[]string{"/spec/replicas", "/spec/paused"}, 3, "/spec/replicas +4"},
		{[]string{"/spec/template/spec/containers[name=web]/image"}, 0, "/spec/.../containers[name=web]/image"},
		{[]string{"/metadata/annotations/example.com~1" + strings.Repeat("a", 50)}, 0, "..." + strings.Repeat("a", 37)},
		{[]string{"/" + strings.Repeat("a", 50)}, 0, "..." + strings.Repeat("a", 37)},
		{[]string{"/" + strings.Repeat("a", 50) + "/b"}, 0, "..." + strings.Repeat("a", 35) + "/b"},
	} {
		if got := fieldpath.Summary(tt.paths, tt.more); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.paths, got, tt.want)
		}
	}
}
