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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/flowcontrol"
)

var (
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

// targetNamespace looks for the namespace of the target, and creates it.
type targetNamespace struct {
	target Target
	// client is that of namespaces, and accounts that of the ServiceAccounts in the namespace.
	client, accounts dynamic.ResourceInterface
	limiter          flowcontrol.RateLimiter
	sender           *sender
	outcome          *outcome
}

// task returns the task that creates the namespace.
func (n *targetNamespace) task() *task {
	return &task{
		Step: Step{Verb: Create, Apply: n.target.Creation}, index: -1, resource: namespaces, client: n.client,
		object: n.object(),
	}
}

func (n *targetNamespace) object() Object {
	return Object{GroupKind: schema.GroupKind{Kind: "Namespace"}, Name: n.target.Namespace}
}

func (n *targetNamespace) refusal() Refusal {
	sentence := "does not exist"
	if n.target.NotCreated != "" {
		sentence += ", and " + n.target.NotCreated
	}
	return Refusal{Object: n.object(), Message: sentence, step: -1}
}

// exists reports whether the namespace exists.
func (n *targetNamespace) exists(ctx context.Context) (bool, error) {
	if err := n.limiter.Wait(ctx); err != nil {
		return false, err
	}
	_, err := n.client.Get(ctx, n.target.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for namespace %s: %w", n.target.Namespace, err)
	}
	return true, nil
}

// ensure creates the namespace for tasks if it is missing and the target allows it.
func (n *targetNamespace) ensure(ctx context.Context, tasks []*task) error {
	there, err := n.exists(ctx)
	if err != nil || there {
		return err
	}
	if n.target.Creation == nil {
		n.outcome.refuse(n.refusal())
		return nil
	}
	if n.outcome.report.NamespaceCreated, err = n.create(ctx, false); err != nil || !n.outcome.report.IsClean() {
		return err
	}
	if !slices.ContainsFunc(tasks, (*task).hasPodTemplate) {
		return nil
	}
	return n.waitForServiceAccount(ctx)
}

// serviceAccountTimeout limits the wait for the default ServiceAccount of a new namespace, which a controller creates. Pods
// cannot be dry-run without it.
const serviceAccountTimeout = 10 * time.Second

// waitForServiceAccount waits for the default ServiceAccount. After the timeout, Pods are not dry-run.
func (n *targetNamespace) waitForServiceAccount(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, serviceAccountTimeout/100, serviceAccountTimeout, true, func(ctx context.Context) (bool, error) {
		if err := n.limiter.Wait(ctx); err != nil {
			return false, err
		}
		_, err := n.accounts.Get(ctx, "default", metav1.GetOptions{})
		return !apierrors.IsNotFound(err), nil
	})
	if ctx.Err() != nil {
		return err
	}
	return nil
}

// create creates the namespace, unless another client has created it concurrently.
func (n *targetNamespace) create(ctx context.Context, dry bool) (bool, error) {
	t := n.task()
	_, err := n.sender.applyTo(ctx, t, dry)
	if isConflict(err) {
		return false, nil
	}
	if err := n.outcome.record(t, err); err != nil {
		return false, fmt.Errorf("create namespace %s: %w", n.target.Namespace, err)
	}
	return err == nil && !dry, nil
}
