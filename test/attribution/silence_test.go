// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/test/mirrortest"
)

// sampleSize is how many changes a median is taken of.
const sampleSize = 15

// undisturbed expects that changes reach Git with their authors beside objects that are never reported: neither the audit
// policy nor the webhook selects EndpointSlices. It logs how long they take alone and beside those; TestFactsThatNeverComeDelayNobodyElse
// of pkg/attribution shows in virtual time that they take no longer.
func undisturbed(t *testing.T, s *stage) {
	m := s.newMirror(t, "undisturbed", "configmaps", "endpointslices.discovery.k8s.io")
	m.arrival(t, 0)
	alone := m.arrivals(t, 1)

	ctx, cancel := context.WithCancel(t.Context())
	flood := make(chan error, 1)
	go func() { flood <- m.flood(ctx) }()
	m.changesOf(t, "discovery.k8s.io/v1/endpointslices", "e0", 1)
	beside := m.arrivals(t, 1+sampleSize)
	cancel()
	if err := <-flood; err != nil {
		t.Fatal(err)
	}
	t.Logf("a change takes %s alone, %s beside objects that are never reported: %.1f times as long",
		alone.Round(time.Millisecond), beside.Round(time.Millisecond), float64(beside)/float64(alone))
	for i := range 1 + 2*sampleSize {
		judge(t, m.changesOf(t, "v1/configmaps", "web", 1+2*sampleSize)[i], "alice", true)
	}
	for _, c := range m.changesOf(t, "discovery.k8s.io/v1/endpointslices", "e0", 1) {
		if !c.nobody() {
			t.Errorf("WRONG: %s, of which nobody told", c)
		}
	}
}

// arrivals is the median of how long changes take to reach Git.
func (m *mirror) arrivals(t *testing.T, from int) time.Duration {
	t.Helper()
	took := make([]time.Duration, sampleSize)
	for i := range took {
		took[i] = m.arrival(t, from+i)
	}
	slices.Sort(took)
	return took[sampleSize/2]
}

func (m *mirror) arrival(t *testing.T, value int) time.Duration {
	t.Helper()
	began := time.Now()
	m.mustSet(t, m.alice, "web", fmt.Sprint(value))
	m.Holds(t, m.ConfigMapPath("web"), fmt.Sprintf("value: \"%d\"\n", value))
	return time.Since(began)
}

// flood changes EndpointSlices until ctx is done, five a second.
func (m *mirror) flood(ctx context.Context) error {
	pace := time.NewTicker(200 * time.Millisecond)
	defer pace.Stop()
	slices := m.alice.client.DiscoveryV1().EndpointSlices(m.Namespace)
	for i := 0; ; i++ {
		object := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: fmt.Sprintf("e%d", i%10), Namespace: m.Namespace, Annotations: map[string]string{"value": fmt.Sprint(i)}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
		}
		var err error
		if i < 10 {
			_, err = slices.Create(ctx, object, metav1.CreateOptions{})
		} else {
			_, err = slices.Update(ctx, object, metav1.UpdateOptions{})
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-pace.C:
		}
	}
}

// toolsOnly shows commits of changes that nobody tells of: they name the tool that wrote, and say so.
func toolsOnly(t *testing.T, s *stage) {
	s.Run(t, "delete", "validatingwebhookconfiguration", "slipstream-attribution")
	m := s.newMirror(t, "tools", "configmaps")
	// kube-apiserver goes on asking for a moment.
	mirrortest.Eventually(t, "nobody tells", func(ctx context.Context) error {
		name := fmt.Sprintf("probe%d", len(m.ledger.writes))
		if err := m.set(ctx, m.alice, name, "x"); err != nil {
			return err
		}
		if c := m.changesOf(t, "v1/configmaps", name, 1)[0]; !c.nobody() {
			return fmt.Errorf("%s", c)
		}
		return nil
	})
	s.alice.run(t, "create", "configmap", "web", "-n", m.Namespace, "--from-literal=a=1", "--field-manager=alice")
	m.aSecondAfter(t, "web")
	s.bob.run(t, "patch", "configmap", "web", "-n", m.Namespace, "-p", `{"data":{"a":"2"}}`, "--field-manager=bobs-tool")
	s.bob.run(t, "delete", "configmap", "web", "-n", m.Namespace)
	commits := m.changesOf(t, "v1/configmaps", "web", 3)
	for i, want := range []struct{ signal, author string }{
		{"managed-fields", "alice (field manager)"}, {"managed-fields", "bobs-tool (field manager)"}, {"unknown", "Slipstream"},
	} {
		if c := commits[i]; c.Signal != want.signal || c.Author != want.author {
			t.Errorf("%s, want %s (%s)", c, want.author, want.signal)
		}
	}
}

// aSecondAfter waits until the API server writes another time into what is written than into a ConfigMap so far: of two
// managers at the same second nobody knows which came last.
func (m *mirror) aSecondAfter(t *testing.T, name string) {
	t.Helper()
	object, err := m.admin.CoreV1().ConfigMaps(m.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mirrortest.Eventually(t, "the second passes", func(context.Context) error {
		for _, entry := range object.ManagedFields {
			if now := time.Now().Truncate(time.Second); !now.After(entry.Time.Time) {
				return fmt.Errorf("%s wrote it at %s", entry.Manager, entry.Time)
			}
		}
		return nil
	})
}
