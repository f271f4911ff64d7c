// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

var (
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

// namespaceTask returns the task that creates the namespace.
func (r *run) namespaceTask() *task {
	return &task{
		Step: Step{Verb: Create, Apply: r.target.Creation}, index: -1, resource: namespaces, client: r.Client.Resource(namespaces),
		object: r.namespaceObject(),
	}
}

func (r *run) namespaceObject() Object {
	return Object{GroupKind: schema.GroupKind{Kind: "Namespace"}, Name: r.target.Namespace}
}

func (r *run) namespaceRefusal() Refusal {
	sentence := "does not exist"
	if r.target.NotCreated != "" {
		sentence += ", and " + r.target.NotCreated
	}
	return Refusal{Object: r.namespaceObject(), Message: sentence, step: -1}
}

func (r *run) hasNamespace(ctx context.Context) (bool, error) {
	if err := r.Limiter.Wait(ctx); err != nil {
		return false, err
	}
	_, err := r.Client.Resource(namespaces).Get(ctx, r.target.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for namespace %s: %w", r.target.Namespace, err)
	}
	return true, nil
}

// ensureNamespace creates the namespace if it is missing and the target allows it.
func (r *run) ensureNamespace(ctx context.Context) error {
	there, err := r.hasNamespace(ctx)
	if err != nil || there {
		return err
	}
	if r.target.Creation == nil {
		r.refuse(r.namespaceRefusal())
		return nil
	}
	if r.report.NamespaceCreated, err = r.createNamespace(ctx, false); err != nil || !r.report.IsClean() {
		return err
	}
	return r.waitForServiceAccount(ctx)
}

// serviceAccountTimeout limits the wait for the default ServiceAccount of a new namespace, which a controller creates. Pods
// cannot be dry-run without it.
const serviceAccountTimeout = 10 * time.Second

// waitForServiceAccount waits for the default ServiceAccount if Pods are to be dry-run. After the timeout, they are not.
func (r *run) waitForServiceAccount(ctx context.Context) error {
	if !slices.ContainsFunc(r.tasks, func(t *task) bool { return podTemplatePaths[t.object.GroupKind] != nil }) {
		return nil
	}
	accounts := r.Client.Resource(serviceAccounts).Namespace(r.target.Namespace)
	err := wait.PollUntilContextTimeout(ctx, serviceAccountTimeout/100, serviceAccountTimeout, true, func(ctx context.Context) (bool, error) {
		if err := r.Limiter.Wait(ctx); err != nil {
			return false, err
		}
		_, err := accounts.Get(ctx, "default", metav1.GetOptions{})
		return !apierrors.IsNotFound(err), nil
	})
	if ctx.Err() != nil {
		return err
	}
	return nil
}

// createNamespace creates the namespace, unless another client has created it concurrently.
func (r *run) createNamespace(ctx context.Context, dry bool) (bool, error) {
	t := r.namespaceTask()
	_, err := r.applyTo(ctx, t, dry)
	if isConflict(err) {
		return false, nil
	}
	if err := r.record(t, err); err != nil {
		return false, fmt.Errorf("create namespace %s: %w", r.target.Namespace, err)
	}
	return err == nil && !dry, nil
}
