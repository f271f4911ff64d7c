// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	provenanceFile = "provenance.intoto.json"
	// localBuilder is the builder where no other is named: the machine of a maintainer.
	localBuilder = repository + "/blob/main/docs/releasing.md#on-your-machine"
	buildType    = repository + "/blob/main/docs/releasing.md#provenance"
)

// statement is an in-toto statement, version 1, with SLSA provenance, version 1. It has no times and no identifier of a run, so that two
// builds of a commit give the same file.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// resource is something with a digest: a file, an image or a commit.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// dependencies are the files that name, with their digests, the modules from which programs and page are built, and the tools that pack
// them.
var dependencies = []string{
	"go.sum", "hack/image/go.sum", "hack/helm/go.sum", "cmd/kubectl-slipstream/app/internal/dashboard/web/package-lock.json",
}

// writeProvenance writes what all files of a release, and the images, were built from.
func writeProvenance(ctx context.Context, s settings, from commit, images []image) error {
	compiler, err := output(ctx, s.source, "go", "env", "GOVERSION")
	if err != nil {
		return err
	}
	source := "git+" + repository + "@refs/tags/" + s.version
	about := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	if about.Subject, err = subjects(s.output, images); err != nil {
		return err
	}
	definition := &about.Predicate.BuildDefinition
	definition.BuildType = buildType
	definition.ExternalParameters = map[string]string{"source": source, "version": s.version}
	if s.partial != "" {
		definition.ExternalParameters["partial"] = s.partial
	}
	definition.InternalParameters = map[string]string{"go": strings.TrimSpace(string(compiler))}
	definition.ResolvedDependencies = []resource{{URI: source, Digest: map[string]string{"gitCommit": from.id}}}
	for _, name := range dependencies {
		sum, err := sumOf(filepath.Join(s.source, name))
		if err != nil {
			return err
		}
		definition.ResolvedDependencies = append(definition.ResolvedDependencies, resource{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	about.Predicate.RunDetails.Builder.ID = s.builder
	content, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the provenance: %w", err)
	}
	return s.write(provenanceFile, append(content, '\n'))
}

// printPredicate prints the predicate of a statement, which cosign combines with the digest of another subject.
func printPredicate(path string) error {
	about, err := readStatement(path)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(about.Predicate)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(encoded)
	return err
}

// subjects returns the files of a release and its images.
func subjects(output string, images []image) ([]resource, error) {
	files, err := readFiles(output)
	if err != nil {
		return nil, err
	}
	var found []resource
	for _, each := range files {
		found = append(found, resource{Name: each.name, Digest: map[string]string{"sha256": each.sum}})
	}
	for _, each := range images {
		found = append(found, resource{Name: each.repository, Digest: map[string]string{"sha256": strings.TrimPrefix(each.digest, "sha256:")}})
	}
	return found, nil
}
