// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// markerFolder is the folder in each destination that holds the owner's marker.
const markerFolder = ".configbutler"

// validateBaseFolder requires a valid folder in its canonical form.
func validateBaseFolder(folder string, path *field.Path) field.ErrorList {
	clean, err := manifest.CleanBaseFolder(folder)
	isMarkerFolder := func(segment string) bool { return strings.EqualFold(segment, markerFolder) }
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, folder, err.Error())}
	case clean != folder:
		return field.ErrorList{field.Invalid(path, folder,
			"must be a clean path such as clusters/production, without . segments, // or a trailing /, or be empty for the root")}
	case slices.ContainsFunc(strings.Split(folder, "/"), isMarkerFolder):
		return field.ErrorList{field.Invalid(path, folder,
			"must not have a folder called .configbutler, which holds the owner's marker")}
	}
	return nil
}
