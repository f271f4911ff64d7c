// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// errUnreadable is returned for a file that is not the object that its path names.
var errUnreadable = errors.New("the file is no object of the mirror")

// parse returns the object of a file. The error is errUnreadable if it is not the one that its path names, or that of ctx.
func parse(ctx context.Context, content []byte, c *candidate) (*unstructured.Unstructured, error) {
	object, err := decode(ctx, content)
	if err != nil {
		return nil, err
	}
	version := object.GroupVersionKind().GroupVersion()
	at, err := manifest.Location{
		Group: version.Group, Version: version.Version, Resource: c.folder.Resource, Namespace: object.GetNamespace(), Name: object.GetName(),
	}.Path()
	if err != nil || at != c.below || isSecretKind(object) != c.isSecret() {
		return nil, errUnreadable
	}
	return object, nil
}

const (
	// maxJSON bounds an object as JSON, in bytes, and maxDepth how deep it is: more than an API server accepts.
	maxJSON  = 16 << 20
	maxDepth = 500
	// largeFile is the size, in bytes, from which one file is decoded at a time: up to a hundred times its size is held meanwhile.
	largeFile = 256 << 10
)

// decodesLarge holds an element while a large file is decoded.
var decodesLarge = make(chan struct{}, 1)

// decode returns the only object of a file. The error is errUnreadable, or that of ctx.
func decode(ctx context.Context, content []byte) (*unstructured.Unstructured, error) {
	if len(content) >= largeFile {
		select {
		case decodesLarge <- struct{}{}:
			defer func() { <-decodesLarge }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	first, err := documents.Read()
	if err != nil {
		return nil, errUnreadable
	}
	if _, err := documents.Read(); !errors.Is(err, io.EOF) || hasAliases(first) {
		return nil, errUnreadable
	}
	text, err := yaml.YAMLToJSONStrict(first)
	if err != nil || len(text) > maxJSON || depthOf(text) > maxDepth {
		return nil, errUnreadable
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil || object.GetKind() == "" || object.GetAPIVersion() == "" {
		return nil, errUnreadable
	}
	return object, nil
}

// hasAliases reports whether a document has anchors or aliases, with which a small file makes a large object. The mirror writes none. It
// reports so, too, if the document cannot be read.
func hasAliases(document []byte) bool {
	if !bytes.ContainsAny(document, "&*") {
		return false
	}
	var root yamlv3.Node // Aliases stay what they are.
	return yamlv3.Unmarshal(document, &root) != nil || referenced(&root)
}

// referenced reports whether a node has an anchor or is an alias, or one below is. Parsers bound the depth.
func referenced(node *yamlv3.Node) bool {
	return node.Kind == yamlv3.AliasNode || node.Anchor != "" || slices.ContainsFunc(node.Content, referenced)
}

// depthOf returns how deep a JSON text is nested.
func depthOf(text []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch char := text[i]; {
		case quoted && char == '\\':
			i++
		case char == '"':
			quoted = !quoted
		case quoted:
		case char == '{', char == '[':
			depth++
			deepest = max(deepest, depth)
		case char == '}', char == ']':
			depth--
		}
	}
	return deepest
}
