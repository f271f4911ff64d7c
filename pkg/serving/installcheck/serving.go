// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package installcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// checkDiscovery checks that every kind is in discovery.
func (c *Checker) checkDiscovery(ctx context.Context) (string, error) {
	listed, err := c.listed(ctx)
	if err != nil {
		return "", err
	}
	want, err := stored()
	if err != nil {
		return "", err
	}
	for _, resource := range listed {
		want = slices.DeleteFunc(want, func(kind string) bool { return kind == resource.Kind })
	}
	if len(want) > 0 {
		return "", failure{
			fmt.Errorf("it lacks %s", strings.Join(want, ", ")),
			"the server and this check have different versions: run the check with the image of the server",
		}
	}
	return fmt.Sprintf("it has all %d kinds", len(listed)), nil
}

// checkObjects checks that the server reads what is stored and accepts kube-apiserver's users. It lists one object of
// each kind.
func (c *Checker) checkObjects(ctx context.Context) (string, error) {
	listed, err := c.listed(ctx)
	if err != nil {
		return "", err
	}
	for _, resource := range listed {
		of := v1alpha1.SchemeGroupVersion.WithResource(resource.Name)
		if _, err := c.Dynamic.Resource(of).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return "", failure{fmt.Errorf("listing %s: %w", resource.Name, err), c.notListed(err)}
		}
	}
	return fmt.Sprintf("the objects of all %d kinds can be listed", len(listed)), nil
}

func (c *Checker) notListed(err error) string {
	if apierrors.IsForbidden(err) {
		return "allow this account to list them, or check that the server's account is bound to the ClusterRole system:auth-delegator"
	}
	return "kubectl -n " + c.Namespace + " logs deploy/slipstream"
}

// checkControllers checks that a replica leads, without which nothing is written to Git.
func (c *Checker) checkControllers(ctx context.Context) (string, error) {
	next := fmt.Sprintf("kubectl -n %[1]s get lease %[2]s -o yaml; kubectl -n %[1]s logs deploy/slipstream", c.Namespace, c.Lease)
	lease, err := c.Dynamic.Resource(leases).Namespace(c.Namespace).Get(ctx, c.Lease, metav1.GetOptions{})
	if err != nil {
		return "", failure{fmt.Errorf("reading the Lease of the leader: %w", err), next}
	}
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	if holder == "" {
		return "", failure{errors.New("no replica leads"), next}
	}
	duration, _, _ := unstructured.NestedInt64(lease.Object, "spec", "leaseDurationSeconds")
	text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	renewed, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return "", failure{fmt.Errorf("reading when the leader renewed its Lease: %w", err), next}
	}
	// Allow for clock skew between nodes.
	if age := c.Clock.Since(renewed); age > 2*time.Duration(duration)*time.Second {
		return "", failure{fmt.Errorf("%s no longer leads: it renewed its Lease %s ago", holder, age.Round(time.Second)), next}
	}
	return holder + " leads", nil
}

// listed returns the resources of the API that support list.
func (c *Checker) listed(ctx context.Context) ([]metav1.APIResource, error) {
	all, err := c.Discovery.ServerResourcesForGroupVersionWithContext(ctx, v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		return nil, failure{fmt.Errorf("reading the served resources: %w", err), "kubectl -n " + c.Namespace + " logs deploy/slipstream"}
	}
	return slices.DeleteFunc(slices.Clone(all.APIResources), func(resource metav1.APIResource) bool {
		return !slices.Contains(resource.Verbs, "list")
	}), nil
}

// stored returns the kinds that have lists.
func stored() ([]string, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("listing the known kinds: %w", err)
	}
	types := scheme.KnownTypes(v1alpha1.SchemeGroupVersion)
	var kinds []string
	for kind := range types {
		if _, found := types[kind+"List"]; found {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds, nil
}
