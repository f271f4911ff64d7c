// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

// repairsOf returns repairs for the Secrets of the fixture's cluster, which sets no resourceVersions.
func repairsOf(s *fixture, retried *[]string) *repairs {
	return &repairs{
		failing: func() []*v1alpha1.GitRepoConfig {
			failing := s.registry.failingBranches()
			return slices.DeleteFunc(slices.Clone(s.in.repositories), func(c *v1alpha1.GitRepoConfig) bool { return !failing[nameOf(c)] })
		},
		version: func(ctx context.Context, name types.NamespacedName) (string, error) {
			secret, err := s.secrets.CoreV1().Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
			if err != nil {
				return "", nil //nolint:nilerr // it does not exist
			}
			return fmt.Sprint(secret.Data), nil
		},
		retry: func(name types.NamespacedName) {
			*retried = append(*retried, name.String())
			s.registry.retryBranches(name)
		},
	}
}

// TestRepairedSecretIsTriedAtOnce has a backoff of an hour, as after a long failure: without polling the Secrets, nothing would be retried
// in time.
func TestRepairedSecretIsTriedAtOnce(t *testing.T) {
	password := func(value string) map[string][]byte {
		return map[string][]byte{"username": []byte("bot"), "password": []byte(value)}
	}
	private, _ := newSSHKey(t, "")
	for name, tt := range map[string]struct {
		secret, reason string
		prepare        func(*fixture)
		wrong, right   map[string][]byte
	}{
		"credentials": {"git", v1alpha1.ReasonAuthenticationFailed, func(*fixture) {}, password("wrong"), password("right")},
		"signing key": {
			"signing", v1alpha1.ReasonSigningKeyUnusable, signing(v1alpha1.SigningFormatSSH, map[string][]byte{"ssh-privatekey": private}),
			map[string][]byte{"ssh-privatekey": []byte("none")}, map[string][]byte{"ssh-privatekey": private},
		},
		"credentials that were missing": {
			"git", v1alpha1.ReasonSecretInvalid, func(*fixture) {}, map[string][]byte{"x": []byte("y")}, password("right"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, func(s *fixture) {
				s.retry = time.Hour
				s.in.repositories[0].Spec.SecretRef = &v1alpha1.SecretReference{Name: "git"}
				s.putSecret("git", password("right"))
				s.git.require("bot", "right")
				tt.prepare(s)
				s.putSecret(tt.secret, tt.wrong)
			})
			s.cluster.put(configMap("a"), "1")
			s.waitReady("main", tt.reason)
			s.waitFailing(1)
			var retried []string
			r := repairsOf(s, &retried)
			r.poll(t.Context())
			r.poll(t.Context())
			if len(retried) > 0 {
				t.Fatalf("retried without a change: %v", retried)
			}
			s.putSecret(tt.secret, tt.right)
			r.poll(t.Context())
			s.mirrored()
			s.waitReady("main", v1alpha1.ReasonSucceeded)
			s.waitFailing(0)
			s.putSecret(tt.secret, tt.wrong)
			r.poll(t.Context())
			if !slices.Equal(retried, []string{"shop/repo"}) || len(r.seen) != 0 {
				t.Errorf("retried: %v; stored versions of repositories that do not fail: %v", retried, slices.Collect(maps.Keys(r.seen)))
			}
		})
	}
}

// waitFailing waits until a number of repositories fail.
func (s *fixture) waitFailing(repositories int) {
	s.t.Helper()
	testkit.Eventually(s.t, "failing repositories", func() error {
		if failing := s.registry.failingBranches(); len(failing) != repositories {
			return fmt.Errorf("%v fail, want %d", failing, repositories)
		}
		return nil
	})
}

func TestUnreadableSecretHasNotChanged(t *testing.T) {
	config := &v1alpha1.GitRepoConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "repo"}}
	config.Spec.SecretRef = &v1alpha1.SecretReference{Name: "git"}
	version, failure, retried := "1", error(nil), 0
	r := &repairs{
		failing: func() []*v1alpha1.GitRepoConfig { return []*v1alpha1.GitRepoConfig{config} },
		version: func(context.Context, types.NamespacedName) (string, error) { return version, failure },
		retry:   func(types.NamespacedName) { retried++ },
	}
	for _, step := range []struct {
		version string
		failure error
		retried int
	}{{"1", nil, 0}, {"", errors.New("forbidden"), 0}, {"1", nil, 0}, {"2", nil, 1}, {"", nil, 2}, {"2", nil, 3}} {
		version, failure = step.version, step.failure
		r.poll(t.Context())
		if retried != step.retried {
			t.Errorf("retried %[2]d times after %+[1]v", step, retried)
		}
	}
}
