// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// errUnreadable is returned for a file that is not the object that its path names.
var errUnreadable = errors.New("the file is no object of the mirror")

// parse returns the object of a file; nil if it is not the one that its path names.
func parse(content []byte, c *candidate) *unstructured.Unstructured {
	object, err := decode(content)
	if err != nil {
		return nil
	}
	version := object.GroupVersionKind().GroupVersion()
	at, err := manifest.Location{
		Group: version.Group, Version: version.Version, Resource: c.folder.Resource, Namespace: object.GetNamespace(), Name: object.GetName(),
	}.Path()
	isSecret := object.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
	if err != nil || at != c.below || isSecret != c.isSecret() {
		return nil
	}
	return object
}

// decode returns the only object of a file.
func decode(content []byte) (*unstructured.Unstructured, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	first, err := documents.Read()
	if err != nil {
		return nil, errUnreadable
	}
	if _, err := documents.Read(); !errors.Is(err, io.EOF) {
		return nil, errUnreadable
	}
	text, err := yaml.YAMLToJSONStrict(first)
	if err != nil {
		return nil, errUnreadable
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil || object.GetKind() == "" || object.GetAPIVersion() == "" {
		return nil, errUnreadable
	}
	return object, nil
}
