// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

const (
	// keptChanges is the number of Changes that streams show, the newest ones.
	keptChanges = 200
	// refusedPause is the time after which a list that the user may not read is tried again, lostPause after another error.
	refusedPause, lostPause = time.Minute, 5 * time.Second
)

// streamed are the resources that streams show. clusterScoped are those without a namespace.
var (
	streamed      = []string{"environments", "appcatalogs", "gitdestinations", "gitdestinationstatuses", "syncpipelines", "changes"}
	clusterScoped = []string{"syncpipelines", "clusterwatchrules", "syncpolicies"}
)

// feed lists and watches the resources that streams show, once for all of them.
type feed struct {
	cluster *cluster
	hub     *hub
	// namespace is the one that is shown, empty for all.
	namespace string
	// refusedPause and lostPause are the constants of the same name, and shorter in tests.
	refusedPause, lostPause time.Duration
}

// newFeed returns what updates a hub with the objects of a namespace, or of all.
func newFeed(of *cluster, h *hub, namespace string) *feed {
	return &feed{cluster: of, hub: h, namespace: namespace, refusedPause: refusedPause, lostPause: lostPause}
}

// run updates the hub until ctx ends.
func (f *feed) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, resource := range streamed {
		all.Go(func() { f.follow(ctx, f.selection(resource)) })
	}
	all.Wait()
}

func (f *feed) selection(resource string) cli.Selection {
	of := cli.Selection{Resource: resource, Namespace: f.namespace}
	if slices.Contains(clusterScoped, resource) {
		of.Namespace = ""
	}
	if resource == "changes" {
		of.Newest = keptChanges
	}
	return of
}

// follow updates the hub with a resource until ctx ends.
func (f *feed) follow(ctx context.Context, of cli.Selection) {
	for ctx.Err() == nil {
		err := f.once(ctx, of)
		if ctx.Err() != nil {
			return
		}
		pause := f.lostPause
		if apierrors.IsForbidden(err) {
			pause = f.refusedPause
			f.hub.refuse(of.Resource, f.cluster.sentence(ctx, err))
		} else {
			f.lose(ctx, of.Resource, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// once lists a resource and follows it until the server refuses that.
func (f *feed) once(ctx context.Context, of cli.Selection) error {
	page, err := f.cluster.tables.List(ctx, of)
	if err != nil {
		return err
	}
	f.hub.list(of.Resource, page.Columns, page.Rows)
	return f.cluster.tables.Follow(ctx, of, page.Version, cli.TableHandler{
		Update: f.hub.apply,
		Lost:   func(err error) { f.lose(ctx, of.Resource, err) },
	})
}

// lose keeps the rows of a resource, which may be old now.
func (f *feed) lose(ctx context.Context, resource string, err error) {
	f.hub.lose(resource, f.cluster.sentence(ctx, err))
	if apierrors.IsUnauthorized(err) && f.cluster.loggedOut != nil {
		f.cluster.loggedOut()
	}
}
