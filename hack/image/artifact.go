// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	bomMediaType = "application/vnd.cyclonedx+json"
	// emptyMediaType is the media type of the empty configuration of an artifact.
	emptyMediaType = "application/vnd.oci.empty.v1+json"
	emptyConfig    = "{}"
)

// artifact is a manifest that refers to an image and has one file.
type artifact struct {
	manifest []byte
	file     v1.Layer
}

var _ partial.CompressedImageCore = artifact{}

// attach creates an artifact with a file about the image.
func attach(image v1.Image, file []byte, mediaType types.MediaType) (v1.Image, error) {
	subject, err := partial.Descriptor(image)
	if err != nil {
		return nil, fmt.Errorf("describe the image: %w", err)
	}
	layer := static.NewLayer(file, mediaType)
	described, err := partial.Descriptor(layer)
	if err != nil {
		return nil, fmt.Errorf("describe the artifact: %w", err)
	}
	digest, size, err := v1.SHA256(strings.NewReader(emptyConfig))
	if err != nil {
		return nil, fmt.Errorf("describe an empty configuration: %w", err)
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: string(mediaType),
		Config:  v1.Descriptor{MediaType: emptyMediaType, Digest: digest, Size: size},
		Layers:  []v1.Descriptor{*described},
		Subject: &v1.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the manifest of the artifact: %w", err)
	}
	return partial.CompressedToImage(artifact{manifest: manifest, file: layer})
}

// RawConfigFile returns the empty configuration.
func (a artifact) RawConfigFile() ([]byte, error) { return []byte(emptyConfig), nil }

// MediaType returns the media type of manifests.
func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest returns the manifest, which refers to the image.
func (a artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// LayerByDigest returns the file, or the configuration.
func (a artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	for _, each := range []v1.Layer{a.file, static.NewLayer([]byte(emptyConfig), emptyMediaType)} {
		if own, err := each.Digest(); err != nil || own == digest {
			return each, err
		}
	}
	return nil, fmt.Errorf("no attached file with digest %s", digest)
}
