// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/internal/fairshare"
)

const (
	// A repository that answers is asked again after checkInterval, one that does not
	// after checkRetry, doubling up to checkInterval.
	checkInterval = 5 * time.Minute
	checkRetry    = 2 * time.Second
	// checkTimeout is how long a remote may take for one check.
	checkTimeout = 30 * time.Second
	// checksAtOnce is how many repositories are asked at once.
	checksAtOnce = 4
)

// checks keeps the condition Ready of GitRepoConfigs true to what their remotes answer.
type checks struct {
	mirror *mirror
	queue  workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// slots are shared by namespaces, so that one with many slow repositories does not delay the checks of others.
	slots *fairshare.Slots
}

func newChecks(m *mirror) *checks {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](checkRetry, checkInterval)
	return &checks{mirror: m, queue: workqueue.NewTypedRateLimitingQueue(limiter), slots: fairshare.New(checksAtOnce)}
}

// follow checks a repository when it is new or its spec has changed.
func (c *checks) follow(informer cache.SharedIndexInformer) error {
	add := func(object any) {
		if config, ok := object.(metav1.Object); ok {
			c.queue.Forget(nameOf(config))
			c.queue.Add(nameOf(config))
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add,
		UpdateFunc: func(before, after any) {
			if meaningful(before, after) {
				add(after)
			}
		},
	})
	return wrap("follow the GitRepoConfigs", err)
}

// run checks until ctx ends.
func (c *checks) run(ctx context.Context) {
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	var group wait.Group
	defer group.Wait()
	for {
		name, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		group.Start(func() { c.next(ctx, name) })
	}
}

// next checks one repository, when it is its namespace's turn.
func (c *checks) next(ctx context.Context, name types.NamespacedName) {
	defer c.queue.Done(name)
	release, err := c.slots.Acquire(ctx, name.Namespace)
	if err != nil {
		return
	}
	defer release()
	ready, err := c.check(ctx, name)
	switch {
	case ctx.Err() != nil:
	case apierrors.IsNotFound(err):
		c.queue.Forget(name)
	case err != nil:
		klog.FromContext(ctx).Error(err, "GitRepoConfig cannot be checked", "repository", name)
		c.queue.AddRateLimited(name)
	case !ready:
		c.queue.AddRateLimited(name)
	default:
		c.queue.Forget(name)
		c.queue.AddAfter(name, checkInterval)
	}
}

// check asks the remote and writes what it says. An error is one of this server's API;
// NotFound says that the configuration is gone.
func (c *checks) check(ctx context.Context, name types.NamespacedName) (ready bool, err error) {
	config, err := c.mirror.informers.Configbutler().V1alpha1().GitRepoConfigs().Lister().GitRepoConfigs(name.Namespace).Get(name.Name)
	if err != nil {
		return false, fmt.Errorf("read the configuration: %w", err)
	}
	v := verdictOf(c.ask(ctx, config), v1alpha1.ReasonRepositoryUnreachable)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if v.ok() {
		v = c.mirror.rejection(name)
	}
	changed := false
	client := c.mirror.shared.Client.ConfigbutlerV1alpha1().GitRepoConfigs(name.Namespace)
	err = writeStatus(ctx, c.mirror.announcer, client, config, conditionsOfRepository, func(object *v1alpha1.GitRepoConfig) bool {
		changed = repositoryStatus(object, config.Generation, v)
		return changed
	})
	if err != nil {
		return false, fmt.Errorf("write the status: %w", err)
	}
	if changed && v.ok() {
		c.mirror.retryBranches(name)
	}
	return v.ok(), nil
}

// repositoryStatus brings the status of a repository to what is found of a generation of it, and says whether that is new.
func repositoryStatus(object *v1alpha1.GitRepoConfig, generation int64, v verdict) bool {
	before := object.Status
	object.Status.ObservedGeneration = generation
	object.Status.Conditions = slices.Clone(before.Conditions)
	set := conditionsFor(&object.Status.Conditions, generation)
	set.ready(v, "The repository can be read, and the server offers to take pushes")
	set.settle()
	return !equality.Semantic.DeepEqual(before, object.Status)
}

func (c *checks) ask(ctx context.Context, config *v1alpha1.GitRepoConfig) error {
	remote, err := c.mirror.repositories.remote(ctx, config)
	if err != nil {
		return err
	}
	defer remote.Close()
	remote.Limits.Time = checkTimeout
	if _, err := c.mirror.repositories.signer(ctx, config); err != nil {
		return err
	}
	return remote.Check(ctx)
}

// rejection says which branches of a repository the remote does not let be written.
func (m *mirror) rejection(repository types.NamespacedName) verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	var reasons []string
	for key, running := range m.workers {
		if reason := running.rejection.Load(); key.repository == repository && reason != nil {
			reasons = append(reasons, *reason)
		}
	}
	if len(reasons) == 0 {
		return verdict{}
	}
	slices.Sort(reasons)
	return verdict{v1alpha1.ReasonPushRejected, strings.Join(reasons, "; ")}
}

// retryBranches lets the branches of a repository that has become reachable try again now.
func (m *mirror) retryBranches(repository types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, running := range m.workers {
		if key.repository == repository {
			signal(running.reset)
		}
	}
}
