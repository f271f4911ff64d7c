// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/bench/bare"
	"github.com/configbutler/slipstream/test/bench/configmaps"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

const (
	// deadline is the timeout of all waits, with a margin for a busy machine and a million objects.
	deadline = 30 * time.Minute
	// stateInterval is the interval at which the state of the server is polled.
	stateInterval = 50 * time.Millisecond

	baseFolder = "clusters/bench"
	// namespace is the namespace of the destinations and rules.
	namespace = "mirrors"
)

// testCluster is a cluster with the server.
type testCluster struct {
	*devcluster.Cluster
	core       kubernetes.Interface
	slipstream versioned.Interface
}

func newTestCluster(b *testing.B, options devcluster.Options) *testCluster {
	b.Helper()
	options.Server = true
	return testClusterOf(b, clustertest.Start(b, options))
}

func testClusterOf(b *testing.B, cluster *devcluster.Cluster) *testCluster {
	b.Helper()
	s := &testCluster{Cluster: cluster}
	config, err := s.Admin().RESTConfig()
	if err != nil {
		b.Fatal(err)
	}
	if s.core, err = kubernetes.NewForConfig(config); err != nil {
		b.Fatal(err)
	}
	if s.slipstream, err = versioned.NewForConfig(config); err != nil {
		b.Fatal(err)
	}
	configmaps.CreateNamespace(b, s.core, namespace, nil)
	return s
}

// stop stops the server, and start starts it again.
func (s *testCluster) stop(b *testing.B) {
	b.Helper()
	if err := s.StopServer(b.Context(), syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
}

func (s *testCluster) start(b *testing.B) {
	b.Helper()
	if err := s.StartServer(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// mirror is a repository, a destination on its main branch and a rule that selects the
// objects of the population of one type. All have the same name.
type mirror struct {
	*testCluster
	name string
	// resource is the type of the objects.
	resource string
	// repository is the folder of the bare repository.
	repository string
}

// newMirror creates a mirror of ConfigMaps.
func (s *testCluster) newMirror(b *testing.B, name string) *mirror {
	b.Helper()
	return s.newMirrorOf(b, name, "configmaps", v1alpha1.SecretsOmit)
}

// newMirrorOf creates the repository and the destination. Objects are mirrored after watch.
func (s *testCluster) newMirrorOf(b *testing.B, name, resource string, secrets v1alpha1.SecretsPolicy) *mirror {
	b.Helper()
	m := &mirror{testCluster: s, name: name, resource: resource, repository: filepath.Join(s.Env(devcluster.EnvGitRoot), name+".git")}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	api := s.slipstream.ConfigbutlerV1alpha1()
	_, err := api.GitRepoConfigs(namespace).Create(b.Context(), &v1alpha1.GitRepoConfig{ObjectMeta: meta, Spec: v1alpha1.GitRepoConfigSpec{
		RepoURL: m.url(), AllowedBranches: []string{bare.Branch}, AccessPolicy: &v1alpha1.AccessPolicy{AllowClusterRules: true},
	}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	_, err = api.GitDestinations(namespace).Create(b.Context(), &v1alpha1.GitDestination{ObjectMeta: meta, Spec: v1alpha1.GitDestinationSpec{
		RepoRef: v1alpha1.ObjectReference{Name: name}, Branch: bare.Branch, BaseFolder: baseFolder, Secrets: secrets,
		AccessPolicy: &v1alpha1.AccessPolicy{AllowClusterRules: true},
	}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	m.reaches(b, "No rule refers to it")
	return m
}

// url returns the URL of the repository.
func (m *mirror) url() string { return m.Env(devcluster.EnvGitURL) + "/" + m.name + ".git" }

// watch creates the rule.
func (m *mirror) watch(b *testing.B) {
	b.Helper()
	rule := &v1alpha1.ClusterWatchRule{
		ObjectMeta: metav1.ObjectMeta{Name: m.name},
		Spec: v1alpha1.ClusterWatchRuleSpec{
			DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: namespace, Name: m.name},
			Rules: []v1alpha1.ClusterResourceRule{{
				ResourceRule: v1alpha1.ResourceRule{Name: m.resource, Resources: []string{m.resource}},
				Scope:        v1alpha1.ScopeNamespaced, NamespaceSelector: &metav1.LabelSelector{MatchLabels: configmaps.Namespaces()},
			}},
		},
	}
	_, err := m.slipstream.ConfigbutlerV1alpha1().ClusterWatchRules().Create(b.Context(), rule, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
}

// remove deletes the objects that newMirror and watch created, but not the content of the repository.
func (m *mirror) remove(b *testing.B) {
	b.Helper()
	api := m.slipstream.ConfigbutlerV1alpha1()
	// The destination is deleted first: without its rule, it would remove its files.
	for _, err := range []error{
		api.GitDestinations(namespace).Delete(b.Context(), m.name, metav1.DeleteOptions{}),
		api.ClusterWatchRules().Delete(b.Context(), m.name, metav1.DeleteOptions{}),
		api.GitRepoConfigs(namespace).Delete(b.Context(), m.name, metav1.DeleteOptions{}),
	} {
		if err != nil {
			b.Fatal(err)
		}
	}
}

// record returns the status of the destination.
func (m *mirror) record(ctx context.Context) (v1alpha1.GitDestinationRecord, error) {
	status, err := m.slipstream.ConfigbutlerV1alpha1().GitDestinationStatuses(namespace).Get(ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return v1alpha1.GitDestinationRecord{}, err
	}
	return status.Status, nil
}

// reaches waits until the destination is in a state.
func (m *mirror) reaches(b *testing.B, state string) {
	b.Helper()
	eventually(b, "the destination is: "+state, stateInterval, func(ctx context.Context) error {
		record, err := m.record(ctx)
		if err == nil && record.State != state {
			err = fmt.Errorf("state %q", record.State)
		}
		return err
	})
}

// restarted restarts the server with its data and waits until it has compared all objects
// with the branch again.
func (m *mirror) restarted(b *testing.B) {
	b.Helper()
	before, err := m.record(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	m.stop(b)
	m.start(b)
	m.compared(b, before.LastSeedTime)
}

// compared waits for a comparison that is later than the given time.
func (m *mirror) compared(b *testing.B, before *metav1.Time) {
	b.Helper()
	eventually(b, "everything is compared", stateInterval, m.isCompared(before))
}

// isCompared returns a check of whether there was a comparison that is later than the given time.
func (m *mirror) isCompared(before *metav1.Time) func(context.Context) error {
	return func(ctx context.Context) error {
		record, err := m.record(ctx)
		switch {
		case err != nil:
			return err
		case record.LastSeedTime.Equal(before):
			return fmt.Errorf("last compared %v", before)
		case record.State != "Up to date":
			return fmt.Errorf("state %q", record.State)
		}
		return nil
	}
}

// eventually waits until check succeeds.
func eventually(b *testing.B, what string, interval time.Duration, check func(ctx context.Context) error) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), interval, deadline, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		b.Fatalf("%s: %v (last: %v)", what, err, last)
	}
}

// pause waits without sending requests.
func pause(b *testing.B, length time.Duration) {
	b.Helper()
	select {
	case <-time.After(length):
	case <-b.Context().Done():
		b.Fatal(context.Cause(b.Context()))
	}
}
