// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

// pollOften has the worker poll its remote frequently.
func pollOften(s *fixture) { s.pollInterval = 50 * time.Millisecond }

func TestEditsOfOthersAreUndoneWithoutAnyChange(t *testing.T) {
	s := newFixture(t, pollOften)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	other := s.otherWriter()
	if err := other.edit("edited", other.write("clusters/a/core/v1/configmaps/shop/a.yaml", "not what the cluster holds")); err != nil {
		t.Fatal(err)
	}
	s.mirrored()
	if err := other.edit("removed", func() error {
		return os.Remove(filepath.Join(other.clone, "clusters/a/core/v1/configmaps/shop/a.yaml"))
	}); err != nil {
		t.Fatal(err)
	}
	s.mirrored()
}

func TestRevokedCredentialsAreNotUsed(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "git"},
		Data:       map[string][]byte{"username": []byte("user"), "password": []byte("pa55")},
	}
	s := newFixture(t, pollOften, func(s *fixture) {
		s.in.repositories[0].Spec.SecretRef = &v1alpha1.SecretReference{Name: "git"}
		if _, err := s.secrets.CoreV1().Secrets("shop").Create(context.Background(), secret, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
		s.git.require("user", "pa55")
	})
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	client := s.secrets.CoreV1().Secrets("shop")
	if err := client.Delete(t.Context(), "git", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.waitReady("main", v1alpha1.ReasonSecretNotFound)
	before := s.mustRun("rev-parse", "main")
	s.cluster.put(configMap("b"), "1")
	testkit.Eventually(t, "the change waits", func() error {
		if pending := s.record("main").PendingChanges; pending != 1 {
			return fmt.Errorf("%d changes pending", pending)
		}
		return nil
	})
	if after := s.mustRun("rev-parse", "main"); after != before {
		t.Error("pushed with revoked credentials")
	}
	if _, err := client.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.mirrored()
}
