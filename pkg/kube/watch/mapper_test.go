// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// A type that is defined after the mapper was asked is found a minute later, without a request for each question before.
func TestMapperLearnsOfNewTypes(t *testing.T) {
	server, client := newDiscoveryServer(t)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	mapper := watch.NewMapper(client, clock)
	carts := schema.GroupKind{Group: "shop.example.com", Kind: "Kind-of-carts"}
	asked := 0
	for range 3 {
		if _, err := mapper.RESTMapping(carts); !meta.IsNoMatchError(err) {
			t.Fatalf("before the definition: %v", err)
		}
		if asked != 0 && server.asked() != asked {
			t.Errorf("%d requests, and %d for the first question", server.asked(), asked)
		}
		asked = server.asked()
	}
	server.edit(withGroup("shop.example.com", "v1", "carts"))
	clock.SetTime(clock.Now().Add(59 * time.Second))
	if _, err := mapper.RESTMapping(carts); !meta.IsNoMatchError(err) {
		t.Errorf("within the minute: %v", err)
	}
	clock.SetTime(clock.Now().Add(time.Second))
	mapping, err := mapper.RESTMapping(carts)
	if err != nil || mapping.Resource.Resource != "carts" || mapping.Resource.Version != "v1" {
		t.Errorf("after it: %v, %v", mapping, err)
	}
	server.answer(http.StatusServiceUnavailable)
	clock.SetTime(clock.Now().Add(time.Minute))
	if _, err := mapper.RESTMapping(carts); err != nil {
		t.Errorf("without an answer: %v", err)
	}
	if _, err := watch.NewMapper(client, clock).RESTMapping(carts); err == nil || meta.IsNoMatchError(err) {
		t.Errorf("without any answer: %v", err)
	}
	server.answer(http.StatusOK)
	server.edit(withoutGroup("shop.example.com"))
	clock.SetTime(clock.Now().Add(time.Minute))
	if _, err := mapper.RESTMapping(carts); !meta.IsNoMatchError(err) {
		t.Errorf("without the definition: %v", err)
	}
}
