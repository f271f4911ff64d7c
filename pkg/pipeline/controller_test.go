// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"testing"

	"k8s.io/client-go/rest"
)

// TestSinksShareNoLimit checks that a sink that has used up its rate limit does not delay another one.
func TestSinksShareNoLimit(t *testing.T) {
	clientOf, err := SinkClients(&rest.Config{Host: "https://192.0.2.1", QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	busy, err := clientOf()
	if err != nil {
		t.Fatal(err)
	}
	other, err := clientOf()
	if err != nil {
		t.Fatal(err)
	}
	limit := busy.CoreV1().RESTClient().GetRateLimiter()
	for range sinkBurst {
		limit.TryAccept()
	}
	if limit.TryAccept() || !other.CoreV1().RESTClient().GetRateLimiter().TryAccept() {
		t.Error("sinks have no rate limit, or share one")
	}
	if busy.BatchV1().RESTClient().GetRateLimiter().TryAccept() {
		t.Error("Jobs of a sink do not share its rate limit")
	}
}
