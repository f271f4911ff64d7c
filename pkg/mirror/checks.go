// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	listers "github.com/configbutler/slipstream/pkg/generated/listers/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/fairshare"
)

const (
	// A repository is checked again after checkInterval, or, if its check has failed, after checkRetry, doubling up to checkInterval.
	checkInterval = 5 * time.Minute
	checkRetry    = 2 * time.Second
	// checkTimeout bounds one check of a remote.
	checkTimeout = 30 * time.Second
	// checksAtOnce is how many repositories are checked concurrently.
	checksAtOnce = 4
)

// checks sets the condition Ready of GitRepoConfigs by checking their remotes.
type checks struct {
	client       versioned.Interface
	configs      listers.GitRepoConfigLister
	announcer    *events.Announcer
	repositories *repositories
	registry     *registry
	queue        workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// slots bounds the concurrent checks. Namespaces share it fairly: one with many slow repositories must not delay the others.
	slots *fairshare.Slots
}

func newChecks(shared *controller.Shared, announcer *events.Announcer, repositories *repositories, registry *registry) *checks {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](checkRetry, checkInterval)
	return &checks{
		client: shared.Client, configs: shared.Informers.Configbutler().V1alpha1().GitRepoConfigs().Lister(), announcer: announcer,
		repositories: repositories, registry: registry, queue: workqueue.NewTypedRateLimitingQueue(limiter), slots: fairshare.New(checksAtOnce),
	}
}

// follow enqueues a repository when it is created or its spec has changed.
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
			if specChanged(before, after) {
				add(after)
			}
		},
	})
	return wrap("follow the GitRepoConfigs", err)
}

// run processes the queue until ctx ends.
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

// next checks one repository once its namespace has a slot, and schedules the next check.
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
		klog.FromContext(ctx).Error(err, "Failed to check GitRepoConfig", "repository", name)
		c.queue.AddRateLimited(name)
	case !ready:
		c.queue.AddRateLimited(name)
	default:
		c.queue.Forget(name)
		c.queue.AddAfter(name, checkInterval)
	}
}

// check checks the remote and writes the result to the status. It returns an error only if the API of this server failed; NotFound means
// that the GitRepoConfig does not exist.
func (c *checks) check(ctx context.Context, name types.NamespacedName) (ready bool, err error) {
	config, err := c.configs.GitRepoConfigs(name.Namespace).Get(name.Name)
	if err != nil {
		return false, fmt.Errorf("read the configuration: %w", err)
	}
	note, err := c.checkRemote(ctx, config)
	problem := reasonOf(err, v1alpha1.ReasonRepositoryUnreachable)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if problem.IsZero() {
		problem = c.registry.rejection(name)
	}
	changed := false
	client := c.client.ConfigbutlerV1alpha1().GitRepoConfigs(name.Namespace)
	err = writeStatus(ctx, c.announcer, client, config, conditionsOfRepository, func(object *v1alpha1.GitRepoConfig) bool {
		changed = updateRepositoryStatus(object, config.Generation, problem, note)
		return changed
	})
	if err != nil {
		return false, fmt.Errorf("write the status: %w", err)
	}
	if changed && problem.IsZero() {
		c.registry.retryBranches(name)
	}
	return problem.IsZero(), nil
}

// checkRemote returns why the remote cannot be used with the current Secrets of a GitRepoConfig. If it can, note is what the user should
// know of it.
func (c *checks) checkRemote(ctx context.Context, config *v1alpha1.GitRepoConfig) (note string, err error) {
	remote, err := c.repositories.remote(ctx, config)
	if err != nil {
		return "", err
	}
	defer remote.Close()
	remote.Limits.Time = checkTimeout
	if _, err := c.repositories.signer(ctx, config); err != nil {
		return "", err
	}
	if err := remote.Check(ctx); err != nil {
		return "", err
	}
	return redirectNote(remote.Redirect()) + certificateNote(remote.Credentials), nil
}

// certificateNote returns when the SSH certificate of credentials ends, empty if there is none or it never does.
func certificateNote(credentials gitrepo.Credentials) string {
	if credentials.SSHCertificate == nil {
		return ""
	}
	end, err := gitrepo.SSHCertificateEnd(credentials.SSHCertificate)
	if err != nil || end.IsZero() {
		return ""
	}
	return "; the SSH certificate is valid until " + end.UTC().Format(time.RFC3339)
}

// failing returns the configurations whose checks or branches fail.
func (c *checks) failing() []*v1alpha1.GitRepoConfig {
	configs, err := c.configs.List(labels.Everything())
	if err != nil {
		return nil // Listing from an informer does not fail.
	}
	branches := c.registry.failingBranches()
	return slices.DeleteFunc(configs, func(config *v1alpha1.GitRepoConfig) bool {
		return !branches[nameOf(config)] && c.queue.NumRequeues(nameOf(config)) == 0
	})
}

// retry checks a repository now and ends the backoff of its branches.
func (c *checks) retry(name types.NamespacedName) {
	c.queue.Forget(name)
	c.queue.Add(name)
	c.registry.retryBranches(name)
}
