// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// ownFolder is the server's own folder in a base folder.
const ownFolder = ".configbutler"

// markerPath is the file in a base folder that names its owner. It does not have the layout of an object's file.
const markerPath = ownFolder + "/owner.yaml"

// markerHead explains the file to users who find it.
const markerHead = `# This folder is written by Slipstream, for the GitDestination named here. To let another one
# have it, delete this file: the next that writes here puts its own in its place.
`

// longestMark bounds each text of a marker, in bytes. Names in the API are shorter.
const longestMark = 512

// renderMarker returns the content of a marker. It is an empty List, so that applying the whole folder applies nothing for
// it.
func renderMarker(owner v1alpha1.OwnerMarker) ([]byte, error) {
	content, err := manifest.Render(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "items": []any{},
		"clusterUID": owner.ClusterUID, "namespace": owner.Namespace, "name": owner.Name, "instance": owner.Instance,
		"time": owner.Time.UTC().Format("2006-01-02T15:04:05Z"),
	}})
	if err != nil {
		return nil, fmt.Errorf("write the marker: %w", err)
	}
	return append([]byte(markerHead), content...), nil
}

// parseMarker parses and validates a marker. Any writer of the branch may have written it.
func parseMarker(content []byte) (v1alpha1.OwnerMarker, error) {
	var file struct {
		ClusterUID string      `json:"clusterUID"`
		Namespace  string      `json:"namespace"`
		Name       string      `json:"name"`
		Instance   string      `json:"instance"`
		Time       metav1.Time `json:"time"`
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return v1alpha1.OwnerMarker{}, errors.New("it is not YAML of the kind that is written there")
	}
	owner := v1alpha1.OwnerMarker(file)
	for _, needed := range []struct{ field, value string }{
		{"clusterUID", owner.ClusterUID}, {"namespace", owner.Namespace}, {"name", owner.Name},
	} {
		if needed.value == "" {
			return v1alpha1.OwnerMarker{}, fmt.Errorf("it has no %s", needed.field)
		}
	}
	for _, value := range []string{owner.ClusterUID, owner.Namespace, owner.Name, owner.Instance} {
		if len(value) > longestMark || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return v1alpha1.OwnerMarker{}, errors.New("its values are no names")
		}
	}
	return owner, nil
}
