// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func windowOf(window time.Duration) *v1alpha1.SyncPolicy {
	return &v1alpha1.SyncPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName},
		Spec:       v1alpha1.SyncPolicySpec{BatchWindow: &metav1.Duration{Duration: window}},
	}
}

// TestShorterWindowTakesEffectImmediately shortens the window while a batch is open.
func TestShorterWindowTakesEffectImmediately(t *testing.T) {
	const long = 4 * time.Hour
	s := runningFixture(t)
	s.api.Put(windowOf(long))
	begin := s.clock.Now()
	s.put("api", "shop/api:2")
	s.waitForEvents(1)
	s.stepWindow()
	s.expectRecords(firstRecord)
	shorter := windowOf(time.Second)
	shorter.Generation++ // as the API counts changes of settings
	s.api.Put(shorter)
	s.waitForRevision("shop", 2)
	if passed := s.clock.Now().Sub(begin); passed >= long {
		t.Errorf("recorded after %v", passed)
	}
}
