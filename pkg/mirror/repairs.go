// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// repairInterval is how often the Secrets of repositories that fail are looked at.
	repairInterval = 5 * time.Second
	// repairTimeout bounds one look at a Secret.
	repairTimeout = 5 * time.Second
)

// repairs lets a repository that fails be tried again as soon as a Secret that it names is another, and not only when
// its backoff ends, minutes later. It asks for the Secrets by name, while something fails and only then: that takes no
// right which reading them does not take, and nothing where all is well. A change that comes before the first look is
// one for the backoff, which is short then.
type repairs struct {
	// failing returns the configurations of the repositories that fail.
	failing func() []*v1alpha1.GitRepoConfig
	// version is different for a Secret that is another; empty when there is none.
	version func(context.Context, types.NamespacedName) (string, error)
	// retry lets a repository be tried again now.
	retry func(types.NamespacedName)
	// seen are the versions of the Secrets of each repository that fails, by name.
	seen map[types.NamespacedName]map[string]string
}

// run looks until ctx ends.
func (r *repairs) run(ctx context.Context) {
	wait.UntilWithContext(ctx, r.look, repairInterval)
}

// look tries again what has got other Secrets since the last look.
func (r *repairs) look(ctx context.Context) {
	before := r.seen
	r.seen = map[types.NamespacedName]map[string]string{}
	for _, config := range r.failing() {
		name := nameOf(config)
		versions := r.versions(ctx, config, before[name])
		r.seen[name] = versions
		if known, ok := before[name]; ok && !maps.Equal(known, versions) {
			klog.FromContext(ctx).V(2).Info("Repository is tried again because its Secrets have changed", "repository", name)
			r.retry(name)
		}
	}
}

// versions returns those of the Secrets that a configuration names. One that cannot be read is as it was before.
func (r *repairs) versions(ctx context.Context, config *v1alpha1.GitRepoConfig, before map[string]string) map[string]string {
	versions := map[string]string{}
	for _, name := range secretsOf(config) {
		bounded, cancel := context.WithTimeout(ctx, repairTimeout)
		version, err := r.version(bounded, types.NamespacedName{Namespace: config.Namespace, Name: name})
		cancel()
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Secret of a repository cannot be looked at", "repository", nameOf(config), "secret", name, "reason", err.Error())
			version = before[name]
		}
		versions[name] = version
	}
	return versions
}

// secretsOf returns the names of the Secrets that a configuration names.
func secretsOf(config *v1alpha1.GitRepoConfig) (names []string) {
	if ref := config.Spec.SecretRef; ref != nil {
		names = append(names, ref.Name)
	}
	if commit := config.Spec.Commit; commit != nil && commit.Signing != nil {
		names = append(names, commit.Signing.SecretRef.Name)
	}
	return names
}

// secretVersions asks a cluster for the metadata of Secrets, by which one is told from the next.
func secretVersions(client metadata.Interface) func(context.Context, types.NamespacedName) (string, error) {
	secrets := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets"))
	return func(ctx context.Context, name types.NamespacedName) (string, error) {
		secret, err := secrets.Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", wrap("read the metadata of the Secret", err)
		}
		return string(secret.UID) + "/" + secret.ResourceVersion, nil
	}
}

// failingRepositories returns the configurations whose checks or branches fail.
func (m *mirror) failingRepositories() []*v1alpha1.GitRepoConfig {
	configs, err := m.informers.Configbutler().V1alpha1().GitRepoConfigs().Lister().List(labels.Everything())
	if err != nil {
		return nil // a lister of an informer has no errors
	}
	branches := m.failingBranches()
	return slices.DeleteFunc(configs, func(config *v1alpha1.GitRepoConfig) bool {
		return !branches[nameOf(config)] && m.checks.queue.NumRequeues(nameOf(config)) == 0
	})
}

// failingBranches returns the repositories of which a branch cannot be served.
func (m *mirror) failingBranches() map[types.NamespacedName]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	failing := map[types.NamespacedName]bool{}
	for key, running := range m.workers {
		if running.failing.Load() {
			failing[key.repository] = true
		}
	}
	return failing
}

// retryRepository lets a repository be checked, and its branches tried, again now.
func (m *mirror) retryRepository(name types.NamespacedName) {
	m.checks.queue.Forget(name)
	m.checks.queue.Add(name)
	m.retryBranches(name)
}
