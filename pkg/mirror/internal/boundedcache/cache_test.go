// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package boundedcache_test

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/internal/boundedcache"
)

func TestCache(t *testing.T) {
	c := boundedcache.New[string](10, func(text string) int64 { return int64(len(text)) })
	want := func(key, value string) {
		t.Helper()
		if got, found := c.Get(key); got != value || found != (value != "") {
			t.Errorf("%s = %q, %t; want %q", key, got, found, value)
		}
	}
	c.Put("a", "1234")
	c.Put("b", "1234")
	want("a", "1234")
	c.Put("c", "12") // exactly the limit
	want("b", "1234")
	want("a", "1234")
	c.Put("d", "1")
	want("c", "")
	c.Put("a", "12345")
	want("a", "12345")
	want("b", "1234")
	c.Put("a", "123456") // too large, and what it replaces is gone
	want("a", "")
	want("b", "1234")
	want("d", "1")
}
