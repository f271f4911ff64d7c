// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Kind is a kind whose objects users name in arguments.
type Kind struct {
	// Resource is the plural, Title what precedes a name in messages.
	Resource, Title string
	// aliases are accepted before a name, beside Resource and Title.
	aliases []string
	// ClusterScoped is true if the objects have no namespace.
	ClusterScoped bool
}

// Kinds that commands take.
var (
	Environment    = Kind{Resource: "environments", Title: "environment", aliases: []string{"envt", "env"}}
	AppCatalog     = Kind{Resource: "appcatalogs", Title: "catalog", aliases: []string{"appcatalog", "cat", "catalogs"}}
	GitDestination = Kind{Resource: "gitdestinations", Title: "gitdestination", aliases: []string{"gd", "destination", "destinations"}}
	SyncStatus     = Kind{Resource: "syncstatuses", Title: "syncstatus", aliases: []string{"ss", "record", "records"}}
	// GitDestinationStatus has the name of its GitDestination, which users name instead.
	GitDestinationStatus = Kind{Resource: "gitdestinationstatuses", Title: "gitdestinationstatus", aliases: []string{"gds"}}
	SyncPipeline         = Kind{
		Resource: "syncpipelines", Title: "syncpipeline", aliases: []string{"pipe", "pipeline", "pipelines"}, ClusterScoped: true,
	}
	NotificationSink = Kind{Resource: "notificationsinks", Title: "notificationsink", aliases: []string{"sink", "sinks"}}
)

// GroupVersionResource returns the resource of the kind.
func (k Kind) GroupVersionResource() schema.GroupVersionResource {
	return v1alpha1.SchemeGroupVersion.WithResource(k.Resource)
}

// Named returns an object as messages name it, such as environment/alice.
func (k Kind) Named(name string) string { return k.Title + "/" + name }

// ParseName parses NAME or TYPE/NAME. A name without a type is one of the first kind.
func ParseName(argument string, kinds ...Kind) (Kind, string, error) {
	word, name, typed := strings.Cut(argument, "/")
	if !typed {
		return kinds[0], argument, nil
	}
	kind, err := ParseKind(word, kinds...)
	if err != nil {
		return Kind{}, "", err
	}
	if name == "" {
		return Kind{}, "", fmt.Errorf("%s: the name is missing", argument)
	}
	return kind, name, nil
}

// ParseKind parses the name of a kind: in the singular or the plural, abbreviated, and with or without the API group.
func ParseKind(word string, kinds ...Kind) (Kind, error) {
	plain := strings.TrimSuffix(strings.ToLower(word), "."+v1alpha1.GroupName)
	for _, kind := range kinds {
		if plain == kind.Resource || plain == kind.Title || slices.Contains(kind.aliases, plain) {
			return kind, nil
		}
	}
	titles := make([]string, len(kinds))
	for i, kind := range kinds {
		titles[i] = kind.Title
	}
	return Kind{}, fmt.Errorf("%q is no type of this command: it takes %s", word, orList(titles))
}

// orList returns alternatives, as in environment, catalog or gitdestination.
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
