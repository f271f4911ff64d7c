// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
)

// ServedType is a type that the cluster serves.
type ServedType struct {
	schema.GroupResource
	// Singular and short are the other names that kubectl takes for it.
	Singular string
	short    []string
}

// Qualified returns the plural with the group, such as deployments.apps.
func (t ServedType) Qualified() string { return t.GroupResource.String() }

// TypeList are the types that the cluster serves.
type TypeList []ServedType

// ServedTypes returns the types that the cluster serves. With an error they are those that could be read.
func ServedTypes(config genericclioptions.RESTClientGetter) (TypeList, error) {
	client, err := config.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	lists, err := discovery.ServerPreferredResources(client)
	var types TypeList
	for _, list := range lists {
		version, parsed := schema.ParseGroupVersion(list.GroupVersion)
		if parsed != nil {
			continue // No such type can be named.
		}
		for i := range list.APIResources {
			of := &list.APIResources[i]
			singular := of.SingularName
			if singular == "" {
				singular = strings.ToLower(of.Kind)
			}
			types = append(types, ServedType{version.WithResource(of.Name).GroupResource(), singular, of.ShortNames})
		}
	}
	return types, err
}

// Has reports whether the cluster serves a type, which is written as a plural, or as a plural with its group after a dot.
func (l TypeList) Has(name string) bool {
	return slices.ContainsFunc(l, func(t ServedType) bool { return name == t.Resource || name == t.Qualified() })
}

// Similar returns types that may be meant by a name, spelled by a function, the most similar first.
func (l TypeList) Similar(wrong string, spell func(ServedType) string) []string {
	plain, _, _ := strings.Cut(strings.ToLower(wrong), ".")
	var exact, names []string
	spelled := map[string]string{}
	for _, t := range l {
		if plain == t.Resource || plain == t.Singular || slices.Contains(t.short, plain) {
			exact = append(exact, spell(t))
		}
		for _, name := range append([]string{t.Resource, t.Singular}, t.short...) {
			if len(name) > 2 && spelled[name] == "" { // Shorter ones are similar to too much.
				names, spelled[name] = append(names, name), spell(t)
			}
		}
	}
	if len(exact) > 0 {
		return slices.Compact(exact)[:1]
	}
	var found []string
	for _, name := range similar(plain, names) {
		if !slices.Contains(found, spelled[name]) {
			found = append(found, spelled[name])
		}
	}
	return found
}
