// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
	"github.com/configbutler/slipstream/pkg/mirror/internal/proposal"
	"github.com/configbutler/slipstream/pkg/mirror/internal/signature"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

const (
	// A failing branch is retried after retryMin, doubling up to retryMax, with a tenth of jitter.
	retryMin = time.Second
	retryMax = 5 * time.Minute
	// outageRetryMax replaces retryMax while the remote cannot be reached, or says that it cannot serve requests now, so that
	// changes are pushed within half a minute after an outage of any length. A remote that does not respond for minutes would
	// take a worker slot most of the time, and one that refuses requests may lock out a client that repeats them.
	outageRetryMax = 20 * time.Second
	// remotePatience is how long a remote may take for one request before it counts as unreachable. Without it a remote
	// that accepts a connection and sends nothing would block the branch and a worker slot forever.
	remotePatience = 2 * time.Minute
	// largeOperations bounds how many operations on remotes that need much memory run at the same time: users choose the
	// remotes, and each operation may take as much as --git-max-memory-mib.
	largeOperations = 2
	// pollInterval is how often a remote is polled without a trigger.
	pollInterval = time.Minute
)

// branchServices are the dependencies of workers. All workers share them.
type branchServices struct {
	outbox *outbox.Outbox
	pushes *pushLog
	// history records Changes; nil if they are not recorded.
	history History
	// memory has the files of branches.
	memory memory
	// marks reads the marks of objects.
	marks    marking
	lister   lister
	identity Identity
	limits   Limits
	// remote returns the remote of the branch with its current credentials.
	remote func(context.Context, branchKey) (*gitrepo.Remote, error)
	// signer returns the signer of commits with the current key; nil if they are not signed.
	signer func(context.Context, *v1alpha1.GitRepoConfig) (signature.Signer, error)
	// proposals stores the pull requests of destinations. host returns the client of a branch's Git host with its current credentials.
	proposals *proposal.Log
	host      func(context.Context, branchKey) (githost.Host, error)
	// proposalInterval is the shortest time between two updates of a pull request.
	proposalInterval time.Duration
	// hostPatience bounds the requests to a Git host in one cycle.
	hostPatience time.Duration
	// retry is the delay after the first error.
	retry time.Duration
	// pollInterval is how often the remote is polled without a trigger.
	pollInterval time.Duration
	// running reports whether every watch that a destination needs for a type has synced; starting reports whether one has
	// neither synced nor failed.
	running, starting func(*destinationPlan, schema.GroupVersionResource) bool
	namespaces        namespaceLookup
	// recheck requests a check of a GitRepoConfig whose condition may have changed.
	recheck func(types.NamespacedName)
	// names reports whether the spec of the destination with the name names a folder of a branch.
	names func(name types.NamespacedName, branch, folder string) bool
	// unserved returns the destinations that the worker of a branch may not serve, although pushes to the branch may have changes of
	// them. It may include some that the worker serves.
	unserved func(branchKey) []*destination
	// claimed records the ownership of a member's folder, which may change what is in force.
	claimed func(member, ownership)
	// author returns the author of a change that a comparison has found, if that is certain.
	author func(attribution.Event) attribution.Author
	// leases returns the Lease of a branch.
	leases func(branchKey) *branchLease
	// event records an Event of a destination: eventType is Normal or Warning.
	event func(destination *v1alpha1.GitDestination, eventType, reason, message string)
	// changed requests an update of conditions.
	changed func()
	slots   *slots
}

// lister lists the objects of a watch. It passes each the resourceVersion that it returns.
type lister interface {
	List(
		ctx context.Context, w watch.Watch, each func(object *unstructured.Unstructured, resourceVersion string) error,
	) (resourceVersion string, err error)
}
