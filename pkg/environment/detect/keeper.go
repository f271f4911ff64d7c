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
	// environmentsAtOnce is how many environments are told of one batch at once.
	environmentsAtOnce = 8
	// locks is how many environments can be looked at at once, if none has to wait for another of the same lock.
	locks = 64
)

// errGone says that an environment is gone or going: nobody waits to be told.
var errGone = errors.New("the environment is gone")

// keeper tells environments. What it is asked for it can be asked for again, also after it has done a part.
type keeper struct {
	api     typed.ConfigbutlerV1alpha1Interface
	records Records
	index   *index.Index
	clock   clock.PassiveClock
	authors Authors
	// environments are locked while they are told: between the record and what is known of the copies, the record would be taken
	// to name what does not differ.
	environments keymutex.KeyMutex
}

func newKeeper(config Config, authors Authors) *keeper {
	return &keeper{
		api: config.Slipstream, records: config.Records, index: config.Index, clock: config.Clock, authors: authors,
		environments: keymutex.NewHashed(locks),
	}
}

// lock keeps others from an environment until unlock is called.
func (k *keeper) lock(environment types.NamespacedName) (unlock func()) {
	k.environments.LockKey(environment.String())
	return func() { _ = k.environments.UnlockKey(environment.String()) } // Never fails.
}

// recordAll tells each environment of what it has copies of. Those that cannot be told do not keep the others from it.
func (k *keeper) recordAll(ctx context.Context, batch pending.Batch, found []finding) error {
	concerned := map[types.NamespacedName][]finding{}
	for _, f := range found {
		for _, c := range k.index.Lookup(f.of) {
			if c.Known() != f.version {
				concerned[c.Environment] = append(concerned[c.Environment], f)
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(environmentsAtOnce)
	var mu sync.Mutex
	var errs []error
	for environment, found := range concerned {
		group.Go(func() error {
			if err := k.record(ctx, environment, batch, found); err != nil {
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

// record tells one environment, in the order that the package's comment gives.
func (k *keeper) record(ctx context.Context, name types.NamespacedName, batch pending.Batch, found []finding) error {
	defer k.lock(name)()
	environment, err := k.environment(ctx, name)
	var told []item
	if err == nil {
		told, err = k.items(ctx, environment, found)
	}
	if err == nil && len(told) > 0 {
		err = k.tell(ctx, environment, batch, told)
	}
	for i := 0; err == nil && i < len(told); i++ {
		err = k.see(ctx, environment, told[i])
	}
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// environment returns one as it is now.
func (k *keeper) environment(ctx context.Context, name types.NamespacedName) (*v1alpha1.Environment, error) {
	environment, err := k.api.Environments(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && environment.DeletionTimestamp != nil:
		return nil, errGone
	case err != nil:
		return nil, fmt.Errorf("read it: %w", err)
	}
	return environment, nil
}

// again returns an environment as it is now.
func (k *keeper) again(ctx context.Context, environment *v1alpha1.Environment) (*v1alpha1.Environment, error) {
	now, err := k.environment(ctx, types.NamespacedName{Namespace: environment.Namespace, Name: environment.Name})
	if err == nil && now.UID != environment.UID {
		err = errGone
	}
	return now, err
}

// item is news of a copy.
type item struct {
	finding
	// copied is what the EnvironmentDependency says.
	copied index.Copy
	// since is when a run has last compared the copy with the source.
	since time.Time
}

// items are what differs from the records as they are now, in order.
func (k *keeper) items(ctx context.Context, environment *v1alpha1.Environment, found []finding) ([]item, error) {
	var items []item
	for _, f := range found {
		dependency, err := k.dependency(ctx, environment, f.of)
		switch {
		case err != nil:
			return nil, err
		case dependency == nil:
			continue // The index is put right when it is made anew.
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

// dependency returns the record of a copy as it is now; nil if there is none.
func (k *keeper) dependency(
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

// see notes the version of an item as the newest that has been told of, unless a run has copied it meanwhile.
func (k *keeper) see(ctx context.Context, environment *v1alpha1.Environment, told item) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		dependency, err := k.dependency(ctx, environment, told.of)
		if err != nil || dependency == nil {
			return err
		}
		before := dependency.Status.SeenHash
		if dependency.Status.SeenHash = told.version; told.version == index.CopyOf(dependency).Copied() {
			dependency.Status.SeenHash = ""
		}
		if dependency.Status.SeenHash != before {
			if err := k.write(ctx, dependency); err != nil {
				return err
			}
		}
		k.index.See(told.copied.Environment, told.of, dependency.Status.SeenHash)
		return nil
	})
}

// write writes a record, unless its namespace is going.
func (k *keeper) write(ctx context.Context, record runtime.Object) error {
	err := k.records.Write(ctx, record)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	return nil
}
