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
	"github.com/configbutler/slipstream/test/mirrortest"
)

// people is the group of the users who change things. They are ordinary: RBAC lets them, and nothing else does.
const people = "people"

// rights are those of the people, and of carol whoever speaks for her. Somebody was careless with what is no resource, but
// the path of kube-apiserver's reviews.
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

// stage is a cluster that three people change.
type stage struct {
	*mirrortest.Stage
	// admin can do everything.
	admin             kubernetes.Interface
	alice, bob, carol *person
	// exact says that the control plane tells of every change exactly, so that no author may stay unknown.
	exact bool
}

func newStage(t *testing.T, options devcluster.Options) *stage {
	t.Helper()
	s := &stage{Stage: mirrortest.NewStage(t, options), exact: options.Audit}
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
		s.tells(t)
	}
	return s
}

// tells waits until the control plane tells who makes changes: before it has ever done so no change waits for that.
func (s *stage) tells(t *testing.T) {
	t.Helper()
	m, probes := s.newMirror(t, "probes", "configmaps"), 0
	mirrortest.Eventually(t, "the control plane tells", func(ctx context.Context) error {
		probes++
		if err := m.set(ctx, s.alice, "probe", fmt.Sprint(probes)); err != nil {
			return err
		}
		if c := m.changesOf(t, "v1/configmaps", "probe", probes)[probes-1]; c.nobody() {
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

func (s *stage) person(t *testing.T, name string) *person {
	t.Helper()
	user, err := s.User(name, people)
	if err != nil {
		t.Fatal(err)
	}
	return &person{name: name, kubectl: s.Kubectl(user), client: mirrortest.Client(t, user)}
}

// run runs kubectl as that person and fails the test if it fails.
func (p *person) run(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := p.kubectl.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	return out
}

// fails runs kubectl as that person and fails the test unless it fails and says why.
func (p *person) fails(t *testing.T, why string, arguments ...string) {
	t.Helper()
	out, err := p.kubectl.Run(t.Context(), arguments...)
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Fatalf("%s: kubectl %s: %v, %s; want a failure that says %q", p.name, strings.Join(arguments, " "), err, out, why)
	}
}

// mirror is a namespace whose every change becomes a commit, and what really happened in it.
type mirror struct {
	*stage
	*mirrortest.Mirror
	ledger ledger
}

// newMirror makes a namespace that mirrors resources.
func (s *stage) newMirror(t *testing.T, namespace string, resources ...string) *mirror {
	t.Helper()
	m := &mirror{stage: s, Mirror: s.NewMirror(t, namespace, "granularity: PerChange", "secrets: AsIs")}
	m.Watch(t, "all", resources...)
	m.Settled(t)
	return m
}

// ledger holds who made which resourceVersion, as the API server answered them.
type ledger struct {
	mutex  sync.Mutex
	writes map[string]string
}

// note writes down who was answered with an object. Who was answered with an object that was there already has not
// changed it.
func (l *ledger) note(by *person, object metav1.Object) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.writes == nil {
		l.writes = map[string]string{}
	}
	if version := object.GetResourceVersion(); l.writes[version] == "" {
		l.writes[version] = by.name
	}
}

// set sets the only value of a ConfigMap, which it makes if it is not there, and notes who did.
func (m *mirror) set(ctx context.Context, by *person, name, value string) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: m.Namespace}, Data: map[string]string{"value": value}}
	configMaps := by.client.CoreV1().ConfigMaps(m.Namespace)
	answer, err := configMaps.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		answer, err = configMaps.Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("%s sets %s to %s: %w", by.name, name, value, err)
	}
	m.ledger.note(by, answer)
	return nil
}

// mustSet sets a value that nobody may keep the person from setting.
func (m *mirror) mustSet(t *testing.T, by *person, name, value string) {
	t.Helper()
	if err := m.set(t.Context(), by, name, value); err != nil {
		t.Fatal(err)
	}
}
