// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudevent_test

import (
	"maps"
	"net/http"
	"testing"

	"github.com/configbutler/slipstream/pkg/kube/cloudevent"
)

// TestSetAttributes has the example of the specification, and values that must not become headers of their own.
func TestSetAttributes(t *testing.T) {
	header := http.Header{}
	cloudevent.SetAttributes(header, map[string]string{
		"id": "Euro € 😀", "type": "a.b", "subject": "", "source": "a\r\nx: y", "quoted": `"100%"`,
	})
	want := map[string]string{
		"Ce-Id": "Euro%20%E2%82%AC%20%F0%9F%98%80", "Ce-Type": "a.b", "Ce-Source": "a%0D%0Ax:%20y", "Ce-Quoted": "%22100%25%22",
	}
	got := map[string]string{}
	for name := range header {
		got[name] = header.Get(name)
	}
	if !maps.Equal(got, want) {
		t.Errorf("header = %q, want %q", got, want)
	}
}
