// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestManagers(t *testing.T) {
	now := time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)
	entry := func(manager string, ago time.Duration, subresource string) any {
		return map[string]any{
			"manager": manager, "time": now.Add(-ago).Format(time.RFC3339), "subresource": subresource,
			"fieldsV1": map[string]any{"f:data": map[string]any{}},
		}
	}
	const second = time.Second
	cases := map[string]struct {
		entries any
		want    string
	}{
		"none":                      {nil, ""},
		"one, long ago":             {[]any{entry("kubectl", time.Hour, "")}, "kubectl"},
		"one twice":                 {[]any{entry("kubectl", time.Hour, ""), entry("kubectl", 2*time.Hour, "")}, "kubectl"},
		"the newest":                {[]any{entry("kubectl", second, ""), entry("flux", time.Hour, "")}, "kubectl"},
		"the newest comes last":     {[]any{entry("flux", time.Hour, ""), entry("kubectl", second, "")}, "kubectl"},
		"the newest is too old":     {[]any{entry("kubectl", 11*second, ""), entry("flux", time.Hour, "")}, ""},
		"the newest is ahead":       {[]any{entry("kubectl", -11*second, ""), entry("flux", time.Hour, "")}, ""},
		"two at once":               {[]any{entry("kubectl", second, ""), entry("flux", second, "")}, ""},
		"two at once, then another": {[]any{entry("kubectl", 2*second, ""), entry("flux", 2*second, ""), entry("helm", second, "")}, "helm"},
		"status is not content":     {[]any{entry("kubectl", time.Hour, ""), entry("kubelet", second, "status")}, "kubectl"},
		"scale is content":          {[]any{entry("kubectl", time.Hour, ""), entry("hpa", second, "scale")}, "hpa"},
		"only status":               {[]any{entry("kubelet", second, "status")}, ""},
		"malformed":                 {[]any{"kubectl", nil, map[string]any{"manager": 7}}, ""},
		"not a list":                {"kubectl", ""},
	}
	for name, c := range cases {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": c.entries}}}
		if got := managerOf(object, now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := managerOf(&unstructured.Unstructured{}, now); got != "" {
		t.Errorf("an empty object: %q", got)
	}
}
