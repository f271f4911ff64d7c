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

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// sampleSize is the number of changes for a median.
const sampleSize = 15

// undisturbed checks that changes have authors while other objects change that are never reported: neither the audit policy nor the
// webhook selects EndpointSlices. It logs the latency with and without these objects; TestMissingFactsDelayOnlyTheirObject of
// pkg/attribution checks in virtual time that it is the same.
func undisturbed(t *testing.T, s *testCluster) {
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
	t.Logf("latency of a change: %s alone, %s with unreported objects, factor %.1f",
		alone.Round(time.Millisecond), beside.Round(time.Millisecond), float64(beside)/float64(alone))
	for i := range 1 + 2*sampleSize {
		checkAuthor(t, m.changesOf(t, "v1/configmaps", "web", 1+2*sampleSize)[i], "alice", true)
	}
	for _, c := range m.changesOf(t, "discovery.k8s.io/v1/endpointslices", "e0", 1) {
		if !c.hasNoAuthor() {
			t.Errorf("WRONG: %s has an author without a fact", c)
		}
	}
}

// arrivals returns the median latency of changes until they are in Git.
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
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("e%d", i%10), Namespace: m.Namespace, Annotations: map[string]string{"value": fmt.Sprint(i)},
			},
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

// toolsOnly checks commits of changes without facts: they name the tool in managedFields.
func toolsOnly(t *testing.T, s *testCluster) {
	s.Delete(t, "", "validatingwebhookconfiguration/slipstream-attribution")
	m := s.newMirror(t, "tools", "configmaps")
	// kube-apiserver continues to call the webhook for a moment.
	mirrortest.Eventually(t, "no facts arrive", func(ctx context.Context) error {
		name := fmt.Sprintf("probe%d", len(m.writeLog.writes))
		if err := m.set(ctx, m.alice, name, "x"); err != nil {
			return err
		}
		if c := m.changesOf(t, "v1/configmaps", name, 1)[0]; !c.hasNoAuthor() {
			return fmt.Errorf("%s", c)
		}
		return nil
	})
	s.alice.run(t, "create", "configmap", "web", "-n", m.Namespace, "--from-literal=a=1", "--field-manager=alice")
	m.waitForNextSecond(t, "web")
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

// waitForNextSecond waits until the next write gets a later time in managedFields than the writes so far. If two managers have the same
// time, the last one is not known.
func (m *mirror) waitForNextSecond(t *testing.T, name string) {
	t.Helper()
	object, err := m.admin.CoreV1().ConfigMaps(m.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mirrortest.Eventually(t, "the next second", func(context.Context) error {
		for _, entry := range object.ManagedFields {
			if now := time.Now().Truncate(time.Second); !now.After(entry.Time.Time) {
				return fmt.Errorf("last write of %s at %s", entry.Manager, entry.Time)
			}
		}
		return nil
	})
}
