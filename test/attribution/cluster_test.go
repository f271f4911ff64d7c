// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// people is the group of the users. They have no permissions except for those of the role below.
const people = "people"

// rights are the roles of the users, and of carol's impersonator. They include the resource of kube-apiserver's reviews, as a
// careless administrator might grant it.
const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: people}
rules:
- {apiGroups: [""], resources: [configmaps, secrets, namespaces], verbs: ["*"]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: ["*"]}
- {apiGroups: [apps], resources: [deployments, deployments/scale], verbs: ["*"]}
- {apiGroups: [configbutler.ai], resources: [watchrules, gitdestinations, gitrepoconfigs, admissionreviews], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: people}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: people}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: people}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: speaks-for-carol}
rules:
- {apiGroups: [""], resources: [users], resourceNames: [carol], verbs: [impersonate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: speaks-for-carol}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: speaks-for-carol}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}
`

// testCluster is a cluster with three users.
type testCluster struct {
	*mirrortest.AdminCluster
	// admin is a client of the cluster administrator.
	admin             kubernetes.Interface
	alice, bob, carol *person
	// exact is true if facts are exact, so that every change must have an author.
	exact bool
}

func newTestCluster(t *testing.T, options devcluster.Options) *testCluster {
	t.Helper()
	s := &testCluster{AdminCluster: mirrortest.NewAdminCluster(t, options), exact: options.Audit}
	s.admin = mirrortest.Client(t, s.Admin())
	s.Apply(t, rights)
	s.alice, s.bob, s.carol = s.person(t, "alice"), s.person(t, "bob"), s.person(t, "carol")
	for _, p := range []*person{s.alice, s.bob, s.carol} {
		mirrortest.Eventually(t, p.name+" has rights", func(ctx context.Context) error {
			_, err := p.client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
			return err
		})
	}
	if options.Audit || options.Admission {
		s.waitForFacts(t)
	}
	return s
}

// waitForFacts waits until the server has received facts: before the first one, changes do not wait for facts.
func (s *testCluster) waitForFacts(t *testing.T) {
	t.Helper()
	m, probes := s.newMirror(t, "probes", "configmaps"), 0 // the number of changes
	mirrortest.Eventually(t, "the server receives facts", func(ctx context.Context) error {
		if err := m.set(ctx, s.alice, "probe", fmt.Sprint(probes+1)); err != nil {
			return err
		}
		probes++
		if c := m.changesOf(t, "v1/configmaps", "probe", probes)[probes-1]; c.hasNoAuthor() {
			return fmt.Errorf("%s", c)
		}
		return nil
	})
}

// person is an ordinary user.
type person struct {
	name    string
	kubectl devcluster.Kubectl
	client  kubernetes.Interface
}

func (s *testCluster) person(t *testing.T, name string) *person {
	t.Helper()
	user, err := s.User(name, people)
	if err != nil {
		t.Fatal(err)
	}
	return &person{name: name, kubectl: s.Kubectl(user), client: mirrortest.Client(t, user)}
}

// run runs kubectl as the user and fails the test if the command fails.
func (p *person) run(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := p.kubectl.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	return out
}

// fails runs kubectl as the user and fails the test unless the command fails with a message.
func (p *person) fails(t *testing.T, message string, arguments ...string) {
	t.Helper()
	out, err := p.kubectl.Run(t.Context(), arguments...)
	if err == nil || !strings.Contains(err.Error(), message) {
		t.Fatalf("%s: kubectl %s: %v, %s; want an error with %q", p.name, strings.Join(arguments, " "), err, out, message)
	}
}

// mirror is a namespace with one commit per change, and the actual authors of the changes.
type mirror struct {
	*testCluster
	*mirrortest.Mirror
	writeLog writeLog
	// unansweredBefore is the result of allUnansweredReviews when the mirror was made.
	unansweredBefore int
}

// newMirror creates a namespace with mirrored resources.
func (s *testCluster) newMirror(t *testing.T, namespace string, resources ...string) *mirror {
	t.Helper()
	m := &mirror{testCluster: s, Mirror: s.NewMirror(t, namespace, "granularity: PerChange", "secrets: AsIs")}
	m.Watch(t, "all", resources...)
	m.Settled(t)
	m.unansweredBefore = s.allUnansweredReviews(t)
	return m
}

// unansweredReviews returns how many changes kube-apiserver has made since the mirror was made without a response to their review, because
// it took longer than the webhook's timeout. That happens on a busy machine.
func (m *mirror) unansweredReviews(t *testing.T) int {
	t.Helper()
	return m.allUnansweredReviews(t) - m.unansweredBefore
}

// needsAuthors returns whether each change must name its author.
func (m *mirror) needsAuthors(t *testing.T) bool {
	t.Helper()
	return m.exact || m.unansweredReviews(t) == 0
}

// allUnansweredReviews returns how many changes kube-apiserver has made without a response to their review.
func (s *testCluster) allUnansweredReviews(t *testing.T) int {
	t.Helper()
	metrics, err := s.admin.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum, err := mirrortest.ReviewMetric(string(metrics), "fail_open_count")
	if err != nil {
		t.Fatal(err)
	}
	return int(sum)
}

// writeLog has the author of each resourceVersion, from the responses of the API server.
type writeLog struct {
	mutex  sync.Mutex
	writes map[string]string
}

// record records the author of a response. The first response with a resourceVersion is that of its author; later ones are of
// requests that changed nothing.
func (l *writeLog) record(by *person, object metav1.Object) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.writes == nil {
		l.writes = map[string]string{}
	}
	if version := object.GetResourceVersion(); l.writes[version] == "" {
		l.writes[version] = by.name
	}
}

// set sets the only value of a ConfigMap, creating it if necessary, and records the author.
func (m *mirror) set(ctx context.Context, by *person, name, value string) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: m.Namespace}, Data: map[string]string{"value": value}}
	configMaps := by.client.CoreV1().ConfigMaps(m.Namespace)
	written, err := configMaps.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		written, err = configMaps.Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("%s sets %s to %s: %w", by.name, name, value, err)
	}
	m.writeLog.record(by, written)
	return nil
}

// mustSet sets a value and fails the test if the request fails.
func (m *mirror) mustSet(t *testing.T, by *person, name, value string) {
	t.Helper()
	if err := m.set(t.Context(), by, name, value); err != nil {
		t.Fatal(err)
	}
}
