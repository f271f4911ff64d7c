// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// compare requests a sync with kubectl. An empty body requests a comparison of all types.
func (m *mirror) compare(ctx context.Context, as devcluster.Kubectl, body, query string) (string, error) {
	return as.Feed(ctx, body, "create", "--raw", m.syncPath()+query, "-f", "-")
}

// syncPath returns the path of requests for syncs.
func (m *mirror) syncPath() string {
	return "/apis/configbutler.ai/v1alpha1/namespaces/" + m.Namespace + "/gitdestinations/main/sync"
}

// compareCompletely requests syncs until the response reports a complete one. A server whose comparison takes longer responds earlier.
func (m *mirror) compareCompletely(t *testing.T, body string) (out string, err error) {
	t.Helper()
	mirrortest.Eventually(t, "a sync is reported as complete", func(ctx context.Context) error {
		if out, err = m.compare(ctx, m.Administrator, body, ""); strings.Contains(out, "under the id") {
			return errors.New(out)
		}
		return nil
	})
	return out, err
}

func comparedOnRequest(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "compared")
	m.Watch(t, "config", "configmaps", "services")
	s.ConfigMap(t, "compared", "web", "color: 'red'")
	m.Holds(t, m.ConfigMapPath("web"), "color: red\n")
	m.Settled(t)

	for name, body := range map[string]string{
		"empty": "", "an empty object": "{}", "two types": `{"spec":{"types":["services","configmaps"]}}`, "full": `{"spec":{"full":true}}`,
	} {
		out, err := m.compareCompletely(t, body)
		if err != nil || !strings.Contains(out, "Compared 2 of 2 types: 0 files written, 0 removed") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	for _, refused := range []struct{ body, want string }{
		{`{"spec":{"types":["ingresses"]}}`, `spec.types[0]: Unsupported value: "ingresses": supported values: "configmaps", "services"`},
		{`{"spec":{"typos":[]}}`, `unknown field "spec.typos"`},
		{`{"metadata":{"name":"other"}}`, "metadata.name"},
		{`{`, "error"},
	} {
		out, err := m.compare(t.Context(), s.Administrator, refused.body, "?fieldValidation=Strict")
		if err == nil || !strings.Contains(err.Error()+out, refused.want) {
			t.Errorf("%s: %v: %s, want %s", refused.body, err, out, refused.want)
		}
	}
	if out, err := m.compare(t.Context(), s.Administrator, "", "?dryRun=All"); err != nil ||
		!strings.Contains(out, "Would compare all types (dry run)") {
		t.Errorf("dry run: %v: %s", err, out)
	}
	comparedByOrdinaryUsers(t, m)
	comparedByTheClientset(t, m)
}

// comparedByOrdinaryUsers checks that permission to read a destination does not allow sync requests.
func comparedByOrdinaryUsers(t *testing.T, m *mirror) {
	user, err := m.User("carl", "developers")
	if err != nil {
		t.Fatal(err)
	}
	carl := m.Kubectl(user)
	grant := func(role, verb, resource string) {
		m.Run(t, "create", "role", role, "-n", m.Namespace, "--verb="+verb, "--resource="+resource)
		m.Run(t, "create", "rolebinding", role, "-n", m.Namespace, "--role="+role, "--user=carl")
	}
	grant("read", "get,list,watch", "gitdestinations.configbutler.ai,gitdestinationstatuses.configbutler.ai")
	mirrortest.Eventually(t, "carl can read the destination", func(ctx context.Context) error {
		_, err := carl.Run(ctx, "get", "gd", "main", "-n", m.Namespace)
		return err
	})
	if out, err := m.compare(t.Context(), carl, "", ""); err == nil || !strings.Contains(err.Error()+out, "gitdestinations/sync") {
		t.Errorf("sync request of carl: %v: %s", err, out)
	}
	grant("compare", "create", "gitdestinations.configbutler.ai/sync")
	mirrortest.Eventually(t, "carl can request a sync", func(ctx context.Context) error {
		_, err := m.compare(ctx, carl, "", "")
		return err
	})
}

func comparedByTheClientset(t *testing.T, m *mirror) {
	config, err := m.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var sync *v1alpha1.MirrorSync
	mirrortest.Eventually(t, "a sync is reported as complete", func(ctx context.Context) (err error) {
		sync, err = client.ConfigbutlerV1alpha1().GitDestinations(m.Namespace).Sync(ctx, "main", &v1alpha1.MirrorSync{}, metav1.CreateOptions{})
		if err == nil && (sync.Status.Found == nil || sync.Status.Found.CompletionTime == nil) {
			err = fmt.Errorf("status %+v", sync.Status)
		}
		return err
	})
	if found := sync.Status.Found; !sync.Status.Accepted || found == nil || found.CompletionTime == nil || found.Compared != 2 {
		t.Errorf("status %+v", sync.Status)
	}
	mirrortest.Eventually(t, "no request is pending", func(ctx context.Context) error {
		d, err := client.ConfigbutlerV1alpha1().GitDestinations(m.Namespace).Get(ctx, "main", metav1.GetOptions{})
		if err == nil && len(d.Status.PendingSyncs) > 0 {
			err = fmt.Errorf("pending: %+v", d.Status.PendingSyncs)
		}
		return err
	})
}
