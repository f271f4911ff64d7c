// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// requirements are the permissions that the caller must have for what an object makes the server do.
type requirements struct {
	permissions []access.Permission
	warnings    []string
	// refusal rejects the request regardless of permissions, nil if it depends on permissions alone.
	refusal error
}

// change is a written object with its previous version, which can be nil.
type change struct{ obj, old runtime.Object }

// requirementsOf returns the requirements of a request.
func (p *Plugin) requirementsOf(ctx context.Context, a admission.Attributes) (requirements, error) {
	if a.GetSubresource() != "" {
		return p.requirementsOfRequest(ctx, a)
	}
	changed, err := p.changeOf(a)
	if err != nil {
		return requirements{}, err
	}
	return p.requirementsOfChange(ctx, changed)
}

// requirementsOfRequest returns the permissions for a request at a subresource. It returns none if the object does not
// exist: executing the request reports that.
func (p *Plugin) requirementsOfRequest(ctx context.Context, a admission.Attributes) (requirements, error) {
	find := p.requirementsOfEnvironmentRequest
	if a.GetResource().Resource == "notificationsinks" {
		find = p.requirementsOfNotificationRequest
	}
	found, err := find(ctx, a)
	if apierrors.IsNotFound(err) {
		return requirements{}, nil
	}
	return found, err
}

// requirementsOfNotificationRequest returns the permissions for a test of a sink: the server sends with the Secret of the
// sink.
func (p *Plugin) requirementsOfNotificationRequest(ctx context.Context, a admission.Attributes) (requirements, error) {
	if a.GetSubresource() != "test" {
		return requirements{}, nil
	}
	sink, err := p.references.NotificationSink(ctx, a.GetNamespace(), a.GetName())
	if err != nil {
		return requirements{}, fmt.Errorf("reading the sink: %w", err)
	}
	return p.requirementsOfNotificationSink(sink), nil
}

// changeOf returns the change that a request makes.
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

// requirementsOfChange returns the requirements of a change. They are empty for other kinds, and for changes that make
// the server do nothing new.
func (p *Plugin) requirementsOfChange(ctx context.Context, c change) (requirements, error) {
	switch o := c.obj.(type) {
	case *v1alpha1.GitRepoConfig:
		return p.requirementsOfRepository(ctx, o, c.old)
	case *v1alpha1.GitDestination:
		permissions, err := p.redirectedByDestination(ctx, o, c.old)
		return requirements{permissions: permissions}, err
	case *v1alpha1.WatchRule:
		before, ok := c.old.(*v1alpha1.WatchRule)
		if ok && equality.Semantic.DeepEqual(o.Spec, before.Spec) {
			return requirements{}, nil
		}
		return p.requirementsOfRule(o), nil
	case *v1alpha1.ClusterWatchRule:
		before, ok := c.old.(*v1alpha1.ClusterWatchRule)
		if ok && equality.Semantic.DeepEqual(o.Spec, before.Spec) {
			return requirements{}, nil
		}
		return p.requirementsOfClusterRule(o), nil
	case *v1alpha1.SyncPolicy:
		before, ok := c.old.(*v1alpha1.SyncPolicy)
		if ok && equality.Semantic.DeepEqual(o.Spec.Retention.Archive, before.Spec.Retention.Archive) {
			return requirements{}, nil
		}
		return requirements{permissions: access.OfSyncPolicy(o)}, nil
	case *v1alpha1.AppCatalog:
		before, ok := c.old.(*v1alpha1.AppCatalog)
		if ok && access.CatalogShowsNoMore(&o.Spec, &before.Spec) {
			return requirements{}, nil
		}
		return requirements{permissions: access.OfCatalog(o)}, nil
	case *v1alpha1.Environment:
		return p.requirementsOfEnvironment(ctx, o, c.old)
	case *v1alpha1.SyncPipeline:
		return p.requirementsOfPipeline(o, c.old), nil
	case *v1alpha1.NotificationSink:
		before, ok := c.old.(*v1alpha1.NotificationSink)
		if ok && access.NotificationSendsNoMore(&o.Spec, &before.Spec) {
			return requirements{}, nil
		}
		return p.requirementsOfNotificationSink(o), nil
	}
	return requirements{}, nil
}

// requirementsOfRepository returns the Secrets of a repository, and what it redirects. Any change of the spec requires
// the Secrets: a new URL alone would send their content elsewhere.
func (p *Plugin) requirementsOfRepository(ctx context.Context, o *v1alpha1.GitRepoConfig, old runtime.Object) (requirements, error) {
	before, ok := old.(*v1alpha1.GitRepoConfig)
	if ok && equality.Semantic.DeepEqual(o.Spec, before.Spec) {
		return requirements{}, nil
	}
	redirected, err := p.redirectedByRepository(ctx, o, before)
	return requirements{permissions: append(access.OfRepository(o), redirected...)}, err
}

// requirementsOfRule returns what the server reads for a WatchRule.
func (p *Plugin) requirementsOfRule(rule *v1alpha1.WatchRule) requirements {
	permissions, warnings := access.OfRule(p.resolver, rule)
	return requirements{permissions: permissions, warnings: warnings}
}

// requirementsOfClusterRule returns what the server reads for a ClusterWatchRule.
func (p *Plugin) requirementsOfClusterRule(rule *v1alpha1.ClusterWatchRule) requirements {
	permissions, warnings := access.OfClusterRule(p.resolver, rule)
	return requirements{permissions: permissions, warnings: warnings}
}

// requirementsOfPipeline returns what a pipeline reads and what its sinks use. A change that sends more, or elsewhere,
// requires all of it: a new URL alone would send the previous author's objects and the Secret to another reader.
func (p *Plugin) requirementsOfPipeline(pipeline *v1alpha1.SyncPipeline, old runtime.Object) requirements {
	before, ok := old.(*v1alpha1.SyncPipeline)
	if ok && access.PipelineSendsNoMore(&pipeline.Spec, &before.Spec) {
		return requirements{}
	}
	permissions, warnings := access.OfPipeline(p.resolver, pipeline)
	return requirements{permissions: permissions, warnings: warnings}
}

// requirementsOfNotificationSink returns what a sink sends and what its receiver uses. As for a pipeline, a change that
// sends more, or elsewhere, requires all of it.
func (p *Plugin) requirementsOfNotificationSink(sink *v1alpha1.NotificationSink) requirements {
	return requirements{permissions: access.OfNotificationSink(sink, p.namespace)}
}
