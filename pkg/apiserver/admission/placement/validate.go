// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/access/placement"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// validateEnvironment rejects an environment that conflicts with existing objects. For an update, only added branch
// workloads are checked.
func (p *Plugin) validateEnvironment(ctx context.Context, obj, old *configbutler.Environment) error {
	taken := workloadsTaken(obj, old)
	if old != nil && taken.Len() == 0 {
		return nil
	}
	wanted := &v1alpha1.Environment{}
	if err := v1alpha1.Convert_configbutler_Environment_To_v1alpha1_Environment(obj, wanted, nil); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("converting Environment %s/%s: %w", obj.Namespace, obj.Name, err))
	}
	wanted.CreationTimestamp = metav1.Time{} // Stored objects take precedence, even those created in the same second.
	conflicts, err := p.conflicts(ctx, wanted)
	if err != nil {
		return unavailable(err)
	}
	var errs field.ErrorList
	for _, conflict := range conflicts {
		if old == nil || taken.Has(conflict.Field.String()) {
			errs = append(errs, field.Invalid(conflict.Field, conflict.Value, conflict.Message))
		}
	}
	return invalid("Environment", obj.Name, errs)
}

// workloadsTaken returns the field paths of added branchWorkloads.
func workloadsTaken(obj, old *configbutler.Environment) sets.Set[string] {
	taken := sets.New[string]()
	for i, workload := range obj.Spec.BranchWorkloads {
		if old == nil || !slices.Contains(old.Spec.BranchWorkloads, workload) {
			taken.Insert(field.NewPath("spec", "branchWorkloads").Index(i).String())
		}
	}
	return taken
}

// conflicts compares an environment with all existing objects.
func (p *Plugin) conflicts(ctx context.Context, wanted *v1alpha1.Environment) ([]placement.Conflict, error) {
	environments, err := p.objects.Environments(ctx)
	if err != nil {
		return nil, err
	}
	catalogs, err := p.objects.AppCatalogs(ctx)
	if err != nil {
		return nil, err
	}
	var failure error
	around := placement.Cluster{
		Own: p.own, Environments: pointers(environments), Catalogs: pointers(catalogs),
		Labels: func(namespace string) (labels.Set, bool) {
			found, err := p.cluster.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
			if err == nil {
				return found.Labels, true
			}
			if !apierrors.IsNotFound(err) {
				failure = fmt.Errorf("reading the namespace %s: %w", namespace, err)
			}
			return nil, false
		},
	}
	return around.Check(wanted), failure
}

// validateCatalog rejects a catalog whose source is the target of an environment.
func (p *Plugin) validateCatalog(ctx context.Context, obj *configbutler.AppCatalog) error {
	environments, err := p.objects.Environments(ctx)
	if err != nil {
		return unavailable(err)
	}
	around := placement.Cluster{Environments: pointers(environments)}
	source := obj.Spec.SourceNamespace
	builder := around.Builder(source)
	if builder == nil {
		return nil
	}
	return invalid("AppCatalog", obj.Name, field.ErrorList{field.Invalid(field.NewPath("spec", "sourceNamespace"), source,
		fmt.Sprintf("must not be the target of an environment: Environment %s/%s builds it", builder.Namespace, builder.Name))})
}

func invalid(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(configbutler.Kind(kind), name, errs)
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
