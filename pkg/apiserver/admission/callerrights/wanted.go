// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// wanted is what an object makes the server do.
type wanted struct {
	permissions []access.Permission
	warnings    []string
	// refusal is why nobody may have it done now, nil if it depends on permissions alone.
	refusal error
}

// change is an object that is written, and what it was before, or nil.
type change struct{ obj, old runtime.Object }

// wantedBy is what a request makes the server do.
func (p *Plugin) wantedBy(ctx context.Context, a admission.Attributes) (wanted, error) {
	if a.GetSubresource() != "" {
		return p.wantedByRequest(ctx, a)
	}
	changed, err := p.changeOf(a)
	if err != nil {
		return wanted{}, err
	}
	return p.wantedByChange(ctx, changed)
}

// changeOf is what a request changes.
func (p *Plugin) changeOf(a admission.Attributes) (c change, err error) {
	if c.obj, err = p.kinds.ConvertToVersion(a.GetObject(), v1alpha1.SchemeGroupVersion); err != nil {
		return c, fmt.Errorf("converting what is written: %w", err)
	}
	if old := a.GetOldObject(); old != nil {
		if c.old, err = p.kinds.ConvertToVersion(old, v1alpha1.SchemeGroupVersion); err != nil {
			return c, fmt.Errorf("converting what it was: %w", err)
		}
	}
	return c, nil
}

// wantedByChange asks nothing for kinds that make the server do nothing, and for changes that make it do nothing new.
func (p *Plugin) wantedByChange(ctx context.Context, c change) (wanted, error) {
	switch o := c.obj.(type) {
	case *v1alpha1.GitRepoConfig:
		return p.wantedByRepository(ctx, o, c.old)
	case *v1alpha1.GitDestination:
		permissions, err := p.redirectedByDestination(ctx, o, c.old)
		return wanted{permissions: permissions}, err
	case *v1alpha1.WatchRule:
		before, ok := c.old.(*v1alpha1.WatchRule)
		if ok && equality.Semantic.DeepEqual(o.Spec, before.Spec) {
			return wanted{}, nil
		}
		return p.readByRule(o), nil
	case *v1alpha1.ClusterWatchRule:
		before, ok := c.old.(*v1alpha1.ClusterWatchRule)
		if ok && equality.Semantic.DeepEqual(o.Spec, before.Spec) {
			return wanted{}, nil
		}
		return p.readByClusterRule(o), nil
	case *v1alpha1.SyncPolicy:
		before, ok := c.old.(*v1alpha1.SyncPolicy)
		if ok && equality.Semantic.DeepEqual(o.Spec.Retention.Archive, before.Spec.Retention.Archive) {
			return wanted{}, nil
		}
		return wanted{permissions: access.OfPolicy(o)}, nil
	case *v1alpha1.AppCatalog:
		before, ok := c.old.(*v1alpha1.AppCatalog)
		if ok && access.CatalogShowsNoMore(&o.Spec, &before.Spec) {
			return wanted{}, nil
		}
		return wanted{permissions: access.OfCatalog(o)}, nil
	case *v1alpha1.Environment:
		return p.wantedByEnvironment(ctx, o, c.old)
	case *v1alpha1.SyncPipeline:
		return p.wantedByPipeline(o, c.old), nil
	}
	return wanted{}, nil
}

// wantedByRepository are the Secrets that a repository names, and what it sends elsewhere. Any change of its spec needs the
// Secrets: a new URL alone would send their content elsewhere.
func (p *Plugin) wantedByRepository(ctx context.Context, o *v1alpha1.GitRepoConfig, old runtime.Object) (wanted, error) {
	before, ok := old.(*v1alpha1.GitRepoConfig)
	if ok && equality.Semantic.DeepEqual(o.Spec, before.Spec) {
		return wanted{}, nil
	}
	redirected, err := p.redirectedByRepository(ctx, o, before)
	return wanted{permissions: append(access.OfRepository(o), redirected...)}, err
}

// readByRule is what the server reads for a rule.
func (p *Plugin) readByRule(rule *v1alpha1.WatchRule) wanted {
	permissions, warnings := access.OfRule(p.resolver, rule)
	return wanted{permissions: permissions, warnings: warnings}
}

// readByClusterRule is what the server reads for a rule of the cluster.
func (p *Plugin) readByClusterRule(rule *v1alpha1.ClusterWatchRule) wanted {
	permissions, warnings := access.OfClusterRule(p.resolver, rule)
	return wanted{permissions: permissions, warnings: warnings}
}

// wantedByPipeline is what a pipeline reads, and what its sinks use. All of it is needed for whatever makes it send more, or elsewhere:
// a new URL alone would send what somebody else chose, and the Secret, to another reader.
func (p *Plugin) wantedByPipeline(pipeline *v1alpha1.SyncPipeline, old runtime.Object) wanted {
	before, ok := old.(*v1alpha1.SyncPipeline)
	if ok && access.PipelineSendsNoMore(&pipeline.Spec, &before.Spec) {
		return wanted{}
	}
	permissions, warnings := access.OfPipeline(p.resolver, pipeline)
	return wanted{permissions: permissions, warnings: warnings}
}
