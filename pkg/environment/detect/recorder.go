// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

const (
	// concurrentEnvironments is the number of environments that are processed concurrently for a batch.
	concurrentEnvironments = 8
	// locks is the number of locks that environments share.
	locks = 64
)

// errDeleted means that an environment is deleted or being deleted, so nothing is recorded.
var errDeleted = errors.New("environment is deleted")

// recorder records changes for environments. All its operations are idempotent.
type recorder struct {
	api     typed.ConfigbutlerV1alpha1Interface
	records Records
	index   *index.Index
	clock   clock.PassiveClock
	authors Authors
	// environments locks an environment while its record and its EnvironmentDependencies are written. Between these writes,
	// the record seems to list objects that do not differ.
	environments keymutex.KeyMutex
}

func newRecorder(config Config, authors Authors) *recorder {
	return &recorder{
		api: config.Slipstream, records: config.Records, index: config.Index, clock: config.Clock, authors: authors,
		environments: keymutex.NewHashed(locks),
	}
}

// lock locks an environment until unlock is called.
func (k *recorder) lock(environment types.NamespacedName) (unlock func()) {
	k.environments.LockKey(environment.String())
	return func() { _ = k.environments.UnlockKey(environment.String()) } // Never fails.
}

// recordAll records a batch for each affected environment. An error for one does not affect the others.
func (k *recorder) recordAll(ctx context.Context, batch pending.Batch, found []finding) error {
	concerned := map[types.NamespacedName][]finding{}
	for _, f := range found {
		for _, c := range k.index.Lookup(f.of) {
			if c.Known() != f.version {
				concerned[c.Environment] = append(concerned[c.Environment], f)
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(concurrentEnvironments)
	var mu sync.Mutex
	var errs []error
	for environment, found := range concerned {
		group.Go(func() error {
			if err := k.recordEnvironment(ctx, environment, batch, found); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("environment %s: %w", environment, err))
			}
			return nil
		})
	}
	_ = group.Wait()
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return utilerrors.NewAggregate(errs)
}

// recordEnvironment records changes for one environment, in the order that the package comment gives.
func (k *recorder) recordEnvironment(ctx context.Context, name types.NamespacedName, batch pending.Batch, found []finding) error {
	defer k.lock(name)()
	environment, err := k.environment(ctx, name)
	var items []item
	if err == nil {
		items, err = k.items(ctx, environment, found)
	}
	if err == nil && len(items) > 0 {
		err = k.updateRecord(ctx, environment, batch, items)
	}
	for i := 0; err == nil && i < len(items); i++ {
		err = k.markSeen(ctx, environment, items[i])
	}
	if errors.Is(err, errDeleted) {
		return nil
	}
	return err
}

// environment reads an environment.
func (k *recorder) environment(ctx context.Context, name types.NamespacedName) (*v1alpha1.Environment, error) {
	environment, err := k.api.Environments(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && environment.DeletionTimestamp != nil:
		return nil, errDeleted
	case err != nil:
		return nil, fmt.Errorf("read environment: %w", err)
	}
	return environment, nil
}

// refresh reads an environment again.
func (k *recorder) refresh(ctx context.Context, environment *v1alpha1.Environment) (*v1alpha1.Environment, error) {
	now, err := k.environment(ctx, types.NamespacedName{Namespace: environment.Namespace, Name: environment.Name})
	if err == nil && now.UID != environment.UID {
		err = errDeleted
	}
	return now, err
}

// item is a change of an object that an environment has a copy of.
type item struct {
	finding
	// copied is the content of the EnvironmentDependency.
	copied index.Copy
	// since is when a run has last compared the copy with the source.
	since time.Time
}

// items returns the findings that differ from the current EnvironmentDependencies, sorted.
func (k *recorder) items(ctx context.Context, environment *v1alpha1.Environment, found []finding) ([]item, error) {
	var items []item
	for _, f := range found {
		dependency, err := k.dependency(ctx, environment, f.of)
		switch {
		case err != nil:
			return nil, err
		case dependency == nil:
			continue // The index is corrected by its next rebuild.
		}
		if copied := index.CopyOf(dependency); copied.Known() != f.version {
			items = append(items, item{f, copied, ptr.Deref(dependency.Status.LastDiscoveredAt, metav1.Time{}).Time})
		}
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.of.Type, b.of.Type), cmp.Compare(a.of.Namespace, b.of.Namespace), cmp.Compare(a.of.Name, b.of.Name))
	})
	return items, nil
}

// dependency reads the EnvironmentDependency of an object, nil if there is none.
func (k *recorder) dependency(
	ctx context.Context, environment *v1alpha1.Environment, of index.Object,
) (*v1alpha1.EnvironmentDependency, error) {
	name := v1alpha1.EnvironmentDependencyName(environment.Name, of.Type, of.Name)
	dependency, err := k.api.EnvironmentDependencies(environment.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && !metav1.IsControlledBy(dependency, environment):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read EnvironmentDependency %s: %w", name, err)
	}
	return dependency, nil
}

// markSeen sets the seenHash of an item, unless a run has copied this version meanwhile.
func (k *recorder) markSeen(ctx context.Context, environment *v1alpha1.Environment, seen item) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		dependency, err := k.dependency(ctx, environment, seen.of)
		if err != nil || dependency == nil {
			return err
		}
		before := dependency.Status.SeenHash
		if dependency.Status.SeenHash = seen.version; seen.version == index.CopyOf(dependency).Copied() {
			dependency.Status.SeenHash = ""
		}
		if dependency.Status.SeenHash != before {
			if err := k.write(ctx, dependency); err != nil {
				return err
			}
		}
		k.index.MarkSeen(seen.copied.Environment, seen.of, dependency.Status.SeenHash)
		return nil
	})
}

// write writes a record. It returns errDeleted if the namespace is terminating.
func (k *recorder) write(ctx context.Context, record runtime.Object) error {
	_, err := k.records.Write(ctx, record)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return errDeleted
	}
	if err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	return nil
}
