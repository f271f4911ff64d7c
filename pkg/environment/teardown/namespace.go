// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/apierror"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// maxReasons limits the reported reasons for keeping a namespace.
const maxReasons = 3

// maxDiscoveryWait is how long after the deletion of an environment its namespace waits for types that cannot be discovered. An API that is
// being restarted, as that of this server may be, is back sooner. One that is down for longer must not block the deletion.
const maxDiscoveryWait = 10 * time.Minute

// deleteNamespace deletes a target that the environment has created, unless it contains other objects.
func (r *Remover) deleteNamespace(ctx context.Context, e *v1alpha1.Environment, target *metav1.PartialObjectMetadata) ([]string, error) {
	types, unknown, err := r.types(ctx)
	if err != nil {
		return nil, err
	}
	others, err := r.foreignObjects(ctx, target.Name, types)
	if err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		why := "the types of " + summary.List(unknown) + " cannot be discovered; check the APIService"
		if len(others) == 0 && r.waitsForDiscovery(e) {
			return []string{"Namespace " + target.Name + " is not deleted yet: " + why}, nil
		}
		others = append(others, why)
	}
	if len(others) > 0 {
		r.reportKept(e, others)
		return nil, nil
	}
	if err := r.Limiter.Wait(ctx); err != nil {
		return nil, err
	}
	err = r.Client.Resource(namespaces).Delete(ctx, target.Name, preconditions(target, metav1.DeletePropagationBackground))
	switch {
	case err == nil, apierror.IsAbsent(err):
		return nil, nil
	case apierrors.IsConflict(err):
		return []string{"Namespace " + target.Name + " is not deleted yet"}, nil
	}
	return nil, fmt.Errorf("delete namespace %s: %w", target.Name, err)
}

// waitsForDiscovery reports whether types that cannot be discovered may still become known in time.
func (r *Remover) waitsForDiscovery(e *v1alpha1.Environment) bool {
	return e.DeletionTimestamp == nil || r.Clock.Since(e.DeletionTimestamp.Time) < maxDiscoveryWait
}

func (r *Remover) reportKept(e *v1alpha1.Environment, others []string) {
	if r.Kept == nil {
		return
	}
	slices.Sort(others)
	if more := len(others) - maxReasons; more > 0 {
		others = append(others[:maxReasons], fmt.Sprintf("and %d more", more))
	}
	r.Kept(e, fmt.Sprintf("Namespace %s stays: %s", e.Spec.TargetNamespace, strings.Join(others, "; ")))
}
