// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/restmapper"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// objectRef is an object, or the type of some objects, that a user names.
type objectRef struct {
	// resource is empty if neither is named.
	resource schema.GroupResource
	name     string
	// clusterScoped is set for a type whose objects have no namespace.
	clusterScoped bool
	// unserved is set for a type that the cluster does not serve, so that it is not known whether its objects have a namespace.
	unserved bool
}

// String returns the object as kubectl writes it, such as deployments.apps/web.
func (o objectRef) String() string { return o.resource.String() + "/" + o.name }

// objectArgument parses TYPE, TYPE/NAME or TYPE NAME.
func objectArgument(config genericclioptions.RESTClientGetter, args []string) (of objectRef, err error) {
	if len(args) == 0 {
		return of, nil
	}
	kind, name, named := strings.Cut(args[0], "/")
	if len(args) > 1 {
		if named {
			return of, fmt.Errorf("%s %s: write TYPE/NAME or TYPE NAME", args[0], args[1])
		}
		name, named = args[1], true
	}
	if named && name == "" {
		return of, fmt.Errorf("%s: the name is missing", args[0])
	}
	mapper, err := config.ToRESTMapper()
	if err != nil {
		return of, err
	}
	discovery, err := config.ToDiscoveryClient()
	if err != nil {
		return of, err
	}
	expander := restmapper.NewShortcutExpander(mapper, discovery, nil)
	resource, err := resourceFor(expander, kind)
	if err != nil {
		return of, unknownType(config, args, err)
	}
	found, err := expander.KindFor(resource)
	if err != nil {
		return of, unknownType(config, args, err)
	}
	mapping, err := expander.RESTMapping(found.GroupKind(), found.Version)
	if err != nil {
		return of, unknownType(config, args, err)
	}
	return objectRef{resource: resource.GroupResource(), name: name, clusterScoped: mapping.Scope.Name() == meta.RESTScopeNameRoot}, nil
}

// unknownTypeError is the error for a type that the cluster does not have.
type unknownTypeError struct {
	error
	text string
}

// Error returns the text in place of that of the error.
func (e *unknownTypeError) Error() string { return e.text }

// Unwrap returns the error.
func (e *unknownTypeError) Unwrap() error { return e.error }

// unknownType returns the error for the type of an argument that could not be found: the cluster does not have it, or could not be asked.
func unknownType(config genericclioptions.RESTClientGetter, args []string, err error) error {
	kind, name, named := strings.Cut(args[0], "/")
	if !meta.IsNoMatchError(err) {
		return fmt.Errorf("look for the type %s in the cluster: %w", kind, err)
	}
	text := kind + " is not a type of the cluster"
	if !named && len(args) == 1 {
		text += ". Write an object as TYPE/NAME, such as deployment/" + kind
	}
	types, _ := cli.ServedTypes(config) // Those that can be read are suggested.
	similar := types.Similar(kind, func(t cli.ServedType) string {
		if named {
			return t.Singular + "/" + name
		}
		return t.Singular
	})
	if hint := cli.DidYouMeanOneOf(similar); hint != "" {
		text += "\n" + hint
	}
	return &unknownTypeError{err, text}
}

// resourceFor returns the type that a user names. After a dot is its group, or as with kubectl its version and group.
func resourceFor(mapper meta.RESTMapper, name string) (schema.GroupVersionResource, error) {
	versioned, resource := schema.ParseResourceArg(name)
	if versioned != nil {
		if found, err := mapper.ResourceFor(*versioned); err == nil {
			return found, nil
		}
	}
	return mapper.ResourceFor(resource.WithVersion(""))
}

// changes returns the field selector for the changes of the object, with further terms by field.
func (o objectRef) changes(terms map[string]string) string {
	selected := fields.Set{v1alpha1.ChangeObjectResourceField: o.resource.Resource, v1alpha1.ChangeObjectNameField: o.name}
	maps.Copy(selected, terms)
	var selectors []fields.Selector
	for _, field := range slices.Sorted(maps.Keys(selected)) {
		if selected[field] != "" {
			selectors = append(selectors, fields.OneTermEqualSelector(field, selected[field]))
		}
	}
	return fields.AndSelectors(selectors...).String()
}

// includes reports whether a change is of the type. A field selector does not have the group.
func (o objectRef) includes(change *v1alpha1.Change) bool {
	version, err := schema.ParseGroupVersion(change.Spec.Object.APIVersion)
	return o.resource.Resource == "" || err == nil && version.Group == o.resource.Group
}
