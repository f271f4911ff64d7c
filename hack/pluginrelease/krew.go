// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/url"
	"strings"

	"sigs.k8s.io/yaml"
)

// krewPlugin is the manifest of a plugin for krew.
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Caveats          string         `json:"caveats"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

const (
	krewDescription = `Slipstream mirrors live objects to Git and copies workloads between namespaces. This plugin shows who changed
what and sets it back, creates mirrors, catalogs and environments, and checks an installation. It needs the
server of Slipstream in the cluster.
`
	krewCaveats = `For completion, and for kubectl create sync:
  kubectl slipstream install-hooks
`
)

// krewManifest returns the manifest of a version whose archives are below a URL.
func krewManifest(releases, version string, archives []archive) ([]byte, error) {
	plugin := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": "slipstream"},
		Spec: krewSpec{
			Version: version, Homepage: "https://github.com/configbutler/slipstream",
			ShortDescription: "See who changed what, and get it back",
			Description:      krewDescription, Caveats: krewCaveats,
		},
	}
	for _, each := range archives {
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, krewPlatform{
			Selector: krewSelector{map[string]string{"os": each.of.os, "arch": each.of.arch}},
			URI:      strings.Join([]string{releases, url.PathEscape(version), url.PathEscape(each.name)}, "/"),
			SHA256:   each.sum(), Bin: each.of.file(),
		})
	}
	manifest, err := yaml.Marshal(plugin)
	if err != nil {
		return nil, fmt.Errorf("encode the manifest for krew: %w", err)
	}
	return manifest, nil
}
