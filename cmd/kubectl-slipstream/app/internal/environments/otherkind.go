// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/kube/apierror"
)

// namedKinds are the kinds among which an object of a name is looked for.
var namedKinds = []cli.Kind{cli.Environment, cli.AppCatalog, cli.GitDestination, cli.SyncPipeline, cli.NotificationSink}

// ofOtherKind adds to the error about an object that does not exist what to do for the one of another kind that has the name.
func (s *setting) ofOtherKind(ctx context.Context, of cli.Kind, name string, err error) error {
	if !apierror.IsAbsent(err) {
		return err
	}
	for _, kind := range namedKinds {
		if kind.Resource == of.Resource {
			continue
		}
		objects, problem := s.objects(kind)
		if problem != nil {
			return err
		}
		object, problem := objects.Get(ctx, name, metav1.GetOptions{})
		if problem != nil {
			continue // There is none, or the user may not read it.
		}
		if hint := s.instead(kind, object); hint != "" {
			return cli.Hinted(err, hint)
		}
	}
	return err
}

// instead returns what to do for an object of another kind, empty if there is nothing.
func (s *setting) instead(kind cli.Kind, object *unstructured.Unstructured) string {
	name := object.GetName()
	switch {
	case slices.ContainsFunc(s.kinds, func(k cli.Kind) bool { return k.Resource == kind.Resource }):
		return fmt.Sprintf("There is a %s of this name: give it as %s", kind.Title, cli.Quoted(kind.Named(name)))
	case s.ofCatalogs == "":
		return ""
	case kind.Resource == cli.AppCatalog.Resource:
		return fmt.Sprintf("There is a catalog of this name: kubectl slipstream %s %s%s", s.ofCatalogs, cli.Quoted(name), s.InNamespace(kind))
	case kind.Resource == cli.Environment.Resource:
		catalog, _, _ := unstructured.NestedString(object.Object, "spec", "catalogRef", "name")
		namespace, _, _ := unstructured.NestedString(object.Object, "spec", "catalogRef", "namespace")
		if namespace == "" {
			namespace = s.Namespace
		}
		return fmt.Sprintf("There is an environment of this name. Its catalog, for all its environments: kubectl slipstream %s %s -n %s",
			s.ofCatalogs, cli.Quoted(catalog), cli.Quoted(namespace))
	}
	return fmt.Sprintf("There is a %s of this name: kubectl slipstream %s %s%s", kind.Title, s.ofOthers, cli.Quoted(kind.Named(name)), s.InNamespace(kind))
}
