// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Location identifies an object in the API and thereby the path of its file below a base folder. The group is empty for
// the core group, the namespace for a cluster-scoped object.
type Location struct {
	Group, Version, Resource, Namespace, Name string
}

// LocationOf returns the location of an object of the given resource type.
func LocationOf(resource schema.GroupVersionResource, obj *unstructured.Unstructured) Location {
	return Location{
		Group:     resource.Group,
		Version:   resource.Version,
		Resource:  resource.Resource,
		Namespace: obj.GetNamespace(),
		Name:      obj.GetName(),
	}
}

// Folder returns the folder of the object: the location without the name.
func (l Location) Folder() Folder {
	return Folder{Group: l.Group, Version: l.Version, Resource: l.Resource, Namespace: l.Namespace}
}

// Path returns the object's path relative to a base folder:
//
//	{group|core}/{version}/{resource}/[{namespace}/]{name}.yaml
//
// Two locations never share a path, not even where case is ignored. Path fails on parts that the API would not accept
// either: a name that is empty, "." or "..", or holds a slash; a group, version, resource or namespace that is no DNS
// name; a version that does not begin with "v" and a digit.
func (l Location) Path() (string, error) {
	folder, err := l.Folder().Path()
	if err != nil {
		return "", err
	}
	file, err := fileName(l.Name)
	if err != nil {
		return "", fmt.Errorf("placing an object of %s: %w", folder, err)
	}
	return path.Join(folder, file), nil
}

// Folder identifies the objects of one type in one namespace: a Location without the name.
type Folder struct {
	Group, Version, Resource, Namespace string
}

// GroupVersionResource returns the type of the objects in the folder.
func (f Folder) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: f.Group, Version: f.Version, Resource: f.Resource}
}

// coreFolder is the folder of the core group, whose name is empty. No group of custom resources collides with it: their
// names have a dot.
const coreFolder = "core"

const (
	// longestLabel and longestSubdomain are the API's limits for a DNS label and a DNS subdomain.
	longestLabel     = 63
	longestSubdomain = 253
)

func (f Folder) validate() error {
	switch {
	case f.Group == coreFolder, f.Group != "" && !isSubdomain(f.Group):
		return fmt.Errorf("%q is no name of an API group", f.Group)
	case !isVersion(f.Version):
		return fmt.Errorf("%q is no API version that begins with v and a digit", f.Version)
	case !isPlural(f.Resource):
		return fmt.Errorf("%q is no plural name of an API resource", f.Resource)
	case f.Namespace != "" && !isLabel(f.Namespace):
		return fmt.Errorf("%q is no name of a namespace", f.Namespace)
	}
	return nil
}

// isSubdomain reports whether a name consists of DNS words separated by dots.
func isSubdomain(name string) bool {
	for word := range strings.SplitSeq(name, ".") {
		if !isWord(word) {
			return false
		}
	}
	return len(name) <= longestSubdomain
}

func isLabel(name string) bool {
	return len(name) <= longestLabel && isWord(name)
}

func isVersion(name string) bool {
	return isLabel(name) && len(name) >= len("v1") && name[0] == 'v' && isDigit(name[1])
}

func isPlural(name string) bool {
	return isLabel(name) && !isDigit(name[0])
}

// isWord reports whether a name consists of lower-case letters, digits, and dashes in between.
func isWord(name string) bool {
	for i := range len(name) {
		switch char := name[i]; {
		case isDigit(char), char >= 'a' && char <= 'z':
		case char == '-' && i > 0 && i < len(name)-1:
		default:
			return false
		}
	}
	return name != ""
}

func isDigit(char byte) bool {
	return char >= '0' && char <= '9'
}

// Path returns the folder's path relative to a base folder. It fails on the same parts as Location.Path. Without a
// namespace it is the folder of all objects of the type.
func (f Folder) Path() (string, error) {
	if err := f.validate(); err != nil {
		return "", err
	}
	group := f.Group
	if group == "" {
		group = coreFolder
	}
	segments := []string{escapeName(group), f.Version, escapeName(f.Resource)}
	if f.Namespace != "" {
		segments = append(segments, escapeName(f.Namespace))
	}
	return strings.Join(segments, "/"), nil
}

// ManagedPath reports whether Location.Path returns the given path, which is relative to a base folder, and returns its
// folder. A similar path, such as one with an upper-case letter and no hash, is not managed.
func ManagedPath(relative string) (Folder, bool) {
	segments := strings.Split(relative, "/")
	const clusterScoped, namespaced = 4, 5
	if len(segments) != clusterScoped && len(segments) != namespaced {
		return Folder{}, false
	}
	last := len(segments) - 1
	var names [namespaced]string
	for i, segment := range segments[:last] {
		name, ok := unescapeName(segment)
		if !ok || name == "" {
			return Folder{}, false
		}
		names[i] = name
	}
	folder := Folder{Group: names[0], Version: names[1], Resource: names[2], Namespace: names[3]}
	if folder.Group == coreFolder {
		folder.Group = ""
	}
	return folder, isFileName(segments[last]) && folder.validate() == nil
}
