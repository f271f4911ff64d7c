// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// repairInterval is how often the Secrets of failing repositories are polled.
	repairInterval = 5 * time.Second
	// repairTimeout bounds one read of a Secret.
	repairTimeout = 5 * time.Second
)

// repairs retries a failing repository as soon as one of its Secrets has changed, instead of when its backoff ends, minutes later.
//
// It reads the Secrets by name, and only while a repository fails. That needs no permission beyond reading them, and no requests while
// nothing fails. A change before the first poll is left to the backoff, which is short then.
type repairs struct {
	// failing returns the configurations of the failing repositories.
	failing func() []*v1alpha1.GitRepoConfig
	// version returns the version of a Secret; empty if it does not exist.
	version func(context.Context, types.NamespacedName) (string, error)
	// retry ends the backoff of a repository.
	retry func(types.NamespacedName)
	// seen has the versions of the Secrets of each failing repository, by the name of the Secret.
	seen map[types.NamespacedName]map[string]string
}

// run polls until ctx ends.
func (r *repairs) run(ctx context.Context) {
	wait.UntilWithContext(ctx, r.poll, repairInterval)
}

// poll retries the repositories whose Secrets have changed since the last poll.
func (r *repairs) poll(ctx context.Context) {
	before := r.seen
	r.seen = map[types.NamespacedName]map[string]string{}
	for _, config := range r.failing() {
		name := nameOf(config)
		versions := r.versions(ctx, config, before[name])
		r.seen[name] = versions
		if known, ok := before[name]; ok && !maps.Equal(known, versions) {
			klog.FromContext(ctx).V(2).Info("Retrying repository because its Secrets have changed", "repository", name)
			r.retry(name)
		}
	}
}

// versions returns the versions of the Secrets that a configuration references. A Secret that cannot be read keeps its last version.
func (r *repairs) versions(ctx context.Context, config *v1alpha1.GitRepoConfig, before map[string]string) map[string]string {
	versions := map[string]string{}
	for _, name := range secretsOf(config) {
		bounded, cancel := context.WithTimeout(ctx, repairTimeout)
		version, err := r.version(bounded, types.NamespacedName{Namespace: config.Namespace, Name: name})
		cancel()
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Failed to read Secret of repository",
				"repository", nameOf(config), "secret", name, "reason", err.Error())
			version = before[name]
		}
		versions[name] = version
	}
	return versions
}

// secretsOf returns the names of the Secrets that a configuration references.
func secretsOf(config *v1alpha1.GitRepoConfig) (names []string) {
	if ref := config.Spec.SecretRef; ref != nil {
		names = append(names, ref.Name)
	}
	if ref := config.Spec.ProxySecretRef; ref != nil {
		names = append(names, ref.Name)
	}
	if host := config.Spec.Host; host != nil && host.SecretRef != nil {
		names = append(names, host.SecretRef.Name)
	}
	if commit := config.Spec.Commit; commit != nil && commit.Signing != nil {
		names = append(names, commit.Signing.SecretRef.Name)
	}
	return names
}

// secretVersions returns a function that reads the version of a Secret from its metadata: its UID and resourceVersion.
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
