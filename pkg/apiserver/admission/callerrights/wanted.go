// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/rights"
)

// wanted is what an object makes the server do.
type wanted struct {
	permissions []rights.Permission
	warnings    []string
}

// change is an object that is written, and what it was before, or nil.
type change struct{ obj, old runtime.Object }

// wantedBy asks nothing for kinds that make the server do nothing, and for changes that make it do nothing new.
func (p *Plugin) wantedBy(ctx context.Context, c change) (wanted, error) {
	switch o := c.obj.(type) {
	case *configbutler.GitRepoConfig:
		return p.wantedByRepository(ctx, o, c.old)
	case *configbutler.GitDestination:
		permissions, err := p.redirectedByDestination(ctx, o, c.old)
		return wanted{permissions: permissions}, err
	case *configbutler.WatchRule:
		before, ok := c.old.(*configbutler.WatchRule)
		if ok && equality.Semantic.DeepEqual(o.Spec, before.Spec) {
			return wanted{}, nil
		}
		return p.readByRule(o)
	case *configbutler.ClusterWatchRule:
		before, ok := c.old.(*configbutler.ClusterWatchRule)
		if ok && equality.Semantic.DeepEqual(o.Spec, before.Spec) {
			return wanted{}, nil
		}
		return p.readByClusterRule(o)
	case *configbutler.SyncPolicy:
		before, ok := c.old.(*configbutler.SyncPolicy)
		if ok && equality.Semantic.DeepEqual(o.Spec.Retention.Archive, before.Spec.Retention.Archive) {
			return wanted{}, nil
		}
		return archivedBy(o)
	case *configbutler.AppCatalog:
		before, ok := c.old.(*configbutler.AppCatalog)
		if ok && showsNoMore(&o.Spec, &before.Spec) {
			return wanted{}, nil
		}
		return shownBy(o)
	}
	return wanted{}, nil
}

// wantedByRepository are the Secrets that a repository names, and what it sends elsewhere. Any change of its spec needs the
// Secrets: a new URL alone would send their content elsewhere.
func (p *Plugin) wantedByRepository(ctx context.Context, o *configbutler.GitRepoConfig, old runtime.Object) (wanted, error) {
	before, ok := old.(*configbutler.GitRepoConfig)
	if ok && equality.Semantic.DeepEqual(o.Spec, before.Spec) {
		return wanted{}, nil
	}
	secrets, err := secretsOf(o)
	if err != nil {
		return wanted{}, err
	}
	redirected, err := p.redirectedByRepository(ctx, o, before)
	return wanted{permissions: append(secrets, redirected...)}, err
}
