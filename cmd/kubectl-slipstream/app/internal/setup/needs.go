// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

// need returns an error if something is missing that objects need. What the user may not read is taken to exist.
type need func(ctx context.Context, client dynamic.Interface) error

// check checks the needs of the objects.
func (c *creator) check(ctx context.Context, client dynamic.Interface) error {
	for _, check := range c.needs {
		if err := check(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

// needsSecret requires the Secret that a flag names. keys are arguments of kubectl that set what it has to contain.
func needsSecret(flag, namespace, name, keys string) need {
	return func(ctx context.Context, client dynamic.Interface) error {
		_, err := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return exceptForbidden(err)
		}
		return fmt.Errorf("%s: there is no Secret %s in the namespace %s. Create it, and have an administrator allow the server to read it with "+
			"the chart's value credentials: {%s: [%s]}:\n  kubectl create secret generic %s -n %s %s",
			flag, name, namespace, namespace, name, cli.Quoted(name), cli.Quoted(namespace), keys)
	}
}

// needsNamespace requires the namespace that a flag names.
func needsNamespace(flag, name string) need {
	return func(ctx context.Context, client dynamic.Interface) error {
		namespaces := client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
		_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return exceptForbidden(err)
		}
		hint := cli.DidYouMean(name, cli.NamesIn(ctx, namespaces), "")
		if hint == "" {
			hint = "kubectl get namespaces lists those that exist"
		}
		return fmt.Errorf("%s: there is no namespace %s\n%s", flag, name, hint)
	}
}

// needsTypes requires that the cluster has the types of a flag. A type is not missed if not all types can be read.
func (c *creator) needsTypes(flag string, types []string) need {
	return func(context.Context, dynamic.Interface) error {
		if len(types) == 0 {
			return nil
		}
		served, err := cli.ServedTypes(c.config)
		for _, each := range types {
			if err != nil || strings.Contains(each, "*") || served.Has(each) {
				continue
			}
			hint := cli.DidYouMeanOneOf(served.Similar(each, cli.ServedType.Qualified))
			if hint == "" {
				hint = "kubectl api-resources lists those that exist"
			}
			return fmt.Errorf("%s: the cluster has no type %q: types are written in the plural, as in deployments.apps\n%s", flag, each, hint)
		}
		return nil
	}
}

// exceptForbidden returns an error unless it is a missing permission.
func exceptForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
