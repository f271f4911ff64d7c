// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"errors"
	"fmt"
	"testing"
)

// testReplicas upgrades two replicas on etcd with a rolling update.
func testReplicas(t *testing.T, s *testCluster) {
	defer s.remove(t)
	s.Apply(t, restrictedNamespace)
	values := []string{"replicas=2", fmt.Sprintf(`storage={"backend": "etcd3", "etcd": {"servers": ["http://%s"]}}`, etcdAddress)}
	s.followNotes(t, s.release(t, values...))
	m := s.newMirror(t, "replicated")
	m.expectWorking(t)
	before := s.pods(t)

	requests := s.request(t, m.namespace)
	s.release(t, append(values, `podAnnotations={"changed": "yes"}`)...)
	requests.stop(t, "rolling upgrade")
	if len(requests.failures) > 0 {
		t.Errorf("%d requests failed: %v", len(requests.failures), errors.Join(requests.failures[:min(len(requests.failures), 5)]...))
	}
	s.Run(t, append([]string{"wait", "--for=delete", "--timeout=10m", "-n", namespace}, before...)...)
	m.expectWorking(t)
}

// testHelm3 installs and upgrades with helm 3.
func testHelm3(t *testing.T, s *testCluster) {
	defer s.remove(t)
	s.Apply(t, restrictedNamespace)
	s.releaseBy(t, s.helm3, chart)
	m := s.newMirror(t, "by-helm3")
	m.expectWorking(t)
	s.releaseBy(t, s.helm3, chart, `podAnnotations={"changed": "yes"}`)
	m.expectWorking(t)
	s.do(t, "", s.helm3, "uninstall", "slipstream", "-n", namespace, "--wait")
	if left := s.left(t); len(left) > 0 {
		t.Errorf("objects left in the cluster: %v", left)
	}
}
